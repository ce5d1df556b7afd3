/**
 * Protection beside everybody who deletes for a reason: restores, upgrades of revisions, moves of firmware state, the
 * collector, the namespace controller; and backup tools, walked through one by one, with the ways in which other
 * schemes fail (allow-lists of names, copied labels, finalizers).
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import type { Answer } from '../testkit/in-process-control-plane.ts';
import { type SavedMachines, savedMachines } from '../testkit/saved-machines.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const ON = { [LABEL]: 'true' };
const MERGE = 'application/merge-patch+json';
const WAIT = { timeout: 600_000 };

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let cluster: FakeCluster;
let storage: StoragePlayer;
let words: SavedMachines;
before(async () => {
  cluster = await startFakeCluster({
    nodes: [],
    components:
      'protection,vm,snapshot,garbage-collector-controller,namespace-controller,persistentvolumeclaim-protection-controller',
  });
  storage = playStorage(cluster.client);
  words = savedMachines(cluster.client);
  await eventually('the policy', async () => {
    const { json } = await send('GET', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings');
    return json.items.length > 0 || undefined;
  });
}, WAIT);
after(async () => {
  await storage.stop();
  await cluster.stop();
});

const send = (method: string, path: string, body?: object): Promise<Answer> =>
  cluster.board.send(method, path, body, method === 'PATCH' ? MERGE : undefined);
const accepted = async (method: string, path: string, body?: object): Promise<Any> => {
  const { status, json } = await send(method, path, body);
  assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(json)}`);
  return json;
};
const refused = async (path: string, text: RegExp = /protected VirtualMachine/, body?: object): Promise<void> => {
  const { status, json } = await send('DELETE', path, body);
  assert.ok(status === 403 || status === 422, `${path}: ${status} ${JSON.stringify(json)}`);
  assert.match(json.message, text);
};
const isGone = (path: string): Promise<unknown> =>
  eventually(`${path} is gone`, async () => (await send('GET', path)).status === 404 || undefined);
const core = (resource: string, namespace = 'default'): string => `/api/v1/namespaces/${namespace}/${resource}`;
const vms = (namespace = 'default'): string => `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;
const revisions = (namespace = 'default'): string => `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
const snapshots = (resource: string): string => `/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/${resource}`;
const set = (name: string, labels: object, namespace = 'default'): Promise<Any> =>
  accepted('PATCH', `${vms(namespace)}/${name}`, { metadata: { labels } });
const off = (name: string, namespace = 'default'): Promise<Any> => set(name, { [LABEL]: null }, namespace);
const machine = (name: string, volumes: readonly object[] = [], labels: object = ON, spec: object = {}): Any => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, labels },
  spec: {
    runStrategy: 'Halted',
    ...spec,
    template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, volumes } },
  },
});
const secretVolume = (secretName: string): object => ({ name: 's', secret: { secretName } });
const namespace = (name: string): Promise<Any> => accepted('POST', '/api/v1/namespaces', { metadata: { name } });
const secret = (name: string, where = 'default', metadata: object = {}): Promise<Any> =>
  accepted('POST', core('secrets', where), { metadata: { name, ...metadata }, stringData: { a: name } });
const small = { cpu: { guest: 1 }, memory: { guest: '64Mi' } };
const typed = (name: string, where = 'default', guest = '64Mi'): Promise<Any> =>
  accepted('POST', `/apis/instancetype.kubevirt.io/v1beta1/namespaces/${where}/virtualmachineinstancetypes`, {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineInstancetype',
    metadata: { name },
    spec: { ...small, memory: { guest } },
  });
const withType = (vm: Any, name: string): Any => ({
  ...vm,
  spec: {
    ...vm.spec,
    instancetype: { kind: 'VirtualMachineInstancetype', name },
    template: { spec: { ...vm.spec.template.spec, domain: { devices: {} } } },
  },
});
const captured = (name: string, where = 'default'): Promise<string> =>
  eventually(`${name} has its revision`, async () => {
    const { status } = await accepted('GET', `${vms(where)}/${name}`);
    return status?.instancetypeRef?.controllerRevisionRef?.name as string | undefined;
  });
const ownedBy = ({ kind, apiVersion, metadata }: Any, more: object = {}): object => ({
  ownerReferences: [{ kind, apiVersion, name: metadata.name, uid: metadata.uid, ...more }],
});

describe('controllers do their work on a protected machine', WAIT, () => {
  // S-707: Restores, upgrades of revisions and moves of firmware state work on a protected machine without an exception
  //   for names: only a restore in place under way may replace what the machine names. While a restore is under way
  //   nothing that it needs goes.
  it('a restore: under way nothing that it needs goes, by anybody; then it may', async () => {
    await words.machine('same', ['same-a']);
    await set('same', ON);
    await words.snapshot('s-same', 'same');
    await words.saved('s-same');
    const { items: contents } = await accepted('GET', snapshots('virtualmachinesnapshotcontents'));
    const content = contents.find(({ spec }: Any) => spec.virtualMachineSnapshotName === 's-same');
    const volumeSnapshot = content.spec.volumeBackups[0].volumeSnapshotName;
    const needed = [
      `${snapshots('virtualmachinesnapshots')}/s-same`,
      `${snapshots('virtualmachinesnapshotcontents')}/${content.metadata.name}`,
      `/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots/${volumeSnapshot}`,
    ];
    storage.holds.add('bind');
    const restore = await words.restore('r-same', 's-same', 'same');
    await eventually('it is under way', async () => {
      const { status } = await accepted('GET', `${vms()}/same`);
      return status.restoreInProgress === 'r-same' || undefined;
    });
    for (const path of needed) await refused(path, /VirtualMachineRestore r-same under way/);
    storage.holds.delete('bind');
    await words.restored('r-same');
    const { spec } = await accepted('GET', `${vms()}/same`);
    const claim = spec.template.spec.volumes[0].persistentVolumeClaim.claimName;
    assert.equal(claim, `restore-${restore.metadata.uid}-a`);
    await refused(`${core('persistentvolumeclaims')}/${claim}`);
    // What the machine no longer names is nobody's any more.
    await accepted('DELETE', `${core('persistentvolumeclaims')}/same-a`);
    for (const path of needed) assert.equal((await send('DELETE', `${path}?dryRun=All`)).status, 200);
  });

  // S-707
  it('a restore in place replaces the claim that the machine names, which nobody else may', async () => {
    await words.machine('place', ['place-a']);
    await set('place', ON);
    await words.snapshot('s-place', 'place');
    await words.saved('s-place');
    const path = `${core('persistentvolumeclaims')}/place-a`;
    const { metadata } = await accepted('GET', path);
    await refused(path);
    await words.restore('r-place', 's-place', 'place', { volumeRestorePolicy: 'InPlace' });
    await words.restored('r-place');
    assert.notEqual((await accepted('GET', path)).metadata.uid, metadata.uid);
    await refused(path);
    assert.equal((await accepted('GET', `${vms()}/place`)).metadata.labels[LABEL], 'true');
  });

  // S-707
  it('firmware state comes back: the claim that was replaced goes, the new one stays', async () => {
    await words.claim('tpm-state', { labels: { 'persistent-state-for': 'tpm' } });
    const volumes = [{ name: 'a', persistentVolumeClaim: { claimName: 'tpm-a' } }];
    await words.machine('tpm', ['tpm-a'], {
      template: {
        spec: { domain: { devices: { tpm: { persistent: true } }, memory: { guest: '64Mi' } }, volumes },
      },
    });
    await set('tpm', ON);
    await refused(`${core('persistentvolumeclaims')}/tpm-state`, /label persistent-state-for of the claim/);
    await words.snapshot('s-tpm', 'tpm');
    await words.saved('s-tpm');
    const { metadata } = await words.restore('r-tpm', 's-tpm', 'tpm');
    await words.restored('r-tpm');
    await isGone(`${core('persistentvolumeclaims')}/tpm-state`);
    await refused(`${core('persistentvolumeclaims')}/restore-${metadata.uid}-persistent-state-for-tpm`);
  });

  // S-707
  it('an upgrade of a revision: a new one, the switch, and the old one goes', async () => {
    await typed('kept');
    const vm = await accepted('POST', vms(), withType(machine('upgraded'), 'kept'));
    await captured('upgraded');
    await accepted('POST', revisions(), {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name: 'written-by-an-older-release',
        labels: { 'instancetype.kubevirt.io/object-name': 'kept' },
        ...ownedBy(vm, { controller: true, blockOwnerDeletion: true }),
      },
      data: {
        apiVersion: 'instancetype.kubevirt.io/v1alpha2',
        kind: 'VirtualMachineInstancetype',
        metadata: { name: 'kept', uid: 'u-old', generation: 7 },
        spec: small,
      },
      revision: 0,
    });
    await accepted('PATCH', `${vms()}/upgraded/status`, {
      status: { instancetypeRef: { controllerRevisionRef: { name: 'written-by-an-older-release' } } },
    });
    await isGone(`${revisions()}/written-by-an-older-release`);
    const now = await captured('upgraded');
    assert.match(now, /-u-old-7$/);
    await refused(`${revisions()}/${now}`);
  });

  // S-707
  it('a matcher that is dropped after an expansion: the machine forgets its copy, and that goes', async () => {
    const kubevirt = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
    const policy = (referencePolicy: string | null): Promise<Any> =>
      accepted('PATCH', kubevirt, { spec: { configuration: { instancetype: { referencePolicy } } } });
    await typed('dropped');
    await accepted('POST', vms(), withType(machine('dropped'), 'dropped'));
    const revision = await captured('dropped');
    await policy('expand');
    try {
      await accepted('PATCH', `${vms()}/dropped`, {
        spec: { instancetype: null, template: { spec: { domain: { memory: { guest: '64Mi' } } } } },
      });
      await isGone(`${revisions()}/${revision}`);
      const { status } = await accepted('GET', `${vms()}/dropped`);
      assert.equal(status.instancetypeRef, undefined);
      assert.ok(!status.conditions.some(({ type }: Any) => type === 'Failure'));
    } finally {
      await policy(null);
    }
  });

  // S-708: What a protected machine holds, and the machine, stay when their owners go, without the owner references: no
  //   owner waits for them.
  it('the collector keeps what a protected machine holds, without its owners, and nobody waits for it', async () => {
    const owner = await accepted('POST', core('configmaps'), { metadata: { name: 'owner' } });
    const far = ownedBy(
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: owner.metadata },
      { blockOwnerDeletion: true },
    );
    await secret('held', 'default', far);
    await secret('free', 'default', far);
    const vm = machine('holder', [secretVolume('held')]);
    await accepted('POST', vms(), { ...vm, metadata: { ...vm.metadata, ...far } });
    await accepted('DELETE', `${core('configmaps')}/owner`, { propagationPolicy: 'Foreground' });
    await isGone(`${core('configmaps')}/owner`);
    await isGone(`${core('secrets')}/free`);
    assert.equal((await accepted('GET', `${core('secrets')}/held`)).metadata.ownerReferences, undefined);
    assert.equal((await accepted('GET', `${vms()}/holder`)).metadata.ownerReferences, undefined);
    // Also where the owner is another machine, and goes at once.
    const other = await accepted('POST', vms(), machine('other', [secretVolume('lent')], {}));
    await secret('lent', 'default', ownedBy(other));
    await accepted('PATCH', `${vms()}/holder`, { spec: { template: { spec: { volumes: [secretVolume('lent')] } } } });
    await accepted('DELETE', `${vms()}/other`);
    await isGone(`${vms()}/other`);
    await eventually('it forgets its owner', async () => {
      const { metadata } = await accepted('GET', `${core('secrets')}/lent`);
      return metadata.ownerReferences === undefined || undefined;
    });
  });
});

describe('backup tools', WAIT, () => {
  // S-709: Backup tools: to delete a protected machine first is refused before anything is touched; to write over it
  //   works; parts made before their machine are guarded from the machine's making on; a restored copy in another
  //   namespace is protected there alone.
  it('restore over a protected machine by deletion first: refused before anything is touched', async () => {
    await secret('over');
    await typed('over');
    await accepted('POST', vms(), withType(machine('over', [secretVolume('over')]), 'over'));
    const revision = await captured('over');
    const before = await accepted('GET', `${vms()}/over`);
    await refused(`${vms()}/over`, /VirtualMachine over cannot be deleted/);
    await refused(`${core('secrets')}/over`);
    await refused(`${revisions()}/${revision}`);
    assert.deepEqual((await accepted('GET', `${vms()}/over`)).spec, before.spec);
    assert.equal((await accepted('GET', `${core('secrets')}/over`)).metadata.deletionTimestamp, undefined);
    // By the collection as well: of its namespace nothing goes.
    await refused(vms(), /none of the \d+ objects of the collection was deleted/);
  });

  // S-709
  it('restore over a protected machine by writing it: what was saved is there, protected as it was', async () => {
    const saved = await accepted('GET', `${vms()}/over`);
    await accepted('PATCH', `${vms()}/over`, { metadata: { annotations: { later: 'x' } } });
    // As tools do: with the version that is there now, and all else from what they saved.
    const { resourceVersion } = (await accepted('GET', `${vms()}/over`)).metadata;
    const { uid: _, managedFields: __, ...metadata } = saved.metadata;
    const restored = await accepted('PUT', `${vms()}/over`, { ...saved, metadata: { ...metadata, resourceVersion } });
    assert.equal(restored.metadata.annotations?.later, undefined);
    await refused(`${vms()}/over`, /cannot be deleted/);
  });

  // S-709
  it('unprotect, delete, make again: parts first, then the machine, which guards them from then on', async () => {
    const saved = await accepted('GET', `${vms()}/over`);
    const revision = await accepted('GET', `${revisions()}/${saved.status.instancetypeRef.controllerRevisionRef.name}`);
    await off('over');
    await accepted('DELETE', `${vms()}/over`);
    await isGone(`${vms()}/over`);
    await isGone(`${revisions()}/${revision.metadata.name}`);
    await accepted('DELETE', `${core('secrets')}/over`);
    // A tool keeps names, labels and annotations, and neither uid nor owners.
    await secret('over');
    const { name, labels } = revision.metadata;
    await accepted('POST', revisions(), { ...revision, metadata: { name, labels } });
    const { spec } = saved;
    const instancetype = { ...spec.instancetype, revisionName: name };
    await accepted('POST', vms(), { ...machine('over'), spec: { ...spec, instancetype } });
    for (const path of [`${core('secrets')}/over`, `${revisions()}/${name}`]) await refused(path);
  });

  // S-709
  it('a revision with the uid of a machine that was: collected before the machine is there, kept after', async () => {
    await namespace('stale');
    const stale = (name: string): Any => ({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: {
        name,
        ...ownedBy({
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          metadata: { name: 'vm', uid: 'of-before' },
        }),
      },
      data: {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachineInstancetype',
        metadata: { name: 'x' },
        spec: small,
      },
      revision: 0,
    });
    await accepted('POST', revisions('stale'), stale('vm-x-u-old-1'));
    await isGone(`${revisions('stale')}/vm-x-u-old-1`);
    const vm = withType(machine('vm'), 'x');
    vm.spec.instancetype.revisionName = 'vm-x-u-old-1';
    await accepted('POST', vms('stale'), vm);
    await accepted('PATCH', `${vms('stale')}/vm`, { metadata: { annotations: { note: 'it can be written' } } });
    await accepted('POST', revisions('stale'), stale('vm-x-u-old-1'));
    await eventually('it is kept, without the owner that is no more', async () => {
      const { metadata } = await accepted('GET', `${revisions('stale')}/vm-x-u-old-1`);
      return !metadata.ownerReferences?.some(({ uid }: Any) => uid === 'of-before') || undefined;
    });
    await refused(`${revisions('stale')}/vm-x-u-old-1`);
  });

  // S-709
  it('restore into another namespace: the copy is protected there, and neither holds the other', async () => {
    await namespace('copy');
    await secret('over', 'copy');
    const original = await accepted('GET', `${vms()}/over`);
    const { instancetype: _, ...spec } = original.spec;
    const template = { spec: { ...spec.template.spec, domain: { devices: {}, memory: { guest: '64Mi' } } } };
    const labels = original.metadata.labels;
    await accepted('POST', vms('copy'), {
      ...machine('over'),
      metadata: { name: 'over', labels },
      spec: { ...spec, template },
    });
    await refused(`${core('secrets', 'copy')}/over`, /copy\/over/);
    await refused('/api/v1/namespaces/copy', /copy\/over is in it/);
    await off('over', 'copy');
    await accepted('DELETE', '/api/v1/namespaces/copy');
    await isGone('/api/v1/namespaces/copy');
    await refused(`${core('secrets')}/over`, /default\/over/);
  });
});

describe('where other schemes fail', WAIT, () => {
  // S-710: Protection needs no list of names, no copied labels and no finalizers: unprotected namespaces go, what is
  //   left over can be removed by a person, a part counts as soon as it is named and no longer, and an unprotected
  //   machine that is deleted takes along what it owns.
  it('allow-lists of names: an unprotected namespace with revisions goes, and a person removes what is left over', async () => {
    await namespace('names');
    await typed('t', 'names');
    await accepted('POST', vms('names'), withType(machine('vm', [], {}), 't'));
    const revision = await captured('vm', 'names');
    await accepted('POST', revisions('names'), {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { name: 'left-over', labels: { 'instancetype.kubevirt.io/object-kind': 'VirtualMachineInstancetype' } },
      data: { spec: small },
      revision: 0,
    });
    await accepted('DELETE', `${revisions('names')}/left-over`);
    assert.equal((await send('DELETE', `${revisions('names')}/${revision}?dryRun=All`)).status, 200);
    await accepted('DELETE', '/api/v1/namespaces/names');
    await isGone('/api/v1/namespaces/names');
  });

  // S-710
  it('copied labels: a part counts as soon as it is named, and no label of its own says anything', async () => {
    await namespace('drift');
    for (const name of ['now', 'later', 'labelled'])
      await secret(name, 'drift', { labels: name === 'labelled' ? ON : {} });
    await accepted('POST', vms('drift'), machine('vm', [secretVolume('now')]));
    await refused(`${core('secrets', 'drift')}/now`);
    await accepted('PATCH', `${core('secrets', 'drift')}/now`, { metadata: { labels: { [LABEL]: 'False' } } });
    await refused(`${core('secrets', 'drift')}/now`);
    const volumes = [secretVolume('now'), { ...secretVolume('later'), name: 't' }];
    await accepted('PATCH', `${vms('drift')}/vm`, { spec: { template: { spec: { volumes } } } });
    await refused(`${core('secrets', 'drift')}/later`);
    await accepted('DELETE', `${core('secrets', 'drift')}/labelled`);
    await off('vm', 'drift');
    for (const name of ['now', 'later']) await accepted('DELETE', `${core('secrets', 'drift')}/${name}`);
    await accepted('DELETE', '/api/v1/namespaces/drift');
  });

  // S-710
  it('a machine whose label came off and that is deleted in the foreground takes along all it owns', async () => {
    await typed('fg');
    const vm = await accepted('POST', vms(), withType(machine('fg', [secretVolume('fg')]), 'fg'));
    const revision = await captured('fg');
    await secret('fg', 'default', ownedBy(vm, { blockOwnerDeletion: true }));
    await off('fg');
    await accepted('DELETE', `${vms()}/fg`, { propagationPolicy: 'Foreground' });
    for (const path of [`${vms()}/fg`, `${core('secrets')}/fg`, `${revisions()}/${revision}`]) await isGone(path);
  });

  // S-710
  it('finalizers: none is set, on the machine or on its parts', async () => {
    const own = ['kubevirt.io/virtualMachineControllerFinalize'];
    const vm = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name: 'over' });
    assert.deepEqual(vm.metadata.finalizers, own);
    assert.equal((await accepted('GET', `${core('secrets')}/over`)).metadata.finalizers, undefined);
    assert.deepEqual((await accepted('GET', '/api/v1/namespaces/default')).spec.finalizers, ['kubernetes']);
  });
});
