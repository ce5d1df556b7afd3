import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GarbageDecision, type GarbageFacts, garbageDecision, type OwnerState } from './garbage-decision.ts';

const reference = (uid: string, blockOwnerDeletion?: boolean) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: uid,
  uid,
  ...(blockOwnerDeletion !== undefined && { blockOwnerDeletion }),
});
const owner = (uid: string, state: OwnerState, blocks?: boolean) => ({ reference: reference(uid, blocks), state });
const facts = (owners: GarbageFacts['owners'], more: Partial<GarbageFacts> = {}): GarbageFacts => ({
  owners,
  finalizers: [],
  hasDependents: false,
  dependentIsWaiting: false,
  ...more,
});

const cases: [name: string, facts: GarbageFacts, decision: GarbageDecision][] = [
  ['without owners', facts([]), { type: 'keep' }],
  ['with its owner', facts([owner('a', 'solid')]), { type: 'keep' }],
  ['without its owner', facts([owner('a', 'dangling')]), { type: 'delete', policy: 'Background' }],
  [
    'with one of two owners',
    facts([owner('a', 'dangling'), owner('b', 'solid')]),
    { type: 'strip', references: [reference('b')] },
  ],
  [
    'owner waits, another is there',
    facts([owner('a', 'waiting'), owner('b', 'solid')]),
    { type: 'strip', references: [reference('b')] },
  ],
  ['owner waits, nothing below', facts([owner('a', 'waiting', true)]), { type: 'delete', policy: 'Background' }],
  [
    'owner waits, dependents below',
    facts([owner('a', 'waiting', true)], { hasDependents: true }),
    { type: 'delete', policy: 'Foreground' },
  ],
  [
    'a circle of waiting objects',
    facts([owner('a', 'waiting', true)], { hasDependents: true, dependentIsWaiting: true }),
    { type: 'delete', policy: 'Foreground', unblocked: [reference('a', false)] },
  ],
  [
    'its own finalizer says orphan',
    facts([owner('a', 'dangling')], { finalizers: ['orphan'] }),
    { type: 'delete', policy: 'Orphan' },
  ],
  [
    'its own finalizer says foreground',
    facts([owner('a', 'dangling')], { finalizers: ['foregroundDeletion'] }),
    { type: 'delete', policy: 'Foreground' },
  ],
];
for (const [name, given, decision] of cases)
  test(`garbageDecision(): ${name}`, () => assert.deepEqual(garbageDecision(given), decision));
