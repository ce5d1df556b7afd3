/**
 * Events for users: core/v1 Events about objects, written behind the caller's back. `event` never waits, never throws and
 * never fails a pass; what cannot be written is dropped and logged at debug.
 */

import type { ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { formatTime } from '@coracle/apimachinery/meta/object';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { EVENTS } from '@coracle/apimachinery/types/resource-types';
import type { Event, ObjectReference } from '@coracle/apimachinery/types/types';
import { type Clock, systemClock } from '@coracle/runtime/clock/clock';
import { NEVER } from '@coracle/runtime/http/seam';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import { retry } from '@coracle/runtime/retry/retry';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { isNotFound } from '../api-failure.ts';
import type { Client } from '../client.ts';
import { createEventCorrelator } from './event-correlator.ts';

export type EventType = 'Normal' | 'Warning';

export interface EventRecorderOptions {
  /** Who reports: `virtualmachine-controller`. */
  readonly component: string;
  /** The node the component runs on, where that matters. */
  readonly host?: string;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Stops writing when it aborts. */
  readonly signal?: AbortSignal;
}

export interface EventRecorder {
  /** Reports something about an object that is stored (it needs a name). `reason` is CamelCase, `message` a sentence for people. */
  event(object: ReadonlyObject, type: EventType, reason: string, message: string): void;
  /** Resolves when everything reported so far is written or given up. From then on no event waits for other work: who stops asks. */
  flush(): Promise<void>;
}

interface Report {
  readonly object: Required<Omit<ObjectReference, 'fieldPath'>>;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly at: number;
  /** It waits no longer, by the monotonic clock. */
  readonly latest: number;
}

/** Reports not yet written; more are dropped. */
const MAX_QUEUED = 1000;
/** Upstream's bound on an Event's message, in bytes; cut in characters, which is on the safe side only for ASCII. */
const MAX_MESSAGE = 1024;
/** What an event waits for work that users wait for: then it is written beside it. */
const PATIENCE_MS = 3000;
/** For transport failures only: the API's own refusals are final. */
const RETRY = { baseMs: 500, maxMs: 5_000 };
const ATTEMPTS = 4;

/** Makes a recorder with its own queue and memory. */
export function createEventRecorder(client: Client, options: EventRecorderOptions): EventRecorder {
  const { component, host, clock = systemClock, log = silentLogger, signal = NEVER } = options;
  const correlator = createEventCorrelator(() => clock.monotonic());
  const queue: Report[] = [];
  const patience = createLinkedController(signal);
  let writing: Promise<void> | undefined;
  // Not from 0: other recorders report about objects of the same name in the same millisecond.
  let serial = Math.floor(Math.random() * 1_000_000);

  const write = async (report: Report): Promise<void> => {
    const { object, type, reason } = report;
    const source = JSON.stringify([component, host ?? '', object.kind, object.namespace, object.name, object.uid]);
    const fate = correlator.correlate({ source, type, reason, message: report.message });
    if (fate.type === 'drop') return;
    const now = formatTime(report.at);
    if (fate.type === 'count') {
      const { written, key } = fate;
      try {
        await client.patch(
          EVENTS,
          { namespace: written.namespace, name: written.name },
          { type: 'strategic', body: { count: written.count + 1, lastTimestamp: now, message: fate.message } },
          { signal },
        );
        written.count += 1;
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
        correlator.forget(key);
      }
    }
    const namespace = object.namespace === '' ? 'default' : object.namespace;
    // Unique as long as one component does not report twice in a millisecond under one number.
    const suffix = (BigInt(report.at) * 1_000_000n + BigInt(serial++ % 1_000_000)).toString(16);
    const name = `${object.name.slice(0, 230)}.${suffix}`;
    const event: Event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace },
      involvedObject: { ...object, ...(object.namespace === '' && { namespace: '' }) },
      reason,
      message: fate.message,
      source: { component, ...(host !== undefined && { host }) },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
      type,
      reportingComponent: component,
      ...(host !== undefined && { reportingInstance: host }),
    };
    await client.create(EVENTS, event, { signal });
    correlator.written(fate.key, { namespace, name, count: 1, firstTimestamp: now });
  };

  const drain = async (): Promise<void> => {
    for (let report = queue.shift(); report; report = queue.shift()) {
      const current = report;
      const idle = clock.whenIdle(current.latest - clock.monotonic(), patience.signal);
      if (idle) await idle;
      try {
        await retry(() => write(current), {
          clock,
          signal,
          policy: RETRY,
          attempts: ATTEMPTS,
          retryable: (error) => !(error instanceof ApiError),
        });
      } catch (error) {
        log.debug('event not written', { reason: current.reason, error: String(error) });
      }
    }
    writing = undefined;
  };

  return {
    event(object, type, reason, message) {
      if (signal.aborted) return;
      if (queue.length >= MAX_QUEUED) {
        log.debug('event dropped, queue full', { reason });
        return;
      }
      const { name = '', namespace = '', uid = '', resourceVersion = '' } = object.metadata;
      queue.push({
        object: { apiVersion: object.apiVersion, kind: object.kind, namespace, name, uid, resourceVersion },
        type,
        reason,
        message: message.slice(0, MAX_MESSAGE),
        at: clock.now(),
        latest: clock.monotonic() + PATIENCE_MS,
      });
      writing ??= drain();
    },
    async flush() {
      patience.abort(new Error('events are flushed'));
      while (writing) await writing;
    },
  };
}
