/** One snapshot, or one restore, whose controller is killed after a given write; another one takes over. */
import assert from 'node:assert/strict';
import { PERSISTENT_VOLUME_CLAIMS } from '../../src/api/kinds/builtin/resource-types.ts';
import {
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
} from '../../src/api/kinds/kubevirt/kubevirt.ts';
import { VOLUME_SNAPSHOTS } from '../../src/api/kinds/volume-snapshot/kinds.ts';
import { runUntilWrite } from './crashing-component.ts';
import { type FakeCluster, startFakeCluster } from './fake-cluster.ts';
import { eventually } from './fake-node.ts';
import { key, type SavedMachines, savedMachines } from './saved-machines.ts';
import { playStorage } from './storage-player.ts';

export interface CrashBoard {
  /** Takes a snapshot of a new machine; true when the controller was done before it was to be killed. */
  snapshot(after: number): Promise<boolean>;
  /** Restores to the same machine, or a new one. */
  restore(after: number, target: 'same' | 'in-place' | 'new'): Promise<boolean>;
  /** Deletes a snapshot while it is being taken. */
  deleteSnapshot(after: number): Promise<boolean>;
  stop(): Promise<void>;
}

export async function startCrashBoard(): Promise<CrashBoard> {
  const cluster = await startFakeCluster({
    nodes: [],
    components: 'vm,garbage-collector-controller,persistentvolumeclaim-protection-controller',
  });
  const storage = playStorage(cluster.client);
  const words = savedMachines(cluster.client);
  let serial = 0;
  /** Runs it until it is killed or `done`, then another one until `done`. */
  const run = async (after: number, done: () => Promise<unknown>): Promise<boolean> => {
    const first = runUntilWrite(cluster.board, 'snapshot', after);
    const outcome = await Promise.race([first.crashed.then(() => 'crashed'), done().then(() => 'done')]);
    await first.stop();
    if (outcome === 'done') return true;
    const second = runUntilWrite(cluster.board, 'snapshot', Number.POSITIVE_INFINITY);
    try {
      await done();
    } catch (error) {
      throw new Error(`after ${first.writes.join('; ')}: ${(error as Error).message}`);
    } finally {
      await second.stop();
    }
    return false;
  };
  const saved = async (vm: string, name: string): Promise<void> => {
    const whole = runUntilWrite(cluster.board, 'snapshot', Number.POSITIVE_INFINITY);
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
      const whole = runUntilWrite(cluster.board, 'snapshot', Number.POSITIVE_INFINITY);
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
    async stop() {
      await storage.stop();
      await cluster.stop();
    },
  };
}

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
