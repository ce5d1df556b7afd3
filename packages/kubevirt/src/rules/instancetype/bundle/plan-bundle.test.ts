import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SourceKind } from '../matcher.ts';
import { commonInstancetypes } from './bundle.ts';
import { BUNDLE_ANNOTATION, planBundle } from './plan-bundle.ts';

const bundle = commonInstancetypes();
/** As a server gives the objects back: members in another order, metadata of its own. */
const stored = (objects: readonly SourceKind[]): SourceKind[] =>
  objects.map((object) => {
    const copy = structuredClone(object);
    copy.spec = Object.fromEntries(Object.entries(copy.spec).reverse()) as unknown as typeof copy.spec;
    copy.metadata = { ...copy.metadata, uid: 'u', resourceVersion: '5', managedFields: [] };
    return copy;
  });
const counts = (plan: ReturnType<typeof planBundle>) => ({
  create: plan.create.length,
  update: plan.update.length,
  remove: plan.remove.length,
  foreign: plan.foreign.length,
});
const nothing = { create: 0, update: 0, remove: 0, foreign: 0 };

describe('planBundle()', () => {
  const installed = stored(planBundle([], bundle).create);
  it('creates everything in an empty cluster, and then is content', () => {
    assert.deepEqual(counts(planBundle([], bundle)), { ...nothing, create: bundle.length });
    assert.deepEqual(counts(planBundle(installed, bundle)), nothing);
  });
  // S-180
  it('brings a removed object back and leaves an edited one alone', () => {
    const [first, second, ...rest] = structuredClone(installed);
    second!.metadata.labels!['mine'] = 'yes';
    const plan = planBundle([second!, ...rest], bundle);
    assert.deepEqual(counts(plan), { ...nothing, create: 1, foreign: 1 });
    assert.equal(plan.create[0]?.metadata.name, first?.metadata.name);
  });
  it('leaves an object of the same name alone that somebody else made', () => {
    const own = structuredClone(bundle[0]!);
    assert.deepEqual(counts(planBundle([own], [bundle[0]!])), { ...nothing, foreign: 1 });
  });
  it('leaves a copy under another name alone, with all its annotations', () => {
    const copy = structuredClone(installed[0]!);
    copy.metadata.name = 'copy-of-it';
    assert.deepEqual(counts(planBundle([...installed, copy], bundle)), nothing);
  });
  it('updates what an older bundle wrote, and keeps its identity', () => {
    const older = structuredClone(bundle[0]!);
    older.metadata.labels!['instancetype.kubevirt.io/version'] = '0';
    const before = stored(planBundle([], [older]).create);
    const plan = planBundle(before, [bundle[0]!]);
    assert.deepEqual(counts(plan), { ...nothing, update: 1 });
    const { uid, resourceVersion, labels } = plan.update[0]!.metadata;
    assert.deepEqual([uid, resourceVersion, labels], ['u', '5', bundle[0]!.metadata.labels]);
    assert.deepEqual(counts(planBundle(plan.update, [bundle[0]!])), nothing);
  });
  it('removes what is still its own when it is switched off', () => {
    const edited = structuredClone(installed);
    edited[0]!.spec = { ...edited[0]!.spec, annotations: { a: 'b' } };
    const mine = { ...structuredClone(bundle[0]!), metadata: { name: 'mine' } };
    assert.deepEqual(counts(planBundle([...edited, mine], [])), { ...nothing, remove: bundle.length - 1 });
    assert.ok(installed.every(({ metadata }) => metadata.annotations?.[BUNDLE_ANNOTATION] !== undefined));
  });
});
