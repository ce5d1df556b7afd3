/** The bin: how long and how much it keeps, who may empty it and who may take from it, and what a namespace takes along. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type BinBoard, CONTENTS, RECORDS, SECRETS, startBinBoard, UUID, VMS } from '../testkit/bin-board.ts';
import { CLAIMS, type Row, VOLUMES } from '../testkit/storage-plane.ts';

let board: BinBoard;
before(async () => {
  board = await startBinBoard();
});
after(() => board?.stop());

const ALICE = ['alice', 'team'] as const;
const bind = (role: string, user: string, namespace = 'default'): Promise<Row> =>
  board.admin(`POST /apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: `${user}-${role.replace(':', '-')}` },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
  });
const content = async (name: string): Promise<Row> => {
  const { items } = await board.settled(CONTENTS, (list) =>
    list['items']?.some(({ spec }: Row) => spec.virtualMachine.name === name),
  );
  return items.find(({ spec }: Row) => spec.virtualMachine.name === name);
};
/** Lets the space be counted now: it is when something new comes into the bin. */
const count = async (name: string, uuid: string): Promise<void> => {
  await board.machine(name, { uuid });
  await board.remove(name);
};

// S-776: The window is an annotation of the KubeVirt object, holds from the moment it is written, and is refused when
//   it is no duration; a dry run keeps nothing.
test('what was in it when its time is over is released, and a shorter time holds at once', async () => {
  await board.machine('old', { uuid: UUID(1) });
  const handle = await board.handle('old-disk');
  await board.remove('old');
  const { metadata } = await board.record('old');
  const { status } = await board.settled(
    `${RECORDS}/${metadata.name}`,
    (one) => one['status']?.expiresAt !== undefined,
  );
  assert.equal(Date.parse(status.expiresAt) - Date.parse(status.goneAt), 24 * 3_600_000);
  await board.setWindow('48h');
  const later = await board.settled(
    `${RECORDS}/${metadata.name}`,
    (one) => one['status'].expiresAt !== status.expiresAt,
  );
  assert.equal(Date.parse(later['status'].expiresAt) - Date.parse(status.goneAt), 48 * 3_600_000);
  assert.ok(board.pool.volumes.has(handle));
  await board.setWindow('1ms');
  await board.emptied();
  assert.equal(board.pool.volumes.has(handle), false);
  await board.gone(`${RECORDS}/${metadata.name}`);
  await board.reported(metadata.name, 'Expired');
  await board.setWindow(null);
});

// S-776
test('a window that is no duration is refused with its field', async () => {
  const path = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
  const body = { metadata: { annotations: { 'coracle.dev/undelete-window': 'tomorrow' } } };
  const { status, json } = await board.ask(`PATCH ${path}`, { as: ['admin', 'system:masters'], body });
  assert.equal(status, 422);
  assert.equal(json.details.causes[0].field, 'metadata.annotations[coracle.dev/undelete-window]');
});

// S-776
test('a dry run keeps nothing', async () => {
  await board.machine('dry', { uuid: UUID(2) });
  await board.admin(`DELETE ${VMS}/dry?dryRun=All`);
  assert.equal((await board.admin(`GET ${CONTENTS}`)).items.length, 0);
});

