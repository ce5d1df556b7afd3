/** What the two ends write into the status of a VMI: pure. Each returns a merge patch; empty means nothing to write. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import type { MigrationState, ReadonlyVmi as Vmi } from '@coracle/kubevirt/kinds/kinds';

type Change = Readonly<Record<string, unknown>>;

/** Label of a target's launcher Pod, with the UID of the migration. */
export const MIGRATION_JOB_LABEL = 'kubevirt.io/migrationJobUID';
/** Number of the local end of the ports that a target publishes: the memory, and the disks (as upstream has them). */
export const MEMORY_SERVICE = 0;
export const DISK_SERVICE = 49152;

const NONE: Change = {};

const hasTime = (value: unknown): boolean => value !== undefined && value !== null;

/** True while the migration of that UID is neither over nor replaced by another. */
export const isUnderWay = (vmi: Vmi, uid: string): boolean => {
  const state = vmi.status?.migrationState;
  return (
    state?.migrationUid === uid &&
    !hasTime(state.endTimestamp) &&
    state.completed !== true &&
    state.failed !== true &&
    vmi.status?.phase === 'Running'
  );
};

/** The migration that this Pod is the target of, once the controller has handed it over to us. */
export function incomingMigration(
  vmi: Vmi | undefined,
  target: { readonly nodeName: string; readonly podName: string; readonly uid: string },
): { readonly uid: string; readonly sourceNode: string } | undefined {
  const state = vmi?.status?.migrationState;
  if (!vmi || !state || !isUnderWay(vmi, target.uid)) return undefined;
  if (state.targetNode !== target.nodeName || state.targetPod !== target.podName || !state.sourceNode) return undefined;
  return { uid: target.uid, sourceNode: state.sourceNode };
}

export interface Outgoing {
  readonly uid: string;
  readonly targetNode: string;
  readonly host: string;
  /** Service -> port. */
  readonly ports: ReadonlyMap<number, number>;
  readonly state: DeepReadonly<MigrationState>;
}

/** The migration that this Pod is the source of, once its target is ready. */
export function outgoingMigration(
  vmi: Vmi | undefined,
  source: { readonly nodeName: string; readonly podName: string },
): Outgoing | undefined {
  const state = vmi?.status?.migrationState;
  if (!vmi || !state?.migrationUid || !isUnderWay(vmi, state.migrationUid)) return undefined;
  if (vmi.status?.nodeName !== source.nodeName || state.sourceNode !== source.nodeName) return undefined;
  if (state.sourcePod && state.sourcePod !== source.podName) return undefined;
  const published = Object.entries(state.targetDirectMigrationNodePorts ?? {});
  const ports = new Map(published.map(([port, service]) => [Number(service), Number(port)]));
  if (!state.targetNodeAddress || !state.targetNode || !ports.has(MEMORY_SERVICE)) return undefined;
  return { uid: state.migrationUid, targetNode: state.targetNode, host: state.targetNodeAddress, ports, state };
}

/** The target waits at these ports. */
export function targetReady(
  vmi: Vmi,
  uid: string,
  where: { readonly address: string; readonly ports: ReadonlyMap<number, number> },
): Change {
  const state = vmi.status?.migrationState;
  if (!isUnderWay(vmi, uid)) return NONE;
  const published = Object.fromEntries([...where.ports].map(([service, port]) => [String(port), service]));
  // A merge patch keeps what it does not name: ports of an earlier try go.
  const gone = Object.keys(state?.targetDirectMigrationNodePorts ?? {}).filter(
    (port) => !Object.hasOwn(published, port),
  );
  const targetDirectMigrationNodePorts = { ...Object.fromEntries(gone.map((port) => [port, null])), ...published };
  return {
    migrationState: {
      targetNodeAddress: where.address,
      targetDirectMigrationNodePorts,
      targetState: { nodeAddress: where.address, directMigrationNodePorts: targetDirectMigrationNodePorts },
    },
  };
}

/** QEMU waits on the target. */
export const targetDetected = (vmi: Vmi, uid: string): Change =>
  isUnderWay(vmi, uid) && vmi.status?.migrationState?.targetNodeDomainDetected !== true
    ? { migrationState: { targetNodeDomainDetected: true, targetState: { domainDetected: true } } }
    : NONE;

/** The source has begun. */
export const sourceStarted = (vmi: Vmi, uid: string, now: number): Change =>
  isUnderWay(vmi, uid) && !hasTime(vmi.status?.migrationState?.startTimestamp)
    ? { migrationState: { startTimestamp: formatTime(now), mode: 'PreCopy' } }
    : NONE;

export const sourceMode = (vmi: Vmi, uid: string, mode: 'PreCopy' | 'PostCopy' | 'Paused'): Change =>
  isUnderWay(vmi, uid) && vmi.status?.migrationState?.mode !== mode ? { migrationState: { mode } } : NONE;

/** Aborting: reported while it is being undone. */
export const sourceAborting = (vmi: Vmi, uid: string): Change =>
  isUnderWay(vmi, uid) && vmi.status?.migrationState?.abortStatus === undefined
    ? { migrationState: { abortStatus: 'Aborting' } }
    : NONE;

/** The source keeps the guest. Written before it runs again where the target might have been asked to take over. */
export function sourceFailed(
  vmi: Vmi,
  uid: string,
  failure: { readonly reason: string; readonly aborted: boolean; readonly now: number },
): Change {
  if (!isUnderWay(vmi, uid)) return NONE;
  return {
    migrationState: {
      completed: true,
      failed: true,
      failureReason: failure.reason,
      // One that failed before it began has both times, as upstream's.
      ...(vmi.status?.migrationState?.startTimestamp == null && { startTimestamp: formatTime(failure.now) }),
      endTimestamp: formatTime(failure.now),
      ...(failure.aborted && { abortStatus: 'Succeeded' }),
    },
  };
}

/**
 * The write that decides: the guest is the target's. The label `kubevirt.io/nodeName` follows it (VMI controller). Empty
 * when the migration is over already. In post-copy the guest is the target's before the migration is over
 * (`postCopyDone`, `postCopyLost`).
 */
export function handOver(
  vmi: Vmi,
  uid: string,
  target: { readonly nodeName: string; readonly sourceNode: string; readonly now: number; readonly postCopy?: boolean },
): Change {
  if (!isUnderWay(vmi, uid) || vmi.status?.nodeName !== target.sourceNode) return NONE;
  const stamp = formatTime(target.now);
  return {
    nodeName: target.nodeName,
    ...(!target.postCopy && ended(vmi)),
    migrationState: {
      ...(!target.postCopy && { completed: true, endTimestamp: stamp }),
      targetNodeDomainDetected: true,
      targetNodeDomainReadyTimestamp: stamp,
      targetState: { domainDetected: true, domainReadyTimestamp: stamp },
    },
  };
}

/** An eviction that was asked for has been done. */
const ended = (vmi: Vmi): Change =>
  vmi.status?.evacuationNodeName !== undefined ? { evacuationNodeName: null } : NONE;

/** All memory has come to a guest that runs on the target already. */
export const postCopyDone = (vmi: Vmi, uid: string, now: number): Change =>
  isUnderWay(vmi, uid) ? { ...ended(vmi), migrationState: { completed: true, endTimestamp: formatTime(now) } } : NONE;

/** Upstream's words for a guest of which a part has not come, and will not. */
export const POST_COPY_LOST = 'VMI is irrecoverable due to failed post-copy migration';
