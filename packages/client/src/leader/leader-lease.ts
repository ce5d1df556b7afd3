/**
 * Leader election on a Lease: a job runs in one process at a time, and another one takes it over.
 *
 * Guarantee: `run` is asked to stop (its signal) before anybody else may begin, as long as clocks run at about the same
 * pace: the holder gives up `RENEW_WITHIN_MS` after its last good renewal, others wait `DURATION_SECONDS` from the moment
 * they saw it. Wall clocks are not compared. Every write names the revision it has read, so of two takers one fails.
 */

import { formatMicroTime, type ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { LEASES } from '@coracle/apimachinery/types/resource-types';
import type { Lease, LeaseSpec } from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { isAlreadyExists, isConflict, isNotFound, orAbsent } from '../api-failure.ts';
import type { Client } from '../client.ts';
import { NotSyncedError } from '../informer/not-synced.ts';

export interface LeadershipOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends everything; the Lease is given back. */
  readonly signal: AbortSignal;
  readonly lease: ObjectKey;
  /** Names this process among those that may lead; unique. */
  readonly identity: string;
  /** Hears once, each time another one is found to lead, who that is. */
  readonly onWaiting?: (holder: string) => void;
}

/** Rights on the Lease of that name; its namespace is the one the rules are given for. */
export const leaderRules = (name: string) =>
  policyRules('create : coordination.k8s.io : leases', `get update : coordination.k8s.io : leases : ${name}`);

/** Who has not renewed for this long leads no more. */
const DURATION_SECONDS = 15;
/** Who cannot renew for this long stops by itself. */
const RENEW_WITHIN_MS = 10_000;
const RETRY_MS = 3_000;
/** Who gave it up leaves it to others for this long. */
const GIVEN_UP_MS = 15_000;
/** Giving it back must not hold up the end of the process. */
const RELEASE_WITHIN_MS = 2_000;

/** What was seen of the Lease, and when (monotonic) it was first seen so. */
interface Sight {
  readonly lease: Lease | undefined;
  readonly since: number;
}

/**
 * Runs `run` while this process leads, anew each time it does; resolves when `signal` aborts and `run` has ended. Rejects
 * with what `run` rejects with, having given the Lease back; a job whose informers do not sync is tried again later,
 * unless another process has it by then.
 */
export async function whileLeading(
  options: LeadershipOptions,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { clock, log, signal, lease: key } = options;
  const named = log.with({ lease: `${key.namespace}/${key.name}` });
  let sight: Sight | undefined;
  let reportedHolder = '';
  while (!signal.aborted) {
    let held: Lease | undefined;
    try {
      sight = await look(options, sight);
      const holder = sight.lease?.spec?.holderIdentity ?? '';
      if (isFree(options, sight)) held = await take(options, sight.lease);
      else if (holder !== reportedHolder) {
        named.info('another one leads', { holder });
        options.onWaiting?.(holder);
        reportedHolder = holder;
      }
    } catch (error) {
      if (signal.aborted) break;
      // Somebody was quicker.
      if (!isConflict(error) && !isAlreadyExists(error))
        named.warn('cannot tell who leads', { error: (error as Error).message });
    }
    if (held) {
      named.info('leading');
      try {
        await lead(options, held, run);
      } catch (error) {
        if (!(error instanceof NotSyncedError)) throw error;
        // Another process may have the rights, or the way to the server, that this one lacks.
        named.error('leadership given up: the controller cannot work', { error: error.message });
        await clock.sleep(GIVEN_UP_MS, signal).catch(() => {});
      }
      sight = undefined;
      reportedHolder = '';
    }
    await clock.sleep(RETRY_MS, signal).catch(() => {});
  }
}

async function look({ client, clock, signal, lease }: LeadershipOptions, before: Sight | undefined): Promise<Sight> {
  const found = await orAbsent(client.get<Lease>(LEASES, lease, { signal }));
  const same = before !== undefined && before.lease?.metadata.resourceVersion === found?.metadata.resourceVersion;
  return same ? before : { lease: found, since: clock.monotonic() };
}

