/** The Pod columns: what `kubectl get pods` says about a Pod is decided here (printers/internalversion, printPod). */

import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { ageSince } from '@coracle/apimachinery/types/age';
import {
  isTrueAt,
  type JsonObject,
  numberAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { type Cells, conditionOf, isConditionTrue, NONE } from './cell.ts';

interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly reason: string;
  /** The statuses of those whose restarts count. */
  readonly counted: () => readonly JsonObject[];
}

function summarizePod(pod: JsonObject): PodSummary {
  const phase = textAt(pod, 'status', 'phase');
  const initContainers = objectsAt(pod, 'spec', 'initContainers');
  const sidecars = new Set(
    initContainers.filter((c) => textAt(c, 'restartPolicy') === 'Always').map((c) => textAt(c, 'name')),
  );
  const isSidecar = (status: JsonObject): boolean => sidecars.has(textAt(status, 'name'));
  const isStarted = (status: JsonObject): boolean => isSidecar(status) && isTrueAt(status, 'started');
  const statuses = objectsAt(pod, 'status', 'initContainerStatuses');
  // The init container that the Pod is at: the first that has not ended well, and is no sidecar that has started.
  const at = statuses.findIndex((status) => !hasSucceeded(status) && !isStarted(status));
  const reached = at < 0 ? statuses : statuses.slice(0, at + 1);
  let ready = 0;
  for (const one of reached) if (isStarted(one) && !hasSucceeded(one) && isTrueAt(one, 'ready')) ready++;
  let counted = (): readonly JsonObject[] => reached;
  let reason = textAt(pod, 'status', 'reason') || phase;
  if (conditionOf(pod, 'PodScheduled')?.['reason'] === 'SchedulingGated') reason = 'SchedulingGated';
  if (at >= 0) reason = `Init:${initReason(statuses[at]!) || `${at}/${initContainers.length}`}`;
  if (at < 0 || isConditionTrue(pod, 'Initialized')) {
    const main = mainProgress(pod, reason);
    reason = main.reason;
    ready += main.ready;
    counted = () => [...reached.filter(isSidecar), ...objectsAt(pod, 'status', 'containerStatuses')];
  }
  if (valueAt(pod, 'metadata', 'deletionTimestamp') != null) {
    if (textAt(pod, 'status', 'reason') === 'NodeLost') reason = 'Unknown';
    else if (!isFinal(phase)) reason = 'Terminating';
  }
  return { ready, total: objectsAt(pod, 'spec', 'containers').length + sidecars.size, reason, counted };
}

function hasSucceeded(status: JsonObject): boolean {
  const terminated = valueAt(status, 'state', 'terminated');
  return terminated != null && numberAt(terminated, 'exitCode') === 0;
}

/** Why an init container does not go on; '' while it does. */
function initReason(status: JsonObject): string {
  const terminated = valueAt(status, 'state', 'terminated');
  if (terminated != null) return terminatedReason(terminated);
  const waiting = textAt(status, 'state', 'waiting', 'reason');
  return waiting === 'PodInitializing' ? '' : waiting;
}

/** The last container that has something to say wins, so walk from the end and let the first overwrite. */
function mainProgress(pod: JsonObject, before: string): { reason: string; ready: number } {
  let reason = before;
  let ready = 0;
  for (const status of objectsAt(pod, 'status', 'containerStatuses').toReversed()) {
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const terminated = valueAt(status, 'state', 'terminated');
    if (waiting !== '') reason = waiting;
    else if (terminated != null) reason = terminatedReason(terminated);
    else if (isTrueAt(status, 'ready') && valueAt(status, 'state', 'running') != null) ready++;
  }
  if (reason === 'Completed' && ready > 0) reason = isConditionTrue(pod, 'Ready') ? 'Running' : 'NotReady';
  return { reason, ready };
}

function terminatedReason(terminated: unknown): string {
  const reason = textAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal');
  return signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode')}` : `Signal:${signal}`;
}

/** How often containers were restarted, and how long ago the newest ended that was. */
function restarts(pod: JsonObject, now: number): string {
  const counted = summarizePod(pod).counted();
  const count = counted.reduce((sum, status) => sum + numberAt(status, 'restartCount'), 0);
  let last = 0;
  for (const status of counted) {
    const ended = Date.parse(textAt(status, 'lastState', 'terminated', 'finishedAt'));
    if (ended > last) last = ended;
  }
  if (count === 0 || last === 0) return String(count);
  return `${count} (${ageSince(new Date(last).toISOString(), now)} ago)`;
}

function readinessGates(pod: JsonObject): string {
  const gates = objectsAt(pod, 'spec', 'readinessGates');
  if (gates.length === 0) return NONE;
  const open = gates.filter((gate) => isConditionTrue(pod, textAt(gate, 'conditionType'))).length;
  return `${open}/${gates.length}`;
}

export const POD_CELLS: Cells = {
  Ready: (pod) => {
    const { ready, total } = summarizePod(pod);
    return `${ready}/${total}`;
  },
  Status: (pod) => summarizePod(pod).reason,
  Restarts: restarts,
  IP: (pod) => textAt(objectsAt(pod, 'status', 'podIPs')[0], 'ip') || textAt(pod, 'status', 'podIP') || NONE,
  'Readiness Gates': readinessGates,
};
