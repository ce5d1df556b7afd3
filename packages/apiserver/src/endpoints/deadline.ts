/** How long a request may take: what the client asks for, what the server allows, and what it hears when that is over. */

import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { Exchange } from './exchange.ts';
import { TEXT_HEADERS } from './responses.ts';

const WRITE_DEADLINE_MS = 34_000;
const DEADLINE_MS = 60_000;
const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/** What the query asks for, within what the server allows. Throws ApiError 400 when it is no duration. */
export function deadlineOf({ info, request, query }: Exchange): number {
  const cap = WRITES.has(info.verb) ? WRITE_DEADLINE_MS : DEADLINE_MS;
  const text = request.query.includes('timeout') ? query.get('timeout') : null;
  if (text === null || text === '') return cap;
  const asked = parseGoDuration(text);
  if (asked === undefined) {
    const why = `time: invalid duration ${goQuote(text)}`;
    throw badRequest(`invalid timeout specified in the request URL - ${why}`);
  }
  return asked > 0 && asked < cap ? asked : cap;
}

/**
 * Gives up waiting for an answer in time, and tells those who work on it (`Exchange.signal`). What has been sent to the
 * disk by then may still be written.
 */
export function withDeadline(
  exchange: Exchange,
  pending: Promise<ApiResponse | undefined>,
): Promise<ApiResponse | undefined> {
  const { deadline } = exchange;
  if (deadline === undefined) return pending;
  const { clock } = exchange.server;
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(Math.max(deadline - clock.monotonic(), 0), () => {
      exchange.expire();
      resolve(TIMED_OUT);
    });
    const done =
      <T>(settle: (outcome: T) => void) =>
      (outcome: T): void => {
        cancel();
        exchange.release();
        settle(outcome);
      };
    pending.then(done(resolve), done(reject));
  });
}

/**
 * Not said as other refusals are: upstream's filter writes a Status that does not say so, which clients take for a
 * server that did not answer ("the server was unable to return a response in the time allotted").
 */
const TIMED_OUT: ApiResponse = Object.freeze({
  status: 504,
  headers: TEXT_HEADERS,
  body: new TextEncoder().encode(
    `${JSON.stringify({
      metadata: {},
      status: 'Failure',
      message: 'Timeout: request did not complete within the allotted timeout',
      reason: 'Timeout',
      details: {},
      code: 504,
    })}\n`,
  ),
});
