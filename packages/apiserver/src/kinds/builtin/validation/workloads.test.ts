import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

test('a PodDisruptionBudget: shares of the whole, a known policy, a selector that can be', () => {
  const of = (budget: object): string[] => validationErrors('policy/v1', 'poddisruptionbudgets', { spec: budget });
  assert.deepEqual(of({ minAvailable: '100%' }), []);
  assert.deepEqual(of({ minAvailable: '101%', unhealthyPodEvictionPolicy: 'X' }), [
    'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
    'spec.unhealthyPodEvictionPolicy: Unsupported value: "X": supported values: "AlwaysAllow", "IfHealthyBudget"',
  ]);
  assert.match(
    of({ maxUnavailable: 'x' }).join(),
    /^spec\.maxUnavailable: Invalid value: "x": a valid percent string must /,
  );
  assert.equal(of({ minAvailable: 1, selector: { matchLabels: { 'a b': 'c' } } }).length, 1);
});

test('a ClusterRole that is made of others says of which', () => {
  assert.deepEqual(validationErrors('rbac.authorization.k8s.io/v1', 'clusterroles', { aggregationRule: {} }), [
    'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
  ]);
});
