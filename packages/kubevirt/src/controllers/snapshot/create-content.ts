/** Step of a snapshot: what is saved is written down, before anything is saved. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { ObjectMeta } from '@coracle/apimachinery/meta/object';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, orThere } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import {
  type ReadonlySnapshot,
  SNAPSHOT_GROUP,
  SNAPSHOT_VERSION,
  type SourceVirtualMachine,
  VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  type VirtualMachine,
  type VolumeBackup,
} from '../../kinds/kubevirt.ts';
import {
  CAPTURED_FIELDS,
  type CapturedField,
  copiedRevisionName,
  copyRevision,
  savedMachine,
  withCopies,
} from '../../rules/snapshot/saved-machine.ts';
import { claimedVolumes } from '../../rules/snapshot/saved-volumes.ts';
import { CONTENT_FINALIZER, contentNameOf, volumeSnapshotName } from '../../rules/snapshot/snapshot-names.ts';
import { expandedMachine } from './expanded-machine.ts';
import type { SnapshotStores } from './snapshot-stores.ts';
import type { SourceState } from './source-state.ts';

/**
 * Makes the content of a snapshot whose source is locked. May be repeated: what is there already is kept.
 * @throws Error when the start revision of a running machine is missing or a VolumeSnapshotClass cannot be chosen
 */
export async function createContent(
  source: SourceState,
  snapshot: ReadonlySnapshot,
  deps: { readonly client: Client; readonly stores: SnapshotStores; readonly events: EventRecorder },
): Promise<void> {
  const { client, events } = deps;
  const namespace = snapshot.metadata.namespace ?? '';
  const name = contentNameOf(snapshot);
  const backups = await volumeBackups(source, snapshot, deps);
  const machine = await captureRevisions(savedMachine(source.vm, await startedSpec(source, client)), snapshot, client);
  try {
    await client.create(VIRTUAL_MACHINE_SNAPSHOT_CONTENTS, {
      apiVersion: `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`,
      kind: 'VirtualMachineSnapshotContent',
      metadata: { name, namespace, finalizers: [CONTENT_FINALIZER] },
      spec: {
        virtualMachineSnapshotName: snapshot.metadata.name ?? '',
        source: { virtualMachine: machine },
        ...(backups.length > 0 && { volumeBackups: backups }),
      },
    });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return;
  }
  events.event(
    snapshot,
    'Normal',
    'SuccessfulVirtualMachineSnapshotContentCreate',
    `Successfully created VirtualMachineSnapshotContent ${name}`,
  );
}

/** The claims that a VolumeSnapshotClass can save; the others are left out, and the status says so. */
async function volumeBackups(
  { vm }: SourceState,
  snapshot: ReadonlySnapshot,
  { client, stores }: { readonly client: Client; readonly stores: SnapshotStores },
): Promise<VolumeBackup[]> {
  const namespace = vm.metadata.namespace ?? '';
  const expanded = await expandedMachine(vm, client);
  return claimedVolumes(vm, { expanded, claims: stores.claims.list(namespace) }).flatMap(({ volume, claim: name }) => {
    const claim = stores.claims.get({ namespace, name });
    const storageClass = claim?.spec?.storageClassName;
    if (claim?.status?.phase !== 'Bound' || !storageClass) return [];
    const choice = stores.snapshotClassOf(storageClass);
    if (choice.type === 'unclear') throw new Error(choice.message);
    if (choice.type === 'none') return [];
    const { managedFields: _, ...metadata } = cloneJson<ObjectMeta>(claim.metadata);
    return [
      {
        volumeName: volume,
        persistentVolumeClaim: { metadata, spec: cloneJson<NonNullable<PersistentVolumeClaim['spec']>>(claim.spec!) },
        volumeSnapshotName: volumeSnapshotName(snapshot.metadata.uid ?? '', volume),
      },
    ];
  });
}

/** What a machine that runs was started as. */
async function startedSpec({ vmi }: SourceState, client: Client): Promise<VirtualMachine['spec'] | undefined> {
  if (vmi === undefined) return undefined;
  const name = vmi.status?.virtualMachineRevisionName;
  if (!name) throw new Error(`the start revision of ${vmi.metadata.namespace}/${vmi.metadata.name} is not known yet`);
  const revision = await client.get(CONTROLLER_REVISIONS, { namespace: vmi.metadata.namespace ?? '', name });
  return (revision.data as { spec?: VirtualMachine['spec'] } | undefined)?.spec;
}

/** Keeps copies of the ControllerRevisions that the machine names, for as long as the snapshot is there. */
async function captureRevisions(
  saved: SourceVirtualMachine,
  snapshot: ReadonlySnapshot,
  client: Client,
): Promise<SourceVirtualMachine> {
  const namespace = snapshot.metadata.namespace ?? '';
  const copies: Partial<Record<CapturedField, string>> = {};
  for (const field of CAPTURED_FIELDS) {
    const name = saved.spec?.[field]?.revisionName;
    if (!name) continue;
    const revision = await client.get(CONTROLLER_REVISIONS, { namespace, name });
    const copy = copiedRevisionName(name, snapshot.spec.source.name, snapshot.metadata.name ?? '');
    const owner = controllerReference({
      ...snapshot,
      apiVersion: `${SNAPSHOT_GROUP}/${SNAPSHOT_VERSION}`,
      kind: 'VirtualMachineSnapshot',
    });
    await orThere(client.create(CONTROLLER_REVISIONS, copyRevision(revision, copy, owner)));
    copies[field] = copy;
  }
  return withCopies(saved, copies);
}
