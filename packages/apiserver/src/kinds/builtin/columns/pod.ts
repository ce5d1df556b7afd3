/** The Pod columns: what `kubectl get pods` says about a Pod is decided here (printers/internalversion, printPod). */

import { isFinal } from '@coracle/apimachinery/meta/object-state';
import { age, ageSince } from '@coracle/apimachinery/types/age';
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
  readonly restarts: number;
  /** Epoch milliseconds of the newest termination that was followed by a restart; 0 when none. */
  readonly lastRestart: number;
}

/** Counts of one group of container statuses. */
class Restarts {
  count = 0;
  last = 0;
  add(status: JsonObject): void {
    this.count += numberAt(status, 'restartCount');
    const finished = Date.parse(textAt(status, 'lastState', 'terminated', 'finishedAt'));
    if (finished > this.last) this.last = finished;
  }
}

export function summarizePod(pod: JsonObject): PodSummary {
  const phase = textAt(pod, 'status', 'phase');
  let reason = textAt(pod, 'status', 'reason') || phase;
  if (conditionOf(pod, 'PodScheduled')?.['reason'] === 'SchedulingGated') reason = 'SchedulingGated';

  const initContainers = objectsAt(pod, 'spec', 'initContainers');
  const sidecars = new Set(
    initContainers.filter((c) => textAt(c, 'restartPolicy') === 'Always').map((c) => textAt(c, 'name')),
  );
  const init = initProgress(pod, { sidecars, initCount: initContainers.length });
  let { restarts, ready } = init;
  if (init.reason !== undefined) reason = init.reason;

  if (init.reason === undefined || isConditionTrue(pod, 'Initialized')) {
    const main = mainProgress(pod, { reason, restarts: init.sidecarRestarts });
    reason = main.reason;
    restarts = main.restarts;
    ready += main.ready;
  }

  if (valueAt(pod, 'metadata', 'deletionTimestamp') != null) {
    if (textAt(pod, 'status', 'reason') === 'NodeLost') reason = 'Unknown';
    else if (!isFinal(phase)) reason = 'Terminating';
  }
  return {
    ready,
    total: objectsAt(pod, 'spec', 'containers').length + sidecars.size,
    reason,
    restarts: restarts.count,
    lastRestart: restarts.last,
  };
}

/** Walks the init containers up to the first that is not done; `reason` is set while the Pod initialises. */
function initProgress(
  pod: JsonObject,
  { sidecars, initCount }: { sidecars: ReadonlySet<string>; initCount: number },
): { reason?: string; ready: number; restarts: Restarts; sidecarRestarts: Restarts } {
  const restarts = new Restarts();
  const sidecarRestarts = new Restarts();
  let ready = 0;
  for (const [i, status] of objectsAt(pod, 'status', 'initContainerStatuses').entries()) {
    restarts.add(status);
    const sidecar = sidecars.has(textAt(status, 'name'));
    if (sidecar) sidecarRestarts.add(status);
    const terminated = valueAt(status, 'state', 'terminated');
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    if (terminated != null && numberAt(terminated, 'exitCode') === 0) continue;
    if (sidecar && isTrueAt(status, 'started')) {
      if (isTrueAt(status, 'ready')) ready++;
      continue;
    }
    if (terminated != null) return { reason: `Init:${terminatedReason(terminated)}`, ready, restarts, sidecarRestarts };
    if (waiting !== '' && waiting !== 'PodInitializing') {
      return { reason: `Init:${waiting}`, ready, restarts, sidecarRestarts };
    }
    return { reason: `Init:${i}/${initCount}`, ready, restarts, sidecarRestarts };
  }
  return { ready, restarts, sidecarRestarts };
}

/** The last container that has something to say wins, so walk from the end and let the first overwrite. */
function mainProgress(
  pod: JsonObject,
  start: { reason: string; restarts: Restarts },
): { reason: string; ready: number; restarts: Restarts } {
  let { reason } = start;
  let ready = 0;
  for (const status of [...objectsAt(pod, 'status', 'containerStatuses')].reverse()) {
    start.restarts.add(status);
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const terminated = valueAt(status, 'state', 'terminated');
    if (waiting !== '') reason = waiting;
    else if (terminated != null) reason = terminatedReason(terminated);
    else if (isTrueAt(status, 'ready') && valueAt(status, 'state', 'running') != null) ready++;
  }
  if (reason === 'Completed' && ready > 0) reason = isConditionTrue(pod, 'Ready') ? 'Running' : 'NotReady';
  return { reason, ready, restarts: start.restarts };
}

function terminatedReason(terminated: unknown): string {
  const reason = textAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal');
  return signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode')}` : `Signal:${signal}`;
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
  Restarts: (pod, now) => {
    const { restarts, lastRestart } = summarizePod(pod);
    if (restarts === 0 || lastRestart === 0) return String(restarts);
    return `${restarts} (${ageSince(new Date(lastRestart).toISOString(), now)} ago)`;
  },
  Age: age,
  IP: (pod) => textAt(objectsAt(pod, 'status', 'podIPs')[0], 'ip') || textAt(pod, 'status', 'podIP') || NONE,
  Node: (pod) => textAt(pod, 'spec', 'nodeName') || NONE,
  'Nominated Node': (pod) => textAt(pod, 'status', 'nominatedNodeName') || NONE,
  'Readiness Gates': readinessGates,
};
