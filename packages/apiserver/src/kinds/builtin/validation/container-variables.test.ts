import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

/** Errors of a Pod as `field: message`. */
function errors(container: object): string[] {
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i', ...container }] } };
  return validationErrors('v1', 'pods', pod);
}

test('a variable out of a file says where that is', () => {
  const from = (fileKeyRef: object): string[] => errors({ env: [{ name: 'N', valueFrom: { fileKeyRef } }] });
  const path = 'spec.containers[0].env[0].valueFrom.fileKeyRef';
  assert.deepEqual(from({ key: 'K', volumeName: 'v', path: 'a/b' }), []);
  assert.deepEqual(
    from({}),
    ['key', 'volumeName', 'path'].map((field) => `${path}.${field}: Required value`),
  );
  assert.deepEqual(from({ key: 'K', volumeName: 'v', path: '../b' }), [
    `${path}.path: Invalid value: "../b": must not contain '..'`,
  ]);
});
