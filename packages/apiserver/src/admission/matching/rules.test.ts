import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceInfo } from '../../../../apimachinery/src/types/resource.ts';
import { matchRules, type OperationRule } from './rules.ts';

const info = (group: string, version: string, resource: string, namespaced = true): ResourceInfo =>
  ({ group, version, resource, namespaced }) as ResourceInfo;

const PODS = info('', 'v1', 'pods');
const NODES = info('', 'v1', 'nodes', false);

test('matchRules() validates operations, groups, versions, resources, scope and names', () => {
  const all = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'] };
  const cases: [OperationRule, { info?: ResourceInfo; subresource?: string; name?: string }, boolean][] = [
    [{ ...all, resources: ['pods'] }, {}, true],
    [{ ...all, resources: ['pods'] }, { subresource: 'status' }, false],
    [{ ...all, resources: ['*'] }, { subresource: 'status' }, false],
    [{ ...all, resources: ['pods/*'] }, {}, true],
    [{ ...all, resources: ['pods/*'] }, { subresource: 'exec' }, true],
    [{ ...all, resources: ['*/exec'] }, { subresource: 'exec' }, true],
    [{ ...all, resources: ['*/exec'] }, {}, false],
    [{ ...all, resources: ['*/*'] }, { subresource: 'log' }, true],
    [{ ...all, resources: ['*'], scope: 'Cluster' }, {}, false],
    [{ ...all, resources: ['*'], scope: 'Cluster' }, { info: NODES }, true],
    [{ ...all, resources: ['*'], scope: 'Namespaced' }, { info: NODES }, false],
    [{ ...all, resources: ['*'], resourceNames: ['a'] }, { name: 'a' }, true],
    [{ ...all, resources: ['*'], resourceNames: ['a'] }, { name: '' }, false],
    [{ ...all, resources: ['*'], apiGroups: ['apps'] }, {}, false],
    [{ ...all, resources: ['*'], apiVersions: ['v2'] }, {}, false],
    [{ ...all, resources: ['*'], operations: ['UPDATE', 'DELETE'] }, {}, false],
    [{ resources: ['*'] }, {}, false],
  ];
  for (const [rule, more, matches] of cases) {
    const subject = { operation: 'CREATE' as const, info: PODS, subresource: '', name: 'n', ...more };
    assert.equal(matchRules([rule], subject, []) !== undefined, matches, JSON.stringify([rule, more]));
  }
});

test('matchRules() takes the resource as sent before any equivalent one, and earlier rules first', () => {
  const rule = (version: string): OperationRule => ({
    operations: ['*'],
    apiGroups: ['g'],
    apiVersions: [version],
    resources: ['r'],
  });
  const [v1, v2, v3] = ['v1', 'v2', 'v3'].map((version) => info('g', version, 'r')) as [
    ResourceInfo,
    ResourceInfo,
    ResourceInfo,
  ];
  const subject = { operation: 'CREATE' as const, info: v1, subresource: '', name: 'n' };
  assert.equal(matchRules([rule('v3'), rule('v1')], subject, [v2, v3]), v1);
  assert.equal(matchRules([rule('v3'), rule('v2')], subject, [v2, v3]), v3);
  assert.equal(matchRules([rule('v3')], subject, []), undefined);
});
