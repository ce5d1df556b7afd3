/** Back-off of starts that fail before the guest ever ran: min(300, 10 n² + jitter) seconds, counted once an instance. */
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import type { RunStrategy } from './run-strategy.ts';

/** status.startFailure. */
export interface StartFailure {
  consecutiveFailCount?: number;
  lastFailedVMIUID?: string;
  retryAfterTimestamp?: string;
}

export interface StartFailureInput {
  readonly failure: StartFailure | undefined;
  readonly strategy: RunStrategy;
  readonly instance: { readonly uid: string; readonly phase: string; readonly everRan: boolean } | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** 0 to 1, the jitter. */
  readonly random: number;
}

const MAX_SECONDS = 300;
/** Strategies that start a machine again whose guest never ran. */
export const RETRIED: ReadonlySet<RunStrategy> = new Set(['Always', 'RerunOnFailure', 'Once']);

/** Seconds to wait after the n-th consecutive failure. */
export function startBackoffSeconds(n: number, random: number): number {
  const base = 10 * n * n;
  return Math.min(MAX_SECONDS, base + Math.floor(random * (base / 2)));
}

/** The next value of status.startFailure; undefined clears it. */
export function nextStartFailure(input: StartFailureInput): StartFailure | undefined {
  const { failure, strategy, instance, now, random } = input;
  if (!RETRIED.has(strategy)) return undefined;
  if (!instance) return failure;
  if (instance.everRan) return undefined;
  if (!isFinal(instance.phase) || failure?.lastFailedVMIUID === instance.uid) return failure;
  const count = (failure?.consecutiveFailCount ?? 0) + 1;
  const retryAt = now + startBackoffSeconds(count, random) * 1000;
  return {
    consecutiveFailCount: count,
    lastFailedVMIUID: instance.uid,
    retryAfterTimestamp: `${new Date(Math.ceil(retryAt / 1000) * 1000).toISOString().slice(0, 19)}Z`,
  };
}

/** Milliseconds until the next start is allowed; 0 when it is. */
export function backoffLeft(failure: StartFailure | undefined, now: number): number {
  const at = failure?.retryAfterTimestamp === undefined ? Number.NaN : Date.parse(failure.retryAfterTimestamp);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
