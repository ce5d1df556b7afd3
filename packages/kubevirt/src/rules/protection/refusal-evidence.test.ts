import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blockerEvent, type ProtectionRefusal, refusalAnnotation, refusalEvent } from './refusal-evidence.ts';

const secret = { kind: 'Secret', metadata: { name: 'login', namespace: 'shop' }, username: 'jane' };
const namespace = { kind: 'Namespace', metadata: { name: 'shop' }, username: 'jane' };
const refusal: ProtectionRefusal = {
  policy: 'DeletionProtection',
  reason: 'Referenced',
  message: 'protected VirtualMachine shop/db refers to it',
  blockers: [{ namespace: 'shop', name: 'db', why: 'spec.volumes[0]' }],
};

test('refusalEvent() says who asked and why not; a switching-off of protection has a reason of its own', () => {
  assert.deepEqual(refusalEvent(refusal, secret), {
    reason: 'DeletionRefused',
    message: 'not deleted, as "jane" asked: protected VirtualMachine shop/db refers to it',
  });
  assert.deepEqual(refusalEvent({ ...refusal, reason: 'UnprotectForbidden', message: 'no right' }, secret), {
    reason: 'UnprotectRefused',
    message: 'its protection was not switched off: no right',
  });
});

test('blockerEvent() names the object, and what of the machine needs it', () => {
  assert.deepEqual(blockerEvent(refusal.blockers![0]!, secret), {
    reason: 'DependencyDeletionRefused',
    message: 'Secret shop/login was not deleted, as "jane" asked: this machine needs it (spec.volumes[0])',
  });
  assert.equal(
    blockerEvent({ namespace: 'shop', name: 'db' }, namespace).message,
    'Namespace shop was not deleted, as "jane" asked: this machine is protected',
  );
});

test('refusalAnnotation() is JSON of policy, decision, reason, object and blockers', () => {
  assert.deepEqual(JSON.parse(refusalAnnotation(refusal, secret)), {
    policy: 'DeletionProtection',
    decision: 'deny',
    reason: 'Referenced',
    object: 'Secret shop/login',
    blockers: ['shop/db'],
  });
  assert.equal(JSON.parse(refusalAnnotation({ ...refusal, blockers: [] }, namespace)).blockers, undefined);
});
