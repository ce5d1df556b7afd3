/**
 * Which claims an export offers, and why it cannot yet, with upstream's reasons and words (kubevirt pkg/storage/export/export,
 * the three sources): objects in, a decision out.
 */
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { hasEnded } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyExport, ReadonlySnapshot, ReadonlyVm, ReadonlyVmi, VolumeBackup } from '../../kinds/kubevirt.ts';
import type { ClaimedVolume } from '../snapshot/saved-volumes.ts';

/** A condition without its time. */
export interface Finding {
  readonly type: 'Ready' | 'PVCReady' | 'VolumesCreated';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface ExportSource {
  /** What is offered once nothing hinders it, in the order of the volumes. */
  readonly claims: readonly ReadonlyClaim[];
  /** Why nothing can be downloaded now; undefined when it can. */
  readonly obstacle?: { readonly reason: string; readonly message: string };
  /** About the claims: PVCReady, or VolumesCreated. */
  readonly finding?: Finding;
  /** There is nothing that could ever be offered. */
  readonly isEmpty?: true;
  /** Its Pod has ended; another takes its place. */
  readonly isOver?: true;
  /** The machine whose disks these are. */
  readonly machine?: string;
}

/** How a claim stands. */
export interface ClaimView {
  readonly claim: ReadonlyClaim | undefined;
  /** False while its DataVolume is not done. */
  readonly isPopulated: boolean;
  /** A Pod that has not ended has it. */
  readonly isInUse: boolean;
}

const textOf = ({ metadata }: ReadonlyExport): ((name: string) => string) => {
  const { namespace = '' } = metadata;
  return (name) => `${namespace}/${name}`;
};

const finding = (type: Finding['type'], isTrue: boolean, reason: string, message = ''): Finding => ({
  type,
  status: isTrue ? 'True' : 'False',
  reason,
  message,
});

/** The worst of the phases of the claims. */
function claimsFinding(claims: readonly ReadonlyClaim[]): Finding {
  const phases = claims.map(({ status }) => status?.phase);
  if (phases.includes('Lost')) return finding('PVCReady', false, 'Unknown');
  return phases.every((phase) => phase === 'Bound')
    ? finding('PVCReady', true, 'PVCBound')
    : finding('PVCReady', false, 'PVCPending');
}

/** A claim by name. */
export function claimSource(object: ReadonlyExport, view: ClaimView): ExportSource {
  const name = textOf(object)(object.spec.source.name);
  const { claim, isPopulated, isInUse } = view;
  if (!claim)
    return {
      claims: [],
      obstacle: { reason: 'Initializing', message: '' },
      finding: finding('PVCReady', false, 'PVCNotFound', `PersistentVolumeClaim ${name} not found`),
    };
  const obstacle = !isPopulated
    ? { reason: 'PVCPending', message: `PersistentVolumeClaim ${name} is not populated` }
    : // Upstream's exporter is the Pod that such a claim waits for; here there is none.
      claim.status?.phase !== 'Bound'
      ? { reason: 'PVCPending', message: `PersistentVolumeClaim ${name} is not bound` }
      : isInUse && { reason: 'InUse', message: `PersistentVolumeClaim ${name} is in use` };
  return { claims: [claim], ...(obstacle && { obstacle }), finding: claimsFinding([claim]) };
}

/** The disks of a machine that does not run. */
export function machineSource(
  object: ReadonlyExport,
  {
    vm,
    vmi,
    volumes,
    view,
  }: {
    readonly vm: ReadonlyVm | undefined;
    readonly vmi: ReadonlyVmi | undefined;
    readonly volumes: readonly ClaimedVolume[];
    readonly view: (claim: string) => ClaimView;
  },
): ExportSource {
  const machine = object.spec.source.name;
  const what = `Virtual Machine ${textOf(object)(machine)}`;
  if (!vm) return { claims: [], machine, obstacle: { reason: 'VMNotFound', message: `${what} not found` } };
  if (volumes.length === 0)
    return {
      claims: [],
      machine,
      isEmpty: true,
      obstacle: { reason: 'VMNoVolumes', message: `${what} has no volumes` },
    };
  const views = volumes.map(({ claim }) => view(claim));
  const claims = views.flatMap(({ claim }) => claim ?? []);
  const ready = views.every(({ claim, isPopulated }) => isPopulated && claim?.status?.phase === 'Bound');
  const runs = vmi !== undefined && !hasEnded(vmi);
  const used = views.find(({ isInUse }) => isInUse)?.claim?.metadata.name;
  const obstacle = !ready
    ? {
        reason: 'VolumesNotPopulated',
        message: `Not all volumes in the ${what} are populated`,
      }
    : runs
      ? { reason: 'InUse', message: `${what} is running` }
      : used !== undefined && { reason: 'InUse', message: `PersistentVolumeClaim ${textOf(object)(used)} is in use` };
  return { claims, machine, ...(obstacle && { obstacle }), finding: claimsFinding(claims) };
}

/** The claim that an export has made of a volume of a snapshot (getOrCreatePVCFromSnapshot). */
export const snapshotClaimName = (object: ReadonlyExport, claim: string): string => `${object.metadata.name}-${claim}`;

/** The volumes of a snapshot, each in a claim made of it; the machine may run. */
export function snapshotSource(
  object: ReadonlyExport,
  {
    snapshot,
    backups,
    claimNamed,
  }: {
    readonly snapshot: ReadonlySnapshot | undefined;
    readonly backups: readonly DeepReadonly<VolumeBackup>[];
    /** A claim that this export made. */
    readonly claimNamed: (name: string) => ReadonlyClaim | undefined;
  },
): ExportSource {
  const what = `VirtualMachineSnapshot ${textOf(object)(object.spec.source.name)}`;
  const empty = `${what} does not contain any volume snapshots`;
  const created = (reason: string, message: string): Finding => finding('VolumesCreated', false, reason, message);
  if (!snapshot)
    return {
      claims: [],
      obstacle: { reason: 'VMSnapshotNotFound', message: `${what} not found` },
      finding: created('VMSnapshotNoVolumes', empty),
    };
  const machine = snapshot.spec.source.name;
  if (snapshot.status?.readyToUse !== true)
    return {
      claims: [],
      machine,
      obstacle: { reason: 'NotAllPVCsCreated', message: empty },
      finding: created('NotAllPVCsCreated', empty),
    };
  const obstacle = { reason: 'Initializing', message: '' };
  if (backups.length === 0)
    return { claims: [], machine, isEmpty: true, obstacle, finding: created('VMSnapshotNoVolumes', empty) };
  const claims = backups.flatMap(
    ({ persistentVolumeClaim: { metadata } }) => claimNamed(snapshotClaimName(object, metadata?.name ?? '')) ?? [],
  );
  if (claims.length < backups.length)
    return {
      claims: [],
      machine,
      obstacle,
      finding: created('NotAllPVCsCreated', 'Not all PVCs have been successfully restored'),
    };
  return claims.every(({ status }) => status?.phase === 'Bound')
    ? { claims, machine, finding: finding('VolumesCreated', true, 'AllPVCsReady') }
    : { claims, machine, obstacle, finding: created('NotAllPVCsReady', 'Not all PVCs are ready') };
}
