/** One snapshot, restore, clone or fork, a controller of which is killed after a given write; another one takes over. */
import assert from 'node:assert/strict';
import { deepEqual } from '../../packages/apimachinery/src/meta/deep-equal.ts';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { VOLUME_SNAPSHOTS } from '../../packages/cluster-rules/src/volume-snapshot/kinds.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { crashOnce, runUntilWrite } from './crashing-component.ts';
import { eventually } from './eventually.ts';
import { type FakeCluster, startFakeCluster } from './fake-cluster.ts';
import { playMemory } from './play-memory.ts';
import { key, type SavedMachines, savedMachines } from './saved-machines.ts';
import { playStorage } from './storage-player.ts';

export interface CrashBoard {
  /** Takes a snapshot of a new machine; true when the controller was done before it was to be killed. */
  snapshot(after: number): Promise<boolean>;
  /** Restores to the same machine, or a new one. */
  restore(after: number, target: 'same' | 'in-place' | 'new'): Promise<boolean>;
  /** Deletes a snapshot while it is being taken. */
  deleteSnapshot(after: number): Promise<boolean>;
  /** Clones a machine with two claims; either of the two controllers at work is the one that is killed. */
  clone(after: number, killed: 'clone' | 'snapshot'): Promise<boolean>;
  /** Forks a machine that runs, with a claim. */
  fork(after: number, killed: 'memory' | 'snapshot'): Promise<boolean>;
  stop(): Promise<void>;
}

export async function startCrashBoard(): Promise<CrashBoard> {
  const cluster = await startFakeCluster({
    nodes: ['node-1'],
    components: 'vm,vmi,scheduler,garbage-collector-controller,persistentvolumeclaim-protection-controller',
  });
  const storage = playStorage(cluster.client);
  const words = savedMachines(cluster.client);
  let serial = 0;
  const agent = playMemory();
  const start = (after: number, killed = 'snapshot') => runUntilWrite(cluster.board, killed, after, agent);
  const run = (after: number, done: () => Promise<unknown>, killed = 'snapshot'): Promise<boolean> =>
    crashOnce((writes) => start(writes, killed), after, done);
  const saved = async (vm: string, name: string): Promise<void> => {
    const whole = start(Number.POSITIVE_INFINITY);
    await words.machine(vm, [`${vm}-a`, `${vm}-b`]);
    await words.snapshot(name, vm);
    await words.saved(name);
    await whole.stop();
  };
  return {
    async snapshot(after) {
      const vm = `v${++serial}`;
      await words.machine(vm, [`${vm}-a`, `${vm}-b`]);
      await words.snapshot(`s-${vm}`, vm);
      const ended = await run(after, () => words.saved(`s-${vm}`));
      await isUnlocked(words, vm);
      const { metadata, status } = await cluster.client.get(VIRTUAL_MACHINE_SNAPSHOTS, key(`s-${vm}`));
      assert.equal(status?.phase, 'Succeeded');
      assert.equal((await namesWith(cluster, metadata.uid ?? '')).length, 3, 'one content, two VolumeSnapshots');
      return ended;
    },
    async deleteSnapshot(after) {
      const vm = `v${++serial}`;
      await words.machine(vm, [`${vm}-a`]);
      storage.holds.add('snapshot');
      const { metadata } = await words.snapshot(`s-${vm}`, vm);
      const whole = start(Number.POSITIVE_INFINITY);
      await eventually('VolumeSnapshot', async () =>
        (await namesWith(cluster, metadata.uid ?? '')).length === 2 ? true : undefined,
      );
      await whole.stop();
      await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key(`s-${vm}`));
      const ended = await run(after, () =>
        eventually('all gone', async () => {
          const { items } = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOTS);
          const left = items.filter((each) => each.metadata.name === `s-${vm}`).length;
          return left + (await namesWith(cluster, metadata.uid ?? '')).length === 0 ? true : undefined;
        }),
      );
      storage.holds.clear();
      await isUnlocked(words, vm);
      return ended;
    },
    async restore(after, target) {
      const vm = `v${++serial}`;
      await saved(vm, `s-${vm}`);
      const to = target === 'new' ? `${vm}-new` : vm;
      const policy = target === 'in-place' ? { volumeRestorePolicy: 'InPlace' } : {};
      await words.restore(`r-${vm}`, `s-${vm}`, to, policy);
      const ended = await run(after, () => words.restored(`r-${vm}`));
      const { metadata, status } = await cluster.client.get(VIRTUAL_MACHINE_RESTORES, key(`r-${vm}`));
      const machine = await words.vm(to);
      assert.equal(machine.status?.restoreInProgress, undefined);
      assert.equal(machine.metadata.annotations?.['restore.kubevirt.io/lastRestoreUID'], `r-${vm}-${metadata.uid}`);
      const made = status?.restores?.map((each) => each.persistentVolumeClaim) ?? [];
      assert.deepEqual(
        machine.spec.template.spec?.volumes?.flatMap((each) => each.persistentVolumeClaim?.claimName ?? []),
        made,
      );
      const { items } = await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default' });
      const marked = items.filter((each) => each.metadata.annotations?.['restore.kubevirt.io/name'] === `r-${vm}`);
      assert.deepEqual(
        marked.map((each) => each.metadata.name),
        made,
        'no claim but those in use',
      );
      for (const claim of marked) assert.equal(claim.metadata.ownerReferences?.[0]?.uid, machine.metadata.uid);
      return ended;
    },
    async clone(after, killed) {
      const vm = `v${++serial}`;
      await words.machine(vm, [`${vm}-a`, `${vm}-b`]);
      const before = await objectsOf(cluster);
      const other = runUntilWrite(cluster.board, killed === 'clone' ? 'snapshot' : 'clone', Number.POSITIVE_INFINITY);
      await cluster.client.create(VIRTUAL_MACHINE_CLONES, {
        apiVersion: 'clone.kubevirt.io/v1beta1',
        kind: 'VirtualMachineClone',
        metadata: { name: `c-${vm}`, namespace: 'default' },
        spec: {
          source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vm },
          target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: `${vm}-new` },
        },
      });
      const done = async (): Promise<void> => {
        await words.until(
          VIRTUAL_MACHINE_CLONES,
          `c-${vm}`,
          ({ status }) => status?.phase === 'Succeeded' && !status.snapshotName && !status.restoreName,
        );
        const made = await words.vm(`${vm}-new`);
        assert.equal(volumesOf(made).filter((each) => each.persistentVolumeClaim).length, 2);
        await onlyClaimsAreNew(cluster, before, made);
      };
      const ended = await run(after, done, killed).finally(() => other.stop());
      await isUnlocked(words, vm);
      await isUnlocked(words, `${vm}-new`);
      assert.notEqual(uuidOf(await words.vm(`${vm}-new`)), uuidOf(await words.vm(vm)));
      await cluster.client.delete(VIRTUAL_MACHINE_CLONES, key(`c-${vm}`));
      return ended;
    },
    async fork(after, killed) {
      const vm = `v${++serial}`;
      await words.machine(vm, [`${vm}-a`], { runStrategy: 'Always' });
      const running = (name: string) =>
        eventually(`${name} runs`, async () => {
          const vmi = await cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key(name)).catch(ifAbsent);
          return vmi?.status?.phase === 'Running' ? vmi : undefined;
        });
      const { metadata } = await running(vm);
      const before = await objectsOf(cluster);
      const other = runUntilWrite(
        cluster.board,
        killed === 'memory' ? 'snapshot' : 'memory',
        Number.POSITIVE_INFINITY,
        agent,
      );
      const annotations = { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': `${vm}-new` };
      await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
        apiVersion: 'snapshot.kubevirt.io/v1beta1',
        kind: 'VirtualMachineSnapshot',
        metadata: { name: `f-${vm}`, namespace: 'default', annotations },
        spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: vm } },
      });
      const done = async (): Promise<void> => {
        await running(`${vm}-new`);
        await onlyClaimsAreNew(cluster, before, await words.vm(`${vm}-new`));
      };
      const ended = await run(after, done, killed).finally(() => other.stop());
      await isUnlocked(words, vm);
      assert.deepEqual([...agent.states], [], 'saved memory');
      assert.equal((await running(vm)).metadata.uid, metadata.uid, 'the source goes on');
      assert.notEqual(uuidOf(await words.vm(`${vm}-new`)), uuidOf(await words.vm(vm)));
      for (const name of [vm, `${vm}-new`])
        await cluster.client.patch(VIRTUAL_MACHINES, key(name), {
          type: 'merge',
          body: { spec: { runStrategy: 'Halted' } },
        });
      return ended;
    },
    async stop() {
      await storage.stop();
      await cluster.stop();
    },
  };
}

