/** What both protocols of the HTTPS front do alike: hand a request to the handler, and its reply to the wire. */
import type { ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { Logger } from '../log/log.ts';
import type { BodyBudget } from './body-budget.ts';
import type { Connection } from './connections.ts';
import type { ApiHandler, ApiResponse, ByteSink } from './seam.ts';
import type { WireRequest } from './wire-request.ts';

/** Upstream's limits: header bytes, and how long a connection may be idle. */
export const MAX_HEADER_BYTES = 1024 * 1024;
export const IDLE_MS = 90_000;

/** What the two protocol servers of one front share. */
export interface Front {
  /** What requests are handed to. */
  readonly handle: ApiHandler;
  /** Bodies are cut at this many bytes plus one. */
  readonly limit: number;
  /** For the bodies of all connections. */
  readonly budget: BodyBudget;
  /** The connection behind a TLS socket or an HTTP/2 session; undefined for what is not counted. */
  connectionOf(carrier: object): Connection | undefined;
  readonly log: Logger;
  /** The front is being closed: connections end with the answer under way. */
  closing: boolean;
}

/** Hands the reply to `write`; a handler that fails is answered for. */
export function answerRequest(
  reply: Promise<ApiResponse>,
  log: Logger,
  write: (reply: ApiResponse) => Promise<void> | void,
): void {
  reply.then(write).catch((error: unknown) => {
    log.error('request handler failed', {
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    void write({
      status: 500,
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      body: new TextEncoder().encode('internal error\n'),
    });
  });
}

/** The headers of a reply, each cookie a header of its own. */
export const withCookies = ({ headers, cookies }: ApiResponse): Readonly<Record<string, string | string[]>> =>
  cookies ? { ...headers, 'set-cookie': [...cookies] } : headers;

/** A whole body as its parts. */
export const partsOf = (body: Uint8Array | readonly Uint8Array[] | undefined): readonly Uint8Array[] =>
  body === undefined ? [] : body instanceof Uint8Array ? [body] : body;

/** Where a handler writes a body that it makes as it goes. */
export function sinkOf(out: ServerResponse | ServerHttp2Stream, wire: WireRequest): ByteSink {
  return {
    write: (chunk) => !out.destroyed && !out.writableEnded && out.write(chunk),
    get buffered() {
      return out.writableLength;
    },
    drained: () =>
      new Promise((resolve) => {
        if (out.destroyed || !out.writableNeedDrain) return resolve();
        const done = (): void => {
          out.off('drain', done);
          out.off('close', done);
          resolve();
        };
        out.on('drain', done);
        out.on('close', done);
      }),
    end: () => {
      if (!out.destroyed) out.end();
    },
    fail: () => {
      // Not `close` on HTTP/2: that ends the body properly before it says that something is wrong.
      if (!out.destroyed) out.destroy('rstCode' in out ? new Error('the body broke off') : undefined);
    },
    signal: wire.signal,
  };
}
