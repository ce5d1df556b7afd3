/** A deleted machine comes back as it was: disks, Secrets, identity; what stands in the way is said with the way out. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type BinBoard, CONTENTS, RECORDS, SECRETS, startBinBoard, UUID, VMS } from '../testkit/bin-board.ts';
import { CLAIMS, type Row, VOLUMES } from '../testkit/storage-plane.ts';

let board: BinBoard;
before(async () => {
  board = await startBinBoard();
});
after(() => board?.stop());

const back = (name: string): Promise<Row> => board.settled(`${VMS}/${name}`, ({ metadata }) => metadata !== undefined);
const failure = async (name: string, message: RegExp): Promise<void> => {
  const { metadata, spec } = await board.record(name);
  await board.settled(
    `${RECORDS}/${metadata.name}`,
    ({ status }) => status?.failedRequest === spec.undelete.id && message.test(status.message),
  );
};
const firmware = (vm: Row) => vm['spec'].template.spec.domain.firmware;

// S-773: A deleted machine comes back with its disks, Secrets, UUID, serial number and MAC addresses by `spec.undelete`
//   of its record, and is really gone in between; with a window of 0 everything goes at once.
test('a machine comes back with its disk, Secret and identity, and is really gone in between', async () => {
  const before = await board.machine('db', { uuid: UUID(1) });
  const handle = await board.handle('db-disk');
  const { uid } = (await board.admin(`GET ${SECRETS}/db-login`)).metadata;
  await board.remove('db');
  await board.settled(VOLUMES, ({ items }) => items.length === 0);
  assert.ok(board.pool.volumes.has(handle), 'its disk is kept');
  const record = await board.record('db');
  assert.equal(record['spec'].disks, 1);
  assert.doesNotMatch(JSON.stringify(record), /c2VjcmV0IG9mIGRi/, 'a record shows no Secret');

  await board.undelete('db');
  const vm = await back('db');
  assert.notEqual(vm['metadata'].uid, before['metadata'].uid);
  assert.deepEqual(firmware(vm), firmware(before));
  assert.deepEqual(
    vm['spec'].template.spec.domain.devices.interfaces,
    before['spec'].template.spec.domain.devices.interfaces,
  );
  assert.deepEqual(vm['metadata'].labels, { app: 'db' });
  await board.emptied();
  const claim = await board.admin(`GET ${CLAIMS}/db-disk`);
  assert.equal(claim.status.phase, 'Bound');
  assert.equal(await board.handle('db-disk'), handle);
  const secret = await board.admin(`GET ${SECRETS}/db-login`);
  assert.notEqual(secret.metadata.uid, uid);
  assert.equal(Buffer.from(secret.data.userdata, 'base64').toString(), 'secret of db');
  for (const { metadata } of [claim, secret]) {
    assert.deepEqual(
      metadata.ownerReferences.map((owner: Row) => owner['uid']),
      [vm['metadata'].uid],
    );
    assert.equal(metadata.annotations?.['coracle.dev/undeleted-from'], undefined);
  }
  assert.equal((await board.admin(`GET ${RECORDS}`)).items.length, 0);

  // Once more, by the same ways: handles and names stay one.
  await board.remove('db');
  await board.undelete('db');
  await back('db');
  await board.emptied();
  assert.equal(await board.handle('db-disk'), handle);
  await board.setWindow('0');
  await board.remove('db');
  await board.settled(VOLUMES, ({ items }) => items.length === 0);
  assert.equal(board.pool.volumes.has(handle), false, 'with a window of 0 it goes as ever');
  assert.equal((await board.admin(`GET ${CONTENTS}`)).items.length, 0);
  await board.setWindow(null);
});

// S-773
test('a machine that is still being deleted is waited for', async () => {
  await board.machine('slow', { metadata: { finalizers: ['example.com/hold'] } });
  await board.admin(`DELETE ${VMS}/slow`);
  await board.undelete('slow');
  const { metadata } = await board.settled(`${VMS}/slow`, ({ metadata: { finalizers } }) => finalizers.length === 1);
  assert.notEqual(metadata.deletionTimestamp, undefined);
  await board.admin(`PATCH ${VMS}/slow`, { metadata: { finalizers: null } });
  await board.settled(`${VMS}/slow`, (vm) => vm['metadata'] && vm['metadata'].uid !== metadata.uid);
  await board.emptied();
  await board.remove('slow');
  const { name } = (await board.record('slow'))['metadata'];
  await board.admin(`DELETE ${RECORDS}/${name}`);
  await board.emptied();
});

// S-774: A machine, a claim or a firmware UUID that is there by then, a node that is gone and a disk that is lost are
//   named with the way out before anything is made.
test('a new machine of the name, and its claim, stand in the way of one but not of another name', async () => {
  await board.machine('web', { uuid: UUID(2) });
  const old = await board.handle('web-disk');
  await board.remove('web');
  await board.machine('web', { uuid: UUID(3) });
  const young = await board.handle('web-disk');
  await board.undelete('web');
  await failure('web', /virtual machine default\/web already exists; .*--name NEW/);
  await board.undelete('web', { name: 'web-old' });
  const vm = await back('web-old');
  await board.emptied();
  assert.equal(firmware(vm).uuid, UUID(2));
  const [disk, login] = vm['spec'].template.spec.volumes;
  assert.equal(disk.persistentVolumeClaim.claimName, 'web-old-web-disk');
  assert.equal(login.cloudInitNoCloud.secretRef.name, 'web-old-web-login');
  assert.equal(await board.handle('web-old-web-disk'), old);
  assert.equal(await board.handle('web-disk'), young);
  // Its names are its own from now on.
  await board.admin(`DELETE ${VMS}/web-old`);
  await board.gone(`${CLAIMS}/web-old-web-disk`);
  await board.undelete('web-old');
  await back('web-old');
  await board.emptied();
  assert.equal(await board.handle('web-old-web-disk'), old);
});

// S-774
test('a claim of the name stands in the way', async () => {
  await board.machine('c', { uuid: UUID(4) });
  await board.remove('c');
  await board.claim('c-disk');
  await board.undelete('c');
  await failure('c', /PersistentVolumeClaim default\/c-disk already exists and is a different object; .*--name NEW/);
  await board.admin(`DELETE ${CLAIMS}/c-disk`);
  await board.undelete('c');
  await back('c');
  await board.emptied();
});

// S-774
test('a firmware UUID that another machine has by now takes a new identity', async () => {
  await board.machine('twin', { uuid: UUID(5) });
  await board.remove('twin');
  await board.machine('other', { uuid: UUID(5) });
  await board.undelete('twin');
  await failure('twin', new RegExp(`firmware UUID ${UUID(5)} is also that of VirtualMachine other; .*--new-identity`));
  await board.undelete('twin', { newIdentity: true });
  const vm = await back('twin');
  await board.emptied();
  assert.notEqual(firmware(vm).uuid, UUID(5));
  assert.notEqual(firmware(vm).serial, 'serial-twin');
  assert.equal(vm['spec'].template.spec.domain.devices.interfaces[0].macAddress, undefined);
});

// S-774
test('a disk that is lost, and one on a node that is gone, are named before anything is made', async () => {
  await board.machine('lost', { uuid: UUID(6) });
  const handle = await board.handle('lost-disk');
  await board.remove('lost');
  await board.admin('PATCH /api/v1/nodes/n1/status', { status: { conditions: [{ type: 'Ready', status: 'False' }] } });
  await board.undelete('lost');
  await failure(
    'lost',
    /disk of claim lost-disk cannot be reached: pool pool-1 cannot be reached: no node that serves it/,
  );
  await board.admin('PATCH /api/v1/nodes/n1/status', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
  const held = board.pool.volumes.get(handle)!;
  board.pool.volumes.delete(handle);
  await board.undelete('lost');
  await failure('lost', /disk of claim lost-disk is lost: pool pool-1 no longer has it/);
  assert.equal((await board.ask(`GET ${SECRETS}/lost-login`, { as: ['admin', 'system:masters'] })).status, 404);
  board.pool.volumes.set(handle, held);
  await board.undelete('lost');
  await back('lost');
  await board.emptied();
});

// S-775: What the server refuses on the way is taken back, and the bin holds the machine as before; dependents that
//   were orphaned are owned again.
test('what the server refuses is taken back, and the bin holds the machine as before', async () => {
  await board.machine('full', { uuid: UUID(7) });
  const handle = await board.handle('full-disk');
  await board.remove('full');
  const quota = '/api/v1/namespaces/default/resourcequotas';
  await board.admin(`POST ${quota}`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'none' },
    spec: { hard: { 'count/virtualmachines.kubevirt.io': '0' } },
  });
  await board.settled(`${quota}/none`, ({ status }) => status?.hard !== undefined);
  await board.undelete('full');
  await failure('full', /exceeded quota/);
  await board.settled(
    `${RECORDS}/${(await board.record('full'))['metadata'].name}`,
    ({ status }) => status.phase === 'Deleted',
  );
  for (const path of [`${CLAIMS}/full-disk`, `${SECRETS}/full-login`]) await board.gone(path);
  await board.gone(`${VOLUMES}/pvc-${handle}`);
  assert.ok(board.pool.volumes.has(handle));
  await board.admin(`DELETE ${quota}/none`);
  await board.undelete('full');
  await back('full');
  await board.emptied();
  assert.equal(await board.handle('full-disk'), handle);
});

// S-775
test('with dependents orphaned the machine owns them again', async () => {
  await board.machine('alone', { uuid: UUID(8) });
  const claim = await board.admin(`GET ${CLAIMS}/alone-disk`);
  await board.admin(`DELETE ${VMS}/alone?propagationPolicy=Orphan`);
  await board.gone(`${VMS}/alone`);
  await board.undelete('alone');
  const vm = await back('alone');
  await board.emptied();
  const now = await board.admin(`GET ${CLAIMS}/alone-disk`);
  assert.equal(now.metadata.uid, claim.metadata.uid);
  assert.equal(now.metadata.ownerReferences[0].uid, vm['metadata'].uid);
});