function isFree({ clock, identity }: LeadershipOptions, { lease, since }: Sight): boolean {
  const { holderIdentity = '', leaseDurationSeconds = DURATION_SECONDS } = lease?.spec ?? {};
  if (holderIdentity === '' || holderIdentity === identity) return true;
  return clock.monotonic() - since >= leaseDurationSeconds * 1000;
}

function take({ client, clock, signal, lease: key, identity }: LeadershipOptions, old?: Lease): Promise<Lease> {
  const now = formatMicroTime(clock.now());
  const spec: LeaseSpec = {
    ...old?.spec,
    holderIdentity: identity,
    leaseDurationSeconds: DURATION_SECONDS,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: old ? (old.spec?.leaseTransitions ?? 0) + 1 : 0,
  };
  if (old) return client.update(LEASES, { ...old, spec }, { signal });
  const made: Lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...key }, spec };
  return client.create(LEASES, made, { signal });
}

/** Runs and renews until the end, or until the Lease is lost. */
async function lead(
  options: LeadershipOptions,
  first: Lease,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { client, clock, log, signal, identity } = options;
  const term = createLinkedController(signal);
  let held = first;
  let renewed = clock.monotonic();
  const keep = async (): Promise<void> => {
    while (!term.signal.aborted) {
      await clock.sleep(RETRY_MS, term.signal);
      // A server that does not answer must not keep us from noticing that the time is over.
      const call = createLinkedController(term.signal);
      const stopTimer = clock.schedule(renewed + RENEW_WITHIN_MS - clock.monotonic(), () =>
        call.abort(new Error('late')),
      );
      const began = clock.monotonic();
      try {
        const spec = { ...held.spec, renewTime: formatMicroTime(clock.now()) };
        held = await client.update(LEASES, { ...held, spec }, { signal: call.signal });
        renewed = began;
      } catch (error) {
        term.signal.throwIfAborted();
        if (isNotFound(error)) {
          // Deleted by hand: whoever makes it anew holds it.
          held = await take({ ...options, signal: call.signal }).catch(() => held);
        } else if (isConflict(error)) {
          const found = await client.get<Lease>(LEASES, options.lease, { signal: call.signal }).catch(() => undefined);
          if (found && found.spec?.holderIdentity !== identity) throw new Error('another one has taken it');
          if (found) held = found;
        }
        log.debug('lease not renewed', { lease: options.lease.name, error: (error as Error).message });
        if (clock.monotonic() - renewed >= RENEW_WITHIN_MS) throw new Error('it could not be renewed in time');
      } finally {
        stopTimer();
        call.release();
      }
    }
  };
  const keeping = keep().catch((error: Error) => {
    if (signal.aborted || term.signal.aborted) return;
    log.error('leadership lost', { lease: options.lease.name, error: error.message });
    term.abort(error);
  });
  try {
    await run(term.signal);
  } finally {
    const isOurs = !term.signal.aborted || signal.aborted;
    term.abort(new Error('the job has ended'));
    await keeping;
    term.release();
    if (isOurs) await letGo(options, held);
  }
}

/** So that the next one need not wait. What fails here costs it a few seconds. */
async function letGo({ client, clock, log }: LeadershipOptions, held: Lease): Promise<void> {
  const limit = new AbortController();
  const stopTimer = clock.schedule(RELEASE_WITHIN_MS, () => limit.abort(new Error('late')));
  try {
    const spec = { ...held.spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: formatMicroTime(clock.now()) };
    await client.update(LEASES, { ...held, spec }, { signal: limit.signal });
  } catch (error) {
    log.debug('lease not given back', { lease: held.metadata.name, error: (error as Error).message });
  } finally {
    stopTimer();
  }
}