// S-777: Tenants list, empty and undelete in their own namespace by the rights of its roles, and see no Secret of a
//   deleted machine; to undelete is a right of its own.
test('whoever may make machines in a namespace lists, empties and undeletes there, and sees no Secret', async () => {
  await bind('edit', 'alice');
  await bind('view', 'bob');
  await board.machine('hers', { uuid: UUID(3) });
  const handle = await board.handle('hers-disk');
  await board.remove('hers');
  const { metadata } = await board.record('hers');
  const path = `${RECORDS}/${metadata.name}`;
  const { name } = (await content('hers'))['metadata'];
  const request = { spec: { undelete: { id: 'x' } } };
  assert.equal((await board.ask(`GET ${path}`, { as: ['bob', 'team'] })).status, 200);
  assert.equal((await board.ask(`PATCH ${path}`, { as: ['bob', 'team'], body: request })).status, 403);
  for (const as of [ALICE, ['bob', 'team'] as const]) {
    assert.equal((await board.ask(`GET ${CONTENTS}/${name}`, { as })).status, 403);
    assert.equal((await board.ask(`GET ${CONTENTS}`, { as })).status, 403);
  }
  // To change a record is not yet the right to undelete.
  const rules = [{ apiGroups: ['coracle.dev'], resources: ['deletedvirtualmachines'], verbs: ['patch'] }];
  const role = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'patcher' },
    rules,
  };
  await board.admin('POST /apis/rbac.authorization.k8s.io/v1/clusterroles', role);
  await bind('patcher', 'carol');
  const refused = await board.ask(`PATCH ${path}`, { as: ['carol', 'team'], body: request });
  assert.equal(refused.status, 403);
  assert.match(refused.json.message, /cannot undelete resource "deletedvirtualmachines"/);
  assert.equal((await board.ask(`PATCH ${path}`, { as: ALICE, body: request })).status, 200);
  await board.settled(`${VMS}/hers`, (vm) => vm['metadata'] !== undefined);
  await board.emptied();
  await board.remove('hers');
  const again = (await board.record('hers'))['metadata'].name;
  assert.equal((await board.ask(`DELETE ${RECORDS}/${again}`, { as: ALICE })).status, 200);
  await board.emptied();
  assert.equal(board.pool.volumes.has(handle), false, 'emptied: its disk is released');
});

// S-950: Who asks for a machine of the bin whose storage is being released already gets an error that says so at once.
test('who asks too late, while its storage is being released, is answered so', async () => {
  await board.machine('late', { uuid: UUID(40) });
  const handle = await board.handle('late-disk');
  await board.remove('late');
  await board.record('late');
  const { metadata } = await content('late');
  const path = `${CONTENTS}/${metadata.name}`;
  board.pool.inUse.add(handle);
  await board.settled(path, ({ status }) => status?.goneAt !== undefined);
  await board.admin(`DELETE ${path}`);
  await board.admin(`PATCH ${path}`, { spec: { undelete: { id: 'late' } } });
  const { status } = await board.settled(path, (one) => one['status']?.failedRequest === 'late');
  assert.match(status.message, /^its retention has expired, or the bin was emptied/);
  board.pool.inUse.delete(handle);
  await board.emptied();
  assert.equal(board.pool.volumes.has(handle), false);
});

// S-778: The bin shows its space and keeps within its bounds, the oldest going first, before a node is under pressure;
//   a volume that cannot be released is tried again.
test('its space is shown, and the oldest goes first when room is needed', async () => {
  await board.machine('first', { uuid: UUID(4) });
  const first = await board.handle('first-disk');
  board.pool.volumes.get(first)!.usedBytes = 600;
  await board.remove('first');
  const { metadata } = await board.record('first');
  await board.settled(`${RECORDS}/${metadata.name}`, ({ status }) => status?.usedBytes === 600);
  await new Promise((resolve) => setTimeout(resolve, 1000 - (Date.now() % 1000)));
  await board.machine('second', { uuid: UUID(5) });
  const second = await board.handle('second-disk');
  board.pool.volumes.get(second)!.usedBytes = 300;
  Object.assign(board.pool, { freeBytes: 50, totalBytes: 2000 });
  await board.remove('second');
  await board.gone(`${RECORDS}/${metadata.name}`);
  await board.settled(CONTENTS, ({ items }) => items.length === 1);
  assert.equal(board.pool.volumes.has(first), false);
  assert.ok(board.pool.volumes.has(second));
  await board.reported(metadata.name, 'ReleasedEarly', /room is needed in pool pool-1/);
  Object.assign(board.pool, { freeBytes: 1e12, totalBytes: 2e12 });
  await board.admin(`DELETE ${CONTENTS}`);
  await board.emptied();
  assert.equal(board.pool.volumes.has(second), false);
});

