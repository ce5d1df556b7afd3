/** Status of a DataVolume, of what the last pass found: phases, conditions and words are CDI's. */
import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { FillReport } from '@coracle/cluster-rules/storage/pool-calls';
import type { CdiCondition, DataVolumePhase, DataVolumeStatus } from '../../kinds/kinds.ts';

type Running = Extract<FillReport, { state: 'running' }>;

/** What CDI calls the work: the words of its phases. */
export type Work = 'Import' | 'Clone' | 'Upload';

/** Why an attempt failed, in CDI's words. */
type FailureReason = 'Error' | 'ImagePullFailed';
const FAILURES: ReadonlySet<string | undefined> = new Set<FailureReason>(['Error', 'ImagePullFailed']);

/** What a pass found. */
export type DataVolumeOutcome =
  /** Nothing can be done yet, and `message` says why. */
  | { readonly type: 'waiting'; readonly message: string; readonly reason?: string; readonly work?: 'Upload' }
  /** The class has volumes made where their first Pod goes, and there is none. */
  | { readonly type: 'no-consumer' }
  | { readonly type: 'running'; readonly work: Work; readonly report: Running }
  /** An attempt failed; it is made again after a while. */
  | { readonly type: 'failed'; readonly work: Work; readonly reason: FailureReason; readonly message: string }
  /** Between two attempts. */
  | { readonly type: 'pausing' }
  | { readonly type: 'filled'; readonly work: Work }
  | { readonly type: 'bound'; readonly work: Work };

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 300_000;

/** Milliseconds since 1970 before which no further attempt is made. */
export function nextAttemptAt(status: DeepReadonly<DataVolumeStatus> | undefined): number {
  const failures = status?.restartCount ?? 0;
  const running = conditionOf({ status }, 'Running');
  const failedAt = Date.parse(running?.lastHeartbeatTime ?? '');
  if (failures === 0 || Number.isNaN(failedAt) || running?.status === 'True') return 0;
  return failedAt + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 20));
}

/** The status that follows. Unchanged conditions keep their times. */
export function dataVolumeStatus(
  before: DeepReadonly<DataVolumeStatus> | undefined,
  outcome: DataVolumeOutcome,
  { claim, claimName, now }: { claim: ReadonlyClaim | undefined; claimName: string; now: number },
): DataVolumeStatus {
  const phase = phaseOf(before?.phase ?? '', outcome);
  const failures = (before?.restartCount ?? 0) + (outcome.type === 'failed' ? 1 : 0);
  return {
    ...(claim && { claimName }),
    phase,
    progress: progressOf(before?.progress, outcome),
    ...(failures > 0 && { restartCount: failures }),
    conditions: conditionsOf(before?.conditions ?? [], outcome, { claim, phase, now }),
  };
}

function phaseOf(before: DataVolumePhase, outcome: DataVolumeOutcome): DataVolumePhase {
  switch (outcome.type) {
    case 'waiting':
      return outcome.work === 'Upload' ? 'UploadScheduled' : 'Pending';
    case 'no-consumer':
      return 'PendingPopulation';
    case 'running':
      if (outcome.work === 'Upload') return 'UploadReady';
      return outcome.report.step === 'waiting' ? `${outcome.work}Scheduled` : `${outcome.work}InProgress`;
    case 'failed':
    case 'filled':
      return outcome.work === 'Upload' ? 'UploadReady' : `${outcome.work}InProgress`;
    case 'pausing':
      return before;
    case 'bound':
      return 'Succeeded';
    default:
      return outcome satisfies never;
  }
}

function progressOf(before: string | undefined, outcome: DataVolumeOutcome): string {
  if (outcome.type === 'bound' || outcome.type === 'filled') return '100.0%';
  if (outcome.type !== 'running') return before ?? 'N/A';
  const { fraction } = outcome.report;
  // It is full once the claim can be used.
  return fraction === undefined ? 'N/A' : `${Math.min(99.99, fraction * 100).toFixed(2)}%`;
}

type Wanted = Omit<CdiCondition, 'lastTransitionTime'>;

