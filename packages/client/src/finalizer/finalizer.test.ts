import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../apimachinery/src/meta/object.ts';
import { addFinalizer, hasFinalizer, removeFinalizer } from './finalizer.ts';

const F = 'coracle.dev/test';
const object = (finalizers?: string[], deletionTimestamp?: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'x', ...(finalizers && { finalizers }), ...(deletionTimestamp && { deletionTimestamp }) },
});

test('addFinalizer() and removeFinalizer() leave their argument alone and undo each other', () => {
  const plain = Object.freeze(object(['other']));
  const with_ = addFinalizer(plain, F);
  assert.deepEqual(with_.metadata.finalizers, ['other', F]);
  assert.deepEqual(plain.metadata.finalizers, ['other']);
  assert.equal(addFinalizer(with_, F), with_);
  assert.deepEqual(removeFinalizer(with_, F), plain);
  assert.equal(removeFinalizer(plain, F), plain);
  assert.equal('finalizers' in removeFinalizer(object([F]), F).metadata, false);
  assert.equal(hasFinalizer(addFinalizer(object(undefined, 'now'), F), F), false);
});
