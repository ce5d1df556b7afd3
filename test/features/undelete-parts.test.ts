/**
 * What went with a deleted machine comes back with it, kind by kind, under its name, under another one, and beside a new
 * machine of its name; and it is what the machine starts with.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type BinBoard, RECORDS, SECRETS, startBinBoard, UUID, VMS } from '../testkit/bin-board.ts';
import { CLAIMS, type Row, VOLUMES } from '../testkit/storage-plane.ts';

const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const TYPES = '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const PODS = '/api/v1/namespaces/default/pods';
const STATE = 'persistent-state-for';

let board: BinBoard;
before(async () => {
  board = await startBinBoard([
    'bin',
    'vm',
    'vmi',
    'garbage-collector-controller',
    'local-volume-sweeper',
    'resourcequota-controller',
  ]);
  await board.admin('POST /api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
});
after(() => board?.stop());

const ownedBy = ({ metadata }: Row): object => ({
  ownerReferences: [
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: metadata.name, uid: metadata.uid, controller: true },
  ],
});
const ownerOf = ({ metadata }: Row): unknown => metadata.ownerReferences?.map(({ uid }: Row) => uid);
const bound = (claim: string): Promise<Row> =>
  board.settled(`${CLAIMS}/${claim}`, ({ status }) => status?.phase === 'Bound');
const back = (name: string): Promise<Row> => board.settled(`${VMS}/${name}`, ({ metadata }) => metadata !== undefined);
const template = (more: object, domain: object = {}): object => ({
  spec: { domain: { devices: {}, memory: { guest: '64Mi' }, ...domain }, ...more },
});
const volumes = (...list: object[]): object => ({ template: template({ volumes: list }) });
const start = async (name: string): Promise<Row> => {
  await board.admin(`PATCH ${VMS}/${name}`, { spec: { runStrategy: 'Always' } });
  return board.settled(`${VMIS}/${name}`, ({ spec }) => spec !== undefined);
};
/** Claims that the Pod of the instance mounts. */
const mounted = async (name: string): Promise<string[]> => {
  await start(name);
  const { items } = await board.settled(PODS, (list) =>
    list['items']?.some(({ metadata }: Row) => metadata.ownerReferences?.[0]?.name === name),
  );
  return items
    .filter(({ metadata }: Row) => metadata.ownerReferences?.[0]?.name === name)
    .flatMap(({ spec }: Row) => spec.volumes ?? [])
    .flatMap((volume: Row) => volume['persistentVolumeClaim']?.claimName ?? []);
};
const make = (path: string, object: object): Promise<Row> => board.admin(`POST ${path}`, object);

interface Part {
  readonly what: string;
  /** Of the machine, beside what the board gives it. */
  readonly spec: (name: string) => object;
  /** Makes what goes with the machine; returns what `check` compares with. */
  readonly give: (vm: Row) => Promise<Row>;
  /** Between the deletion and the return. */
  readonly meanwhile?: (given: Row, name: string) => Promise<void>;
  readonly check: (vm: Row, given: Row) => Promise<void>;
}

const captured = async (name: string): Promise<Row> => {
  const { status } = await board.settled(
    `${VMS}/${name}`,
    ({ status: now }) => now?.instancetypeRef?.controllerRevisionRef && now.preferenceRef?.controllerRevisionRef,
  );
  return [status.instancetypeRef, status.preferenceRef].map(({ controllerRevisionRef }) => controllerRevisionRef.name);
};
const resize = async (name: string, cores: number): Promise<void> => {
  for (const [kind, spec] of [
    ['Instancetype', { cpu: { guest: cores }, memory: { guest: `${cores * 64}Mi` } }],
    ['Preference', { devices: { preferredAutoattachGraphicsDevice: cores !== 2 } }],
  ] as const) {
    const path = `${TYPES}/virtualmachine${kind.toLowerCase()}s`;
    await board.ask(`DELETE ${path}/${name}`, { as: ['admin', 'system:masters'] });
    await make(path, {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: `VirtualMachine${kind}`,
      metadata: { name },
      spec,
    });
  }
};