function conditionsOf(
  before: readonly DeepReadonly<CdiCondition>[],
  outcome: DataVolumeOutcome,
  { claim, phase, now }: { claim: ReadonlyClaim | undefined; phase: DataVolumePhase; now: number },
): CdiCondition[] {
  const wanted = [boundCondition(claim, outcome), readyCondition(phase, outcome), runningCondition(before, outcome)];
  return wanted.map((condition) => {
    const known = before.find(({ type }) => type === condition.type);
    const isSame =
      known?.status === condition.status &&
      (known.reason ?? '') === (condition.reason ?? '') &&
      (known.message ?? '') === (condition.message ?? '');
    // The time of a failure says when the next attempt is made.
    const heartbeat = outcome.type === 'failed' || !isSame ? formatTime(now) : known.lastHeartbeatTime;
    return {
      ...condition,
      lastTransitionTime: known?.status === condition.status ? (known.lastTransitionTime ?? '') : formatTime(now),
      ...(heartbeat !== undefined && { lastHeartbeatTime: heartbeat }),
    };
  });
}

function boundCondition(claim: ReadonlyClaim | undefined, outcome: DataVolumeOutcome): Wanted {
  if (!claim)
    return outcome.type === 'waiting'
      ? { type: 'Bound', status: 'Unknown', reason: outcome.reason ?? 'NotFound', message: outcome.message }
      : { type: 'Bound', status: 'Unknown', reason: 'NotFound', message: 'No PVC found' };
  const name = claim.metadata.name ?? '';
  switch (claim.status?.phase) {
    case 'Bound':
      return { type: 'Bound', status: 'True', reason: 'Bound', message: `PVC ${name} Bound` };
    case 'Lost':
      return { type: 'Bound', status: 'False', reason: 'ClaimLost', message: 'Claim Lost' };
    default:
      return { type: 'Bound', status: 'False', reason: 'Pending', message: `PVC ${name} Pending` };
  }
}

function readyCondition(phase: DataVolumePhase, outcome: DataVolumeOutcome): Wanted {
  if (phase === 'Succeeded') return { type: 'Ready', status: 'True' };
  if (outcome.type === 'running') return { type: 'Ready', status: 'False', reason: 'TransferRunning' };
  return { type: 'Ready', status: 'False' };
}

function runningCondition(before: readonly DeepReadonly<CdiCondition>[], outcome: DataVolumeOutcome): Wanted {
  switch (outcome.type) {
    case 'running': {
      if (outcome.report.step !== 'waiting')
        return { type: 'Running', status: 'True', reason: 'Pod is running', message: transferText(outcome.report) };
      const known = before.find(({ type }) => type === 'Running');
      // Why the last attempt failed stays until the next one has begun, with its time.
      if (FAILURES.has(known?.reason)) return { type: 'Running', status: 'False', ...pick(known) };
      return outcome.work === 'Upload'
        ? { type: 'Running', status: 'True', reason: 'Pod is running', message: 'Waits for the upload' }
        : { type: 'Running', status: 'False', reason: 'Pending', message: 'Waits for its turn' };
    }
    case 'failed':
      return { type: 'Running', status: 'False', reason: outcome.reason, message: outcome.message };
    case 'pausing': {
      const known = before.find(({ type }) => type === 'Running');
      return { type: 'Running', status: 'False', ...pick(known) };
    }
    case 'filled':
    case 'bound':
      return { type: 'Running', status: 'False', reason: 'Completed', message: `${outcome.work} Complete` };
    case 'waiting':
      return { type: 'Running', status: 'False', reason: outcome.reason ?? 'Pending', message: outcome.message };
    case 'no-consumer':
      return {
        type: 'Running',
        status: 'False',
        reason: 'Pending',
        message: 'Waits for the first Pod that uses the claim',
      };
    default:
      return outcome satisfies never;
  }
}

const pick = (condition: DeepReadonly<CdiCondition> | undefined): Pick<CdiCondition, 'reason' | 'message'> => ({
  ...(condition?.reason !== undefined && { reason: condition.reason }),
  ...(condition?.message !== undefined && { message: condition.message }),
});

/** `download: 512.0 MiB of 1.0 GiB, 85.3 MiB/s, 6s left` */
export function transferText({ step, bytes, totalBytes, bytesPerSecond, secondsLeft }: Running): string {
  const parts = [
    totalBytes === undefined ? sizeText(bytes) : `${sizeText(bytes)} of ${sizeText(totalBytes)}`,
    ...(bytesPerSecond === undefined ? [] : [`${sizeText(bytesPerSecond)}/s`]),
    ...(secondsLeft === undefined ? [] : [`${durationText(secondsLeft)} left`]),
  ];
  return step === 'download' ? `download: ${parts.join(', ')}` : step;
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
function sizeText(bytes: number): string {
  const at = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  return at === 0 ? `${bytes} B` : `${(bytes / 1024 ** at).toFixed(1)} ${UNITS[at]}`;
}

function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes}m${seconds % 60}s` : `${Math.floor(minutes / 60)}h${minutes % 60}m`;
}
