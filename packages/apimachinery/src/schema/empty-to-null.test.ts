import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinSchema } from '../types/builtin-types.ts';
import { emptyToNull } from './empty-to-null.ts';

function stored(type: string, object: Record<string, unknown>): Record<string, unknown> {
  emptyToNull(builtinSchema(`io.k8s.api.${type}`), object);
  return object;
}

test('an empty list that Go always writes comes out of the store as null', () => {
  assert.deepEqual(stored('rbac.v1.Role', { rules: [] }), { rules: null });
  assert.deepEqual(stored('discovery.v1.EndpointSlice', { endpoints: [], ports: [{}] }), {
    endpoints: null,
    ports: [{}],
  });
});

test('wherever it lies, also in lists', () => {
  const volumes = [{ name: 'a', projected: { sources: [] } }, { name: 'b' }];
  assert.deepEqual(stored('apps.v1.Deployment', { spec: { template: { spec: { volumes } } } }), {
    spec: { template: { spec: { volumes: [{ name: 'a', projected: { sources: null } }, { name: 'b' }] } } },
  });
});

test('what is not there, holds something, or is left out by Go stays as it is', () => {
  for (const [type, object] of [
    ['rbac.v1.Role', { metadata: {} }],
    ['rbac.v1.Role', { rules: [{ verbs: [] }] }],
    ['core.v1.Pod', { spec: { containers: [], volumes: [] } }],
    ['core.v1.Secret', { data: {} }],
  ] as const) {
    assert.deepEqual(stored(type, structuredClone(object)), object);
  }
});