const revisions: Part = {
  what: 'the copies of its instance type and preference',
  spec: (name) => ({
    instancetype: { kind: 'VirtualMachineInstancetype', name },
    preference: { kind: 'VirtualMachinePreference', name },
    template: { spec: { domain: { devices: {} } } },
  }),
  async give(vm) {
    const names = (await captured(vm['metadata'].name)) as unknown as string[];
    return {
      names,
      data: await Promise.all(names.map(async (one) => (await board.admin(`GET ${REVISIONS}/${one}`)).data)),
    };
  },
  async meanwhile({ names }, name) {
    for (const one of names) await board.gone(`${REVISIONS}/${one}`);
    await resize(name, 4);
  },
  async check(vm, { names, data }) {
    const { name } = vm['metadata'];
    assert.deepEqual([vm['spec'].instancetype.revisionName, vm['spec'].preference.revisionName], names);
    for (const [index, one] of names.entries()) {
      const revision = await board.admin(`GET ${REVISIONS}/${one}`);
      assert.deepEqual(revision.data, data[index]);
      assert.deepEqual(ownerOf(revision), [vm['metadata'].uid]);
    }
    const { spec } = await start(name);
    assert.equal(spec.domain.cpu.sockets, 2, 'the hardware of before, not that of today');
    assert.equal(spec.domain.memory.guest, '128Mi');
    assert.equal(spec.domain.devices.autoattachGraphicsDevice, false);
    const { status } = await board.settled(`${VMS}/${name}`, (now) => now['status'] !== undefined);
    assert.equal(
      status.conditions?.find(({ type }: Row) => type === 'Failure'),
      undefined,
    );
  },
};

/** The claim that keeps TPM and EFI variables, under a name and with labels. */
const firmwareState = (what: string, nameOf: (name: string) => string, isLabelled: boolean): Part => ({
  what,
  spec: (name) => ({
    template: template(
      { volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: `${name}-disk` } }] },
      {
        devices: { tpm: { persistent: true } },
        firmware: { bootloader: { efi: { persistent: true, secureBoot: false } } },
      },
    ),
  }),
  async give(vm) {
    const { name } = vm['metadata'];
    const claim = nameOf(name);
    await board.claim(claim, { volumeMode: 'Filesystem' });
    const labels = isLabelled ? { [STATE]: name } : {};
    await board.admin(`PATCH ${CLAIMS}/${claim}`, { metadata: { labels, ...ownedBy(vm) } });
    await bound(claim);
    return { claim, handle: await board.handle(claim) };
  },
  async meanwhile({ claim }) {
    await board.gone(`${CLAIMS}/${claim}`);
  },
  async check(vm, { handle }) {
    const { name, uid } = vm['metadata'];
    const { items } = await board.admin(`GET ${CLAIMS}?labelSelector=${STATE}%3D${name}`);
    assert.equal(items.length, 1, 'one claim says that it is the state of this machine');
    const [state] = items;
    assert.deepEqual(ownerOf(state), [uid]);
    assert.equal(await board.handle(state.metadata.name), handle);
    assert.deepEqual((await mounted(name)).sort(), [state.metadata.name, diskOf(vm)].sort());
  },
});
const diskOf = (vm: Row): string => vm['spec'].template.spec.volumes[0].persistentVolumeClaim.claimName;

/** An object of plain content that the machine names and owns. */
const plain = (row: {
  what: string;
  path: string;
  volume: (name: string) => object;
  named: (volume: Row) => string;
  object: Row;
}): Part => ({
  what: row.what,
  spec: (name) => volumes({ name: 'part', ...row.volume(`${name}-part`) }),
  async give(vm) {
    const metadata = { name: `${vm['metadata'].name}-part`, labels: { part: 'yes' }, annotations: { note: 'mine' } };
    return make(row.path, { apiVersion: 'v1', ...row.object, metadata: { ...metadata, ...ownedBy(vm) } });
  },
  async meanwhile({ metadata }) {
    await board.gone(`${row.path}/${metadata.name}`);
  },
  async check(vm, given) {
    const name = row.named(vm['spec'].template.spec.volumes[0]);
    const { metadata, ...now } = await board.admin(`GET ${row.path}/${name}`);
    const { metadata: _, ...earlier } = given;
    assert.deepEqual(now, earlier);
    assert.notEqual(metadata.uid, given['metadata'].uid);
    assert.deepEqual([metadata.labels, metadata.annotations], [{ part: 'yes' }, { note: 'mine' }]);
    assert.deepEqual(ownerOf({ metadata }), [vm['metadata'].uid]);
  },
});

