/**
 * The DataVolumes of machines: those of templates are made, and what the volumes name is looked up. DataVolumes are watched
 * from the first machine on that has any, and only where they are served.
 */
import { controllerOf, controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import { orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { Informer } from '@coracle/client/informer/informer';
import type { InformerSet } from '@coracle/client/informer/informer-set';
import type { Clock } from '@coracle/runtime/clock/clock';
import { CDI_GROUP, CDI_VERSION, DATA_VOLUMES, type DataVolume, type ReadonlyDataVolume } from '../../kinds/kinds.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { KEPT_FOR } from '../../rules/data-volume/claim-of-data-volume.ts';
import {
  allowsStart,
  type DiskState,
  dataVolumeNames,
  diskProblem,
  diskState,
} from '../../rules/data-volume/readiness.ts';
import { CREATED_BY_LABEL } from '../../rules/launcher/launcher-labels.ts';
import { RESTORE_NAME_ANNOTATION } from '../../rules/snapshot/restored-claim.ts';
import { makeDataVolume } from './make-data-volume.ts';
import type { SyncFailure } from './vm-status.ts';

export interface DiskReadiness {
  /** Whether an instance may be made. */
  readonly mayStart: boolean;
  readonly state: DiskState;
  /** Why the machine waits; absent when it does not. */
  readonly problem?: string;
  /** Why one of its templates was not made. */
  readonly failure?: SyncFailure;
}

const BY_DATA_VOLUME = 'data volumes';
/** `"false"`: DataVolumes of a halted machine are made when it starts. */
const IMMEDIATE_CREATION = 'kubevirt.io/immediate-data-volume-creation';
/** So long a cluster that does not serve them is not asked again. */
const ABSENT_MS = 30_000;
/** How long a pass waits for the first list of them. */
const SYNC_MS = 5000;
const READY: DiskReadiness = { mayStart: true, state: 'ready' };

export interface MachineDisks {
  /** Makes what is missing and says how it stands. `isWanted`: an instance is to run. */
  sync(vm: VirtualMachine, isWanted: boolean, signal: AbortSignal): Promise<DiskReadiness>;
}

/** `enqueue` has a machine looked at again. */
export function createMachineDisks({
  client,
  events,
  informers,
  clock,
  vms,
  enqueue,
}: {
  readonly client: Client;
  readonly events: EventRecorder;
  readonly informers: InformerSet;
  readonly clock: Clock;
  readonly vms: Informer<VirtualMachine>;
  readonly enqueue: (key: ObjectKey) => void;
}): MachineDisks {
  let watched: Informer<DataVolume> | undefined;
  let absentUntil = 0;
  const watchThem = async (signal: AbortSignal): Promise<Informer<DataVolume> | undefined> => {
    if (!watched) {
      if (clock.monotonic() < absentUntil) return undefined;
      const served = await orAbsent(client.raw('GET', `/apis/${CDI_GROUP}/${CDI_VERSION}`, { signal }));
      if (served === undefined) {
        absentUntil = clock.monotonic() + ABSENT_MS;
        return undefined;
      }
      vms.addIndex(BY_DATA_VOLUME, (vm) => dataVolumeNames(vm).map((name) => `${vm.metadata.namespace}/${name}`));
      watched ??= informers.of(DATA_VOLUMES);
      watched.onChange(({ object: { metadata } }) => {
        for (const vm of vms.byIndex(BY_DATA_VOLUME, `${metadata.namespace}/${metadata.name}`))
          enqueue(keyOf(vm as VirtualMachine));
      });
    }
    if (!watched.isSynced) {
      // A machine waits for them for a moment, and not for what may never come.
      await Promise.race([watched.synced(signal), clock.sleep(SYNC_MS, signal)]);
      if (!watched.isSynced)
        throw new Error(`DataVolumes cannot be read: ${watched.lastError ?? 'the server does not answer'}`);
    }
    return watched;
  };

  /** True when nothing of this template keeps the machine from starting; the reason where it was not made. */
  const ensure = async (
    vm: VirtualMachine,
    name: string,
    found: ReadonlyDataVolume | undefined,
  ): Promise<boolean | SyncFailure> => {
    const { namespace = '' } = vm.metadata;
    if (found) {
      await adopt(client, vm, found);
      return allowsStart(found);
    }
    // A claim that is there already is what the machine boots from.
    if (await orAbsent(client.get(PERSISTENT_VOLUME_CLAIMS, { namespace, name }))) return true;
    const template = vm.spec.dataVolumeTemplates?.find(({ metadata }) => metadata?.name === name);
    return (template && (await makeDataVolume(vm, template, { client, events }))) ?? false;
  };

  return {
    async sync(vm, isWanted, signal) {
      const names = dataVolumeNames(vm);
      if (names.length === 0) return READY;
      const dataVolumes = await watchThem(signal);
      if (!dataVolumes) return READY;
      const { namespace = '' } = vm.metadata;
      const get = (name: string): ReadonlyDataVolume | undefined => dataVolumes.get({ namespace, name });
      const isPostponed = vm.metadata.annotations?.[IMMEDIATE_CREATION] === 'false' && !isWanted;
      let mayStart = true;
      let failure: SyncFailure | undefined;
      // A restore makes those of the machine as it will be.
      const isLeft = isPostponed || vm.status?.restoreInProgress !== undefined;
      for (const { metadata } of isLeft ? [] : (vm.spec.dataVolumeTemplates ?? [])) {
        const outcome = metadata?.name === undefined || (await ensure(vm, metadata.name, get(metadata.name)));
        if (outcome === true) continue;
        mayStart = false;
        if (outcome) failure ??= outcome;
      }
      const there = names.flatMap((name) => get(name) ?? []);
      const problem = diskProblem(there);
      return {
        mayStart,
        state: mayStart || there.length > 0 ? diskState(there) : 'provisioning',
        ...(problem !== undefined && { problem }),
        ...(failure && { failure }),
      };
    },
  };
}

/** One that a restore made for the machine, that was kept for it, or that the machine made and lost, is its own. */
async function adopt(client: Client, vm: VirtualMachine, dataVolume: ReadonlyDataVolume): Promise<void> {
  const { ownerReferences = [], labels, annotations, deletionTimestamp } = dataVolume.metadata;
  const isMade =
    labels?.[CREATED_BY_LABEL] === vm.metadata.uid ||
    annotations?.[RESTORE_NAME_ANNOTATION] !== undefined ||
    annotations?.[KEPT_FOR] === vm.metadata.name;
  if (!isMade || deletionTimestamp !== undefined || controllerOf(dataVolume)) return;
  const after = {
    ...dataVolume,
    metadata: { ...dataVolume.metadata, ownerReferences: [...ownerReferences, controllerReference(vm)] },
  } as DataVolume;
  await commit(client, DATA_VOLUMES, { before: dataVolume, after });
}
