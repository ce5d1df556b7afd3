import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../meta/object.ts';
import { customStrategy, defineStrategy, type ResourceStrategy, updateStrategyOf } from './strategy.ts';

const object = (metadata: object, parts: object): UnstructuredObject =>
  ({ apiVersion: 'v1', kind: 'K', metadata: { name: 'n', ...metadata }, ...parts }) as UnstructuredObject;

const written = (
  strategy: ResourceStrategy,
  subresource: string,
  [sent, old]: [UnstructuredObject, UnstructuredObject],
) => {
  const {
    apiVersion: _a,
    kind: _k,
    ...rest
  } = updateStrategyOf(strategy, subresource).keepUnwritten(structuredClone(sent), old);
  return rest;
};

const OLD = object({ namespace: 'ns', labels: { a: 'old' }, ownerReferences: ['old'] }, { spec: 1, status: 1 });
const SENT = object({ labels: { a: 'new' }, managedFields: ['new'] }, { spec: 2, status: 2 });

test('an object with /status is written in two halves', () => {
  const strategy = defineStrategy({ statusSubresource: true, statusKeeps: ['ownerReferences'] });
  assert.deepEqual(written(strategy, '', [SENT, OLD]), { metadata: SENT.metadata, spec: 2, status: 1 });
  assert.deepEqual(strategy.resetFields, [['status']]);
  // Labels and annotations are taken, what the kind guards is not; the namespace is that of the URL.
  assert.deepEqual(written(strategy, 'status', [SENT, OLD]), {
    metadata: { ...SENT.metadata, namespace: 'ns', ownerReferences: ['old'] },
    spec: 1,
    status: 2,
  });
  assert.deepEqual(updateStrategyOf(strategy, 'status').resetFields, [['spec'], ['metadata', 'ownerReferences']]);
});

test('one without writes its status as any other part', () => {
  const strategy = defineStrategy({});
  assert.deepEqual(written(strategy, '', [SENT, OLD]), { metadata: SENT.metadata, spec: 2, status: 2 });
  assert.deepEqual(strategy.subresources, {});
});

test('/status of a custom kind takes nothing but the status and its owners', () => {
  const strategy = customStrategy({ statusSubresource: true });
  assert.deepEqual(written(strategy, 'status', [SENT, OLD]), {
    metadata: { ...OLD.metadata, managedFields: ['new'] },
    spec: 1,
    status: 2,
  });
  assert.deepEqual(updateStrategyOf(strategy, 'status').resetFields, [['metadata'], ['spec']]);
  assert.equal(strategy.generation, 'except-status');
});

test('a subresource does as the object does, but for what it says itself', () => {
  const strategy = defineStrategy({
    generation: 'spec',
    prepareForUpdate: () => assert.fail(),
    validateUpdate: () => [],
    warningsOnUpdate: () => ['of the object'],
    statusSubresource: true,
    subresources: { status: { warningsOnUpdate: () => ['of the status'] }, binding: { generation: 'one' } },
  });
  const status = updateStrategyOf(strategy, 'status');
  assert.equal(status.generation, 'spec');
  assert.equal(status.validateUpdate, strategy.validateUpdate);
  assert.equal(status.prepareForUpdate, undefined);
  assert.deepEqual(status.warningsOnUpdate?.({}, {}), ['of the status']);
  const binding = updateStrategyOf(strategy, 'binding');
  assert.equal(binding.generation, 'one');
  assert.equal(binding.warningsOnUpdate, undefined);
  assert.deepEqual(binding.resetFields, [['status']]);
  // One that nobody speaks of, as scale, is written as the object is.
  assert.equal(updateStrategyOf(strategy, 'scale'), strategy);
});