// S-778
test('a pool that cannot be asked keeps what it holds until it can', async () => {
  await board.machine('away', { uuid: UUID(6) });
  const handle = await board.handle('away-disk');
  await board.remove('away');
  await board.gone(`${VOLUMES}/pvc-${handle}`);
  board.pool.inUse.add(handle);
  const { name } = (await board.record('away'))['metadata'];
  await board.admin(`DELETE ${RECORDS}/${name}`);
  await board.settled(CONTENTS, ({ items }) => /refused: InUse/.test(items[0]?.status?.message));
  board.pool.inUse.clear();
  await board.emptied();
  assert.equal(board.pool.volumes.has(handle), false);
});

// S-779: Machines of a deleted namespace come back, by an administrator, with the claims that they used, into a
//   namespace of that name that is made again and shows nothing of them.
test('with its namespace a machine goes to the administrators, and comes back into one of that name', async () => {
  await count('earlier', UUID(7));
  await board.machine('kept', { uuid: UUID(8) });
  const handle = await board.handle('kept-disk');
  // A claim that the machine only uses goes with the namespace, too.
  await board.admin(`PATCH ${CLAIMS}/kept-disk`, { metadata: { ownerReferences: null } });
  await board.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  const shop = (path: string): string => path.replace('/default/', '/shop/');
  const inShop = await board.admin(`POST ${shop(VMS)}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'till' },
    spec: {
      runStrategy: 'Halted',
      template: {
        spec: {
          domain: { devices: {}, memory: { guest: '64Mi' } },
          volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'till-disk' } }],
        },
      },
    },
  });
  await board.admin(`POST ${shop(CLAIMS)}`, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'till-disk' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  const claim = await board.settled(`${shop(CLAIMS)}/till-disk`, ({ status }) => status?.phase === 'Bound');
  await bind('edit', 'alice', 'shop');
  await board.admin('DELETE /api/v1/namespaces/shop?dryRun=All');
  assert.ok(!(await board.admin(`GET ${CONTENTS}`)).items.some(({ spec }: Row) => spec.virtualMachine.name === 'till'));
  await board.admin('DELETE /api/v1/namespaces/shop');
  await board.gone('/api/v1/namespaces/shop');
  await board.gone(`${VOLUMES}/${claim['spec'].volumeName}`);
  const held = claim['metadata'].uid;
  assert.ok(board.pool.volumes.has(held), 'its disk is kept');
  const { metadata, spec } = await content('till');
  assert.equal(spec.record, undefined);
  const ask = (id: string): Promise<Row> =>
    board.admin(`PATCH ${CONTENTS}/${metadata.name}`, { spec: { undelete: { id } } });
  await ask('one');
  await board.settled(`${CONTENTS}/${metadata.name}`, ({ status }) =>
    /namespace shop does not exist; make it: kubectl create namespace shop/.test(status?.message),
  );
  // Another namespace of the name is another tenant's: nothing of before shows in it.
  await board.admin('POST /api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  assert.equal((await board.admin(`GET ${shop(RECORDS)}`)).items.length, 0);
  await ask('two');
  const vm = await board.settled(`${shop(VMS)}/till`, (one) => one['metadata'] !== undefined);
  assert.notEqual(vm['metadata'].uid, inShop.metadata.uid);
  const back = await board.settled(`${shop(CLAIMS)}/till-disk`, ({ status }) => status?.phase === 'Bound');
  assert.equal(back['metadata'].ownerReferences, undefined, 'it was nobody’s, and is nobody’s');
  assert.equal((await board.admin(`GET ${VOLUMES}/${back['spec'].volumeName}`)).spec.csi.volumeHandle, held);
  assert.ok(board.pool.volumes.has(handle));
});

// S-779
test('a Secret that a machine only names stays where it is', async () => {
  await board.machine('names', { uuid: UUID(9) });
  await board.admin(`PATCH ${SECRETS}/names-login`, { metadata: { ownerReferences: null } });
  await board.admin(`DELETE ${VMS}/names`);
  await board.gone(`${VMS}/names`);
  const { spec } = await content('names');
  assert.deepEqual(
    spec.objects.map(({ kind }: Row) => kind),
    ['VirtualMachine', 'PersistentVolumeClaim'],
  );
  assert.equal((await board.admin(`GET ${SECRETS}/names-login`)).metadata.deletionTimestamp, undefined);
});