/** A volume of a driver that is not ours, for a claim of the machine. */
const foreignVolume = async (vm: Row, policy: string): Promise<Row> => {
  const claim = `${vm['metadata'].name}-data`;
  const name = `volume-${vm['metadata'].uid}`;
  await make(VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels: { made: 'elsewhere' } },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      csi: { driver: 'csi.example.com', volumeHandle: name },
      persistentVolumeReclaimPolicy: policy,
      storageClassName: 'elsewhere',
    },
  });
  await board.claim(claim, { accessModes: ['ReadWriteOnce'], storageClassName: 'elsewhere', volumeName: name });
  await board.admin(`PATCH ${CLAIMS}/${claim}`, { metadata: ownedBy(vm) });
  await bound(claim);
  return board.admin(`GET ${VOLUMES}/${name}`);
};
const withData = (name: string): object =>
  volumes({ name: 'data', persistentVolumeClaim: { claimName: `${name}-data` } });

const retained = (what: string, give: (vm: Row) => Promise<Row>): Part => ({
  what,
  spec: withData,
  give,
  async meanwhile({ metadata }) {
    await board.settled(`${VOLUMES}/${metadata.name}`, ({ status }) => status?.phase === 'Released');
  },
  async check(vm, given) {
    const claim = await bound(diskOf(vm));
    assert.equal(claim['spec'].volumeName, given['metadata'].name);
    assert.deepEqual(ownerOf(claim), [vm['metadata'].uid]);
    const now = await board.admin(`GET ${VOLUMES}/${given['metadata'].name}`);
    assert.equal(now.metadata.uid, given['metadata'].uid, 'the very volume: it never went');
    assert.equal(now.spec.persistentVolumeReclaimPolicy, 'Retain');
    assert.equal(now.spec.claimRef.uid, claim['metadata'].uid);
    assert.deepEqual(now.spec.csi, given['spec'].csi);
  },
});