function ifAbsent(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

const uuidOf = ({ spec }: VirtualMachine): string => spec.template.spec?.domain.firmware?.uuid ?? '';

/** What clones and forks make on their way, and claims; as `resource name`. */
async function objectsOf(cluster: FakeCluster): Promise<string[]> {
  const types = [
    VIRTUAL_MACHINE_SNAPSHOTS,
    VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
    VIRTUAL_MACHINE_RESTORES,
    VOLUME_SNAPSHOTS,
    PERSISTENT_VOLUME_CLAIMS,
  ] as readonly ResourceType<KubeObject>[];
  const lists = await Promise.all(
    types.map(async (type) => {
      const { items } = await cluster.client.list(type, { namespace: 'default' });
      return items.map(({ metadata }) => `${type.resource} ${metadata.name}`);
    }),
  );
  return lists.flat();
}

/** Waits until nothing is there that was not before, but the claims of the machine, which are its own. */
async function onlyClaimsAreNew(
  cluster: FakeCluster,
  before: readonly string[],
  machine: VirtualMachine,
): Promise<void> {
  const claims = volumesOf(machine).flatMap((each) => each.persistentVolumeClaim?.claimName ?? []);
  const wanted = [...before, ...claims.map((name) => `${PERSISTENT_VOLUME_CLAIMS.resource} ${name}`)].sort();
  let last: string[] = [];
  await eventually('nothing is left over', async () => {
    last = (await objectsOf(cluster)).sort();
    return deepEqual(last, wanted);
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${last.filter((each) => !wanted.includes(each)).join(', ')}`);
  });
  for (const name of claims) {
    const claim = await cluster.client.get(PERSISTENT_VOLUME_CLAIMS, key(name));
    assert.equal(claim.metadata.ownerReferences?.[0]?.uid, machine.metadata.uid, name);
  }
}

const volumesOf = ({ spec }: VirtualMachine) => spec.template.spec?.volumes ?? [];

/** Contents and VolumeSnapshots of a snapshot. */
async function namesWith(cluster: FakeCluster, uid: string): Promise<string[]> {
  const contents = await cluster.client.list(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, { namespace: 'default' });
  const taken = await cluster.client.list(VOLUME_SNAPSHOTS, { namespace: 'default' });
  return [...contents.items, ...taken.items].flatMap(({ metadata }) =>
    metadata.name?.includes(uid) ? [metadata.name] : [],
  );
}

async function isUnlocked(words: SavedMachines, vm: string): Promise<void> {
  await words.until(
    VIRTUAL_MACHINES,
    vm,
    ({ metadata, status }) =>
      status?.snapshotInProgress === undefined &&
      !metadata.finalizers?.some((each) => each.startsWith('snapshot.kubevirt.io/')),
  );
}
