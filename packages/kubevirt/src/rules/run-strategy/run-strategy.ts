/**
 * What a VirtualMachine wants of its VirtualMachineInstance: a pure decision from the run strategy, the instance as it
 * is, and the pending start and stop requests (VM controller, startStop).
 */

import { isFinal } from '@coracle/apimachinery/meta/object-state';

export type RunStrategy = 'Always' | 'Halted' | 'Manual' | 'RerunOnFailure' | 'Once' | 'WaitAsReceiver';

/** status.stateChangeRequests[]: written by the start, stop and restart subresources, cleared by the controller. */
export interface StateChangeRequest {
  readonly action: string;
  readonly uid?: string;
  readonly data?: Readonly<Record<string, string>>;
}

/** The instance as far as the decision needs it. */
export interface InstanceView {
  readonly uid: string;
  readonly phase: string;
  readonly deleting: boolean;
}

export interface StartStopInput {
  readonly strategy: RunStrategy;
  readonly instance: InstanceView | undefined;
  readonly requests: readonly StateChangeRequest[];
  /** status.runStrategy: the strategy that was in force when an instance last existed. */
  readonly lastStrategy: string | undefined;
  /** Milliseconds until a failed start may be tried again; 0 or less = now. */
  readonly backoffMs: number;
}

export type StartStopDecision =
  | { readonly type: 'keep' }
  | { readonly type: 'create'; readonly paused: boolean }
  /** Wait out the start-failure back-off. */
  | { readonly type: 'wait'; readonly ms: number }
  /** `thenStart` appends a Start request, so that RerunOnFailure runs again. */
  | { readonly type: 'delete'; readonly thenStart: boolean }
  /** A start request came for a halted VM (start paused): the spec becomes Always first. */
  | { readonly type: 'unhalt' };

/** The strategy in force; `running` is the deprecated form. A VM with neither counts as halted. */
export function effectiveRunStrategy(spec: {
  readonly running?: boolean | undefined;
  readonly runStrategy?: string | undefined;
}): RunStrategy {
  if (spec.runStrategy !== undefined) return spec.runStrategy as RunStrategy;
  return spec.running === true ? 'Always' : 'Halted';
}

const startRequested = (requests: readonly StateChangeRequest[]): boolean => requests[0]?.action === 'Start';

/** A stop request counts only for the instance it names. */
const stopRequested = (requests: readonly StateChangeRequest[], instance: InstanceView): boolean =>
  requests[0]?.action === 'Stop' && requests[0].uid === instance.uid;

const isPaused = (request: StateChangeRequest): boolean => request.data?.['paused'] === 'true';

const pausedStart = ([first]: readonly StateChangeRequest[]): boolean => first?.action === 'Start' && isPaused(first);

/** The decision. Total: every strategy and every state of the instance has an answer. */
export function startStopDecision(input: StartStopInput): StartStopDecision {
  const { strategy, instance, requests, backoffMs } = input;
  const keep: StartStopDecision = { type: 'keep' };
  const remove: StartStopDecision = { type: 'delete', thenStart: false };
  const create = (withBackoff: boolean): StartStopDecision =>
    withBackoff && backoffMs > 0 ? { type: 'wait', ms: backoffMs } : { type: 'create', paused: pausedStart(requests) };
  if (instance?.deleting) return keep;
  switch (strategy) {
    case 'Always':
      if (!instance) return create(true);
      return isFinal(instance.phase) || stopRequested(requests, instance) ? remove : keep;
    case 'RerunOnFailure':
      if (!instance) return startRequested(requests) || input.lastStrategy !== 'RerunOnFailure' ? create(true) : keep;
      if (instance.phase === 'Failed') return { type: 'delete', thenStart: true };
      return instance.phase === 'Succeeded' || stopRequested(requests, instance) ? remove : keep;
    case 'Manual':
      if (!instance) return startRequested(requests) ? create(false) : keep;
      return stopRequested(requests, instance) ? remove : keep;
    case 'Halted':
      if (!instance) return pausedStart(requests) ? { type: 'unhalt' } : keep;
      return remove;
    case 'Once':
      return instance ? keep : create(true);
    case 'WaitAsReceiver':
      return keep;
    default:
      throw new RangeError(`unknown run strategy "${String(strategy satisfies never)}"`);
  }
}

/**
 * The requests that are still open: a Stop is done when its instance is gone, a Start when an instance runs. They are
 * worked off in their order: the Start of a restart waits behind its Stop, however much the old instance still runs.
 * What halts a VM outlives a Start that came before it; only a paused start may switch a halted VM on.
 */
export function openRequests(
  requests: readonly StateChangeRequest[],
  instance: InstanceView | undefined,
  strategy: RunStrategy,
): readonly StateChangeRequest[] {
  const first = requests.findIndex((request) => isOpen(request, instance));
  const open = first < 0 ? [] : requests.slice(first);
  return strategy === 'Halted' ? open.filter((request) => request.action !== 'Start' || isPaused(request)) : open;
}

function isOpen({ action, uid }: StateChangeRequest, instance: InstanceView | undefined): boolean {
  if (action === 'Stop') return instance !== undefined && uid === instance.uid;
  return action === 'Start' && (instance === undefined || instance.deleting || isFinal(instance.phase));
}
