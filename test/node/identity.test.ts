/**
 * Machines of an older server (stored without UUID, one of them running): upgraded, migrated, restarted, saved, restored
 * and cloned. What their guests see is read inside of them and never changes. Other rows of docs/identity.md:
 * identity-rows.test.ts.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachineClone,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { NAMESPACE } from './board.ts';
import {
  board,
  createVm,
  firmwareOf,
  guest,
  hasUuid,
  isAbsentNow,
  keyOf,
  migrate,
  patch,
  restart,
  restore,
  runs,
  snapshot,
  storeAsOlderServer,
  useIdentityBoard,
  vm,
} from './identity-board.ts';

useIdentityBoard();

// S-619: What docs/identity.md says of a guest's UUID and serial holds inside real guests: new, given, edited,
//   restarted, migrated, of an older server, restored, cloned, forked.
test('a machine of an older server that runs stays who it is: upgrade, migration, restart', {
  timeout: 600_000,
}, async () => {
  // What an older server started: the UUID of the name, in no object but the instance.
  await createVm('old', 'Halted');
  await storeAsOlderServer('old');
  await hasUuid('old');
  await patch('old', { runStrategy: 'Always' });
  const instance = await runs('old');
  const seen = await guest('old');
  assert.equal(seen.uuid, legacyFirmwareUuid('old'));
  const { generation } = (await vm('old')).metadata;

  await storeAsOlderServer('old');
  await hasUuid('old');
  await eventually('the controller is done', async () => {
    const { metadata, status } = await vm('old');
    return status?.observedGeneration === metadata.generation;
  });
  const upgraded = await vm('old');
  assert.equal(firmwareOf(upgraded).uuid, seen.uuid);
  assert.equal(upgraded.metadata.generation, generation, 'no edit');
  assert.ok(!(upgraded.status?.conditions ?? []).some(({ type }) => type === 'RestartRequired'));
  assert.equal((await board.vmi('old')).metadata.uid, instance.metadata.uid, 'no restart');
  assert.deepEqual(await guest('old'), seen);

  await migrate('old');
  assert.deepEqual(await guest('old'), seen, 'after a migration');
  await restart('old');
  assert.deepEqual(await guest('old'), seen, 'after a restart');
});

// S-619
test('an old snapshot of it: restored it is who it was; another machine, and a clone, are somebody new', {
  timeout: 600_000,
}, async () => {
  const content = await snapshot('before', 'old');
  const prefix = 'snapshot.kubevirt.io/virtualmachinesnapshotcontents';
  await board.store.write({ prefix, namespace: NAMESPACE, name: content }, (current) => {
    // biome-ignore lint/suspicious/noExplicitAny: what an older server left out.
    const next = structuredClone(current!.object) as any;
    delete next.spec.source.virtualMachine.spec.template.spec.domain.firmware.uuid;
    delete next.spec.source.virtualMachine.metadata.annotations?.['coracle.dev/firmware-identity'];
    return { type: 'put', object: next as UnstructuredObject };
  });
  const { spec: saved } = await board.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, keyOf(content));
  await patch('old', {
    runStrategy: 'Halted',
    template: { spec: { domain: { firmware: { uuid: crypto.randomUUID() } } } },
  });
  await eventually('old is stopped', () => board.vmi('old').then(() => false, isAbsentNow));
  await restore('back', 'before', 'old');
  await restore('aside', 'before', 'other');
  await board.client.create(VIRTUAL_MACHINE_CLONES, {
    apiVersion: 'clone.kubevirt.io/v1beta1',
    kind: 'VirtualMachineClone',
    metadata: { name: 'copy', namespace: NAMESPACE },
    spec: {
      source: { apiGroup: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshot', name: 'before' },
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy' },
      newSMBiosSerial: 'SER-2',
    },
  } as unknown as VirtualMachineClone);
  await eventually('the clone is made', async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_CLONES, keyOf('copy'));
    const { status: source } = await vm('old');
    return status?.phase === 'Succeeded' && source?.snapshotInProgress === undefined;
  });
  const names = ['old', 'other', 'copy'];
  const uids = await Promise.all(
    names.map(async (name) => {
      await patch(name, { runStrategy: 'Always' });
      return (await runs(name)).metadata.uid;
    }),
  );
  assert.equal(new Set(uids).size, names.length);
  const [old, other, copy] = [await guest('old'), await guest('other'), await guest('copy')];
  assert.equal(old.uuid, legacyFirmwareUuid('old'));
  assert.equal((await vm('old')).metadata.annotations?.['coracle.dev/firmware-identity'], 'Restored');
  for (const [name, { uuid }] of [
    ['other', other],
    ['copy', copy],
  ] as const) {
    assert.match(uuid, /^.{14}4/, `${name} has a random UUID`);
    assert.equal(uuid, firmwareOf(await vm(name)).uuid);
  }
  assert.notEqual(other.uuid, copy.uuid);
  assert.notEqual(other.serial, '');
  assert.equal(copy.serial, 'SER-2');
  const { spec } = await board.client.get(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, keyOf(content));
  assert.deepEqual(spec, saved, 'the content is as it was');
  for (const name of ['other', 'copy']) await patch(name, { runStrategy: 'Halted' });
});
