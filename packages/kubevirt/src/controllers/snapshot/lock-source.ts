/** Steps of a snapshot: its source is locked while it is saved, and let go again. */

import type { keyOf } from '@coracle/apimachinery/meta/object';
import { isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import { addFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { DATA_VOLUMES } from '../../kinds/kinds.ts';
import { type ReadonlySnapshot, type ReadonlyVm, VIRTUAL_MACHINES, type VirtualMachine } from '../../kinds/kubevirt.ts';
import { backendStorageClaimOf, needsBackendStorage } from '../../rules/backend-storage/backend-storage.ts';
import { ownerDataVolume } from '../../rules/data-volume/owner-data-volume.ts';
import { lockObstacle, NOT_LOCKED } from '../../rules/snapshot/lock-obstacle.ts';
import { podsWithClaims } from '../../rules/snapshot/pods-with-claims.ts';
import { claimedVolumes } from '../../rules/snapshot/saved-volumes.ts';
import { SOURCE_FINALIZER } from '../../rules/snapshot/snapshot-names.ts';
import { expandedMachine } from './expanded-machine.ts';
import type { SnapshotStores } from './snapshot-stores.ts';
import type { SourceState } from './source-state.ts';

interface Deps {
  readonly client: Client;
  readonly stores: SnapshotStores;
}

/**
 * Locks a source that is not locked: it says which snapshot is taken of it, and does not go meanwhile. Returns the source
 * as it is then, with what keeps it from being locked.
 * @throws ApiError when the API refuses, also when somebody wrote the machine at the same time
 */
export async function lockSource(
  source: SourceState,
  snapshot: ReadonlySnapshot,
  { client, stores }: Deps,
): Promise<SourceState> {
  const obstacle = await findObstacle(source, snapshot, { client, stores });
  if (obstacle !== undefined) return { ...source, lockMessage: `${NOT_LOCKED} ${obstacle}`.trimEnd() };
  let vm = source.vm as VirtualMachine;
  if (vm.status?.snapshotInProgress === undefined) {
    const after = { ...vm, status: { ...vm.status, snapshotInProgress: snapshot.metadata.name ?? '' } };
    vm = (await commit(client, VIRTUAL_MACHINES, { before: vm, after })) ?? vm;
  }
  await commit(client, VIRTUAL_MACHINES, { before: vm, after: addFinalizer(vm, SOURCE_FINALIZER) });
  // The cache will say that it is locked.
  return source;
}

async function findObstacle(
  source: SourceState,
  snapshot: ReadonlySnapshot,
  { client, stores }: Deps,
): Promise<string | undefined> {
  const { vm, online } = source;
  const namespace = vm.metadata.namespace ?? '';
  const all = stores.claims.list(namespace);
  const expanded = await expandedMachine(vm, client);
  const template = expanded.spec.template?.spec;
  // The claim of its firmware state is still to be made.
  if (template && needsBackendStorage(template) && backendStorageClaimOf(vm, all) === undefined) return '';
  const names = claimedVolumes(vm, { expanded, claims: all }).map(({ claim }) => claim);
  const claims = new Map(names.map((name) => [name, stores.claims.get({ namespace, name })]));
  const unpopulated = new Set<string>();
  for (const [name, claim] of claims) {
    const owner = claim && ownerDataVolume(claim);
    if (owner === undefined) continue;
    const dataVolume = await orAbsent(client.get(DATA_VOLUMES, { namespace, name: owner }));
    if (dataVolume?.status?.phase !== 'Succeeded') unpopulated.add(name);
  }
  const pods = podsWithClaims(stores.pods.list(namespace), (name) => claims.has(name)).length;
  return lockObstacle({ vm, snapshotName: snapshot.metadata.name ?? '', online, claims, unpopulated, pods });
}

/**
 * Lets a machine go that says this snapshot is being taken of it: the finalizer first, so that it is never left behind
 * by somebody who does not know of it any more.
 * @throws ApiError when the API refuses, also when somebody wrote the machine at the same time
 */
export async function unlockSource(vm: ReadonlyVm, client: Client): Promise<void> {
  try {
    const before = vm as VirtualMachine;
    const freed =
      (await commit(client, VIRTUAL_MACHINES, { before, after: removeFinalizer(before, SOURCE_FINALIZER) })) ?? before;
    const { snapshotInProgress: _, ...status } = freed.status ?? {};
    await commit(client, VIRTUAL_MACHINES, { before: freed, after: { ...freed, status } });
  } catch (error) {
    // A machine on its way out is gone with its last finalizer.
    if (!isNotFound(error)) throw error;
  }
}

/** Key of a machine's snapshot that is in progress. */
export const keyOfSnapshotInProgress = (vm: ReadonlyVm): ReturnType<typeof keyOf>[] =>
  vm.status?.snapshotInProgress === undefined
    ? []
    : [{ namespace: vm.metadata.namespace ?? '', name: vm.status.snapshotInProgress }];