const PARTS: readonly Part[] = [
  revisions,
  firmwareState('its firmware state', (name) => `${STATE}-${name}-x7k2p`, true),
  firmwareState('its firmware state, as KubeVirt once named it', (name) => `${STATE}-${name}`, false),
  plain({
    what: 'a ConfigMap',
    path: CONFIG_MAPS,
    volume: (name) => ({ configMap: { name } }),
    named: (volume) => volume['configMap'].name,
    object: { kind: 'ConfigMap', data: { a: 'b' }, binaryData: { c: '/wA=' }, immutable: true },
  }),
  plain({
    what: 'a Secret with its type',
    path: SECRETS,
    volume: (secretName) => ({ secret: { secretName } }),
    named: (volume) => volume['secret'].secretName,
    object: { kind: 'Secret', type: 'example.com/key', data: { key: '/wA=' }, immutable: true },
  }),
  retained('a volume of another driver with policy Retain', (vm) => foreignVolume(vm, 'Retain')),
  retained('a volume of ours with policy Retain', async (vm) => {
    const claim = `${vm['metadata'].name}-data`;
    await board.claim(claim);
    const { spec } = await bound(claim);
    await board.admin(`PATCH ${CLAIMS}/${claim}`, { metadata: ownedBy(vm) });
    return board.admin(`PATCH ${VOLUMES}/${spec.volumeName}`, { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
  }),
];

/** How it comes back; `beside`: a new machine has its name and has parts of the same names. */
const WAYS = [
  { how: 'under its name', rename: false, beside: false },
  { how: 'under another name', rename: true, beside: false },
  { how: 'beside a new machine of its name', rename: true, beside: true },
];

let count = 0;
// S-783: With a machine come back the copies of its instance type and preference, named in its spec, and it starts
//   with that hardware, whatever the objects say by then; its ConfigMaps and Secrets with type, content, labels and
//   annotations. All are the new machine's, under its name, under another, and beside a new machine of its name with
//   parts of the same names.
// S-784: Its firmware state comes back under every name, also of a claim that has no label yet, and of two claims the
//   newer one: one claim has the label of the new name, and the launcher Pod mounts it.
// S-785: A volume with reclaim policy Retain, ours or another driver's, is bound to the machine's claim again without
//   being made anew, whoever has a claim of the old name by then; an undelete that is taken back leaves it released,
//   and no other claim gets it.
for (const part of PARTS)
  for (const { how, rename, beside } of WAYS)
    test(`${part.what} comes back ${how}`, { timeout: 600_000 }, async () => {
      const name = `part-${++count}`;
      const options = () => ({ spec: { runStrategy: 'Halted', ...part.spec(name) } });
      await resize(name, 2);
      const given = await part.give(await board.machine(name, options()));
      await board.remove(name);
      await part.meanwhile?.(given, name);
      if (beside) await part.give(await board.machine(name, options()));
      const next = rename ? `${name}-again` : name;
      await board.undelete(name, rename ? { name: next } : {});
      const vm = await back(next);
      await board.emptied();
      await part.check(vm, given);
    });

const failed = async (name: string, message: RegExp): Promise<void> => {
  const { metadata, spec } = await board.record(name);
  await board.settled(
    `${RECORDS}/${metadata.name}`,
    ({ status }) => status?.failedRequest === spec.undelete.id && message.test(status.message),
  );
};

// S-785
test('a volume with policy Retain is nobody’s again when the undelete is taken back', {
  timeout: 600_000,
}, async () => {
  const given = await foreignVolume(await board.machine('held', { uuid: UUID(1), spec: withData('held') }), 'Retain');
  const path = `${VOLUMES}/${given['metadata'].name}`;
  await board.remove('held');
  const released = await board.settled(path, ({ status }) => status?.phase === 'Released');
  const quota = '/api/v1/namespaces/default/resourcequotas';
  await make(quota, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'none' },
    spec: { hard: { 'requests.storage': '0' } },
  });
  await board.settled(`${quota}/none`, ({ status }) => status?.hard !== undefined);
  await board.undelete('held', { name: 'held-again' });
  await failed('held', /exceeded quota/);
  const record = `${RECORDS}/${(await board.record('held'))['metadata'].name}`;
  await board.settled(record, ({ status }) => status.phase === 'Deleted');
  assert.deepEqual((await board.admin(`GET ${path}`)).spec.claimRef.uid, released['spec'].claimRef.uid);
  await board.admin(`DELETE ${quota}/none`);
  await board.undelete('held', { name: 'held-again' });
  await back('held-again');
  await board.emptied();
  assert.equal((await bound('held-data'))['spec'].volumeName, given['metadata'].name);
});

// S-786: A volume of another driver with policy Delete is lost: the answer names the claim, the volume and who deleted
//   it, before anything is made.
test('a volume of another driver with policy Delete is lost, which is said before anything is made', {
  timeout: 600_000,
}, async () => {
  const given = await foreignVolume(await board.machine('lost', { uuid: UUID(2), spec: withData('lost') }), 'Delete');
  const name = given['metadata'].name;
  await board.remove('lost');
  await board.gone(`${CLAIMS}/lost-data`);
  // What its driver does.
  await board.admin(`DELETE ${VOLUMES}/${name}`);
  await board.gone(`${VOLUMES}/${name}`);
  await board.undelete('lost');
  await failed(
    'lost',
    /disk of claim lost-data is lost: its storage, which Coracle does not manage, deleted volume volume-/,
  );
  for (const path of [`${VMS}/lost`, `${CLAIMS}/lost-disk`, `${CLAIMS}/lost-data`, `${SECRETS}/lost-login`])
    assert.equal((await board.ask(`GET ${path}`, { as: ['admin', 'system:masters'] })).status, 404, path);
  await board.admin(`DELETE ${RECORDS}/${(await board.record('lost'))['metadata'].name}`);
  await board.emptied();
});
