/**
 * The one HTTP seam: plain values that every API handler takes and returns. The in-process client, the TLS server and
 * the HTTPS transport all meet at `ApiHandler`; nobody else knows whether a wire lies between them. The web's Request
 * and Response classes are not used here: a pair of them costs more than a whole GET may.
 */

/** What the connection itself proved about its far end (never taken from headers). */
export interface Peer {
  /** Remote address as text, for logs and audit; '' where no socket carried the request. Never a reason for trust. */
  readonly address: string;
  /** The client certificate, present only if the far end sent one. */
  readonly certificate?: PeerCertificate;
}

/** A client certificate as the TLS layer saw it. */
export interface PeerCertificate {
  /** True when the chain verifies against the server's client CA and the certificate is in its validity period. */
  readonly verified: boolean;
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** SHA-256 of the DER, lower-case hex. */
  readonly fingerprint: string;
  /** When it ends, milliseconds since the epoch: a connection may outlive it. */
  readonly notAfter?: number;
  /** Which of the server's authorities the chain leads to; `client` when not said. */
  readonly authority?: 'client' | 'front-proxy';
}

/**
 * What became of a body: it is here; its owner has too many in flight; all have; or the client went before it was whole.
 */
export type BodyOutcome = 'here' | 'owner-full' | 'full' | 'gone';

/** One request. Header names are lower-case; a repeated header is joined by ', '. */
export interface ApiRequest {
  readonly method: string;
  /** Percent-encoded path, without the query. */
  readonly path: string;
  /** Raw query without the '?', '' when absent. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** [name, value, name, value, ...] as sent, where the wire had them: for headers whose repetitions matter. */
  readonly rawHeaders?: readonly string[];
  /** The whole body (bounded by the server: 3 MiB + 1 byte means "too large"); empty when there was none. */
  readonly body: Uint8Array;
  /**
   * Present while the body is still in the network: reads it into `body`, on the account of `owner`. To be called once,
   * when it is known who sends it; what is never asked for is never held.
   */
  readonly receive?: ((owner: string) => Promise<BodyOutcome>) | undefined;
  /** Tells the connection whose credential it has brought: one that brings none is not kept for long. */
  readonly identify?: ((owner: string) => void) | undefined;
  readonly peer: Peer;
  /** Aborted when the far end goes away or the server stops. */
  readonly signal: AbortSignal;
  /** True when the connection can be turned into a message socket (a WebSocket upgrade was asked for). */
  readonly upgradable?: boolean;
  /** What an upgrade that is no WebSocket asked for (`SPDY/3.1`): its socket carries bytes, whose cuts mean nothing. */
  readonly upgradeTo?: string | undefined;
}

/**
 * The request with some parts replaced, for whoever passes one on. Not an object spread: a request off the wire makes
 * its signal only when asked, and a spread would lose it.
 */
export const redirected = (request: ApiRequest, parts: Partial<ApiRequest>): ApiRequest => ({
  method: request.method,
  path: request.path,
  query: request.query,
  headers: request.headers,
  ...(request.rawHeaders && { rawHeaders: request.rawHeaders }),
  body: request.body,
  peer: request.peer,
  get signal() {
    return request.signal;
  },
  ...(request.upgradable !== undefined && { upgradable: request.upgradable }),
  ...(request.upgradeTo !== undefined && { upgradeTo: request.upgradeTo }),
  ...parts,
});

/** One JSON document of a stream of them (an event of a watch) as a value. Frozen all the way down. */
export type StreamDocument = Readonly<Record<string, unknown>>;

/** Where a streamed body is written. */
export interface ByteSink {
  /** Hands over a chunk; false means the far end is behind (`buffered` tells by how much). Ignored after close. */
  write(chunk: Uint8Array): boolean;
  /**
   * Hands over one document instead of the bytes of its line, `size` of them; otherwise as `write`. There only where the
   * far end is in this process and only reads: a document that stays a value is neither spelled out nor parsed.
   */
  readonly document?: (document: StreamDocument, size: number) => boolean;
  /** Bytes accepted but not yet taken by the far end. A source must give up rather than let this grow without bound. */
  readonly buffered: number;
  /** Resolves when the far end has caught up, or has gone. */
  drained(): Promise<void>;
  /** Ends the body normally. */
  end(): void;
  /** Breaks the body off: the far end must not take it for whole. Where it is absent, `end` has to do. */
  readonly fail?: () => void;
  /** Aborted when the far end has gone or the server stops: the source must release what it holds. */
  readonly signal: AbortSignal;
}

/** A body produced over time (watch, log). Called once; the callee owns the sink until `end()` or the sink's signal. */
export type ByteStream = (sink: ByteSink) => void;

/** A bidirectional message connection: a WebSocket, a pair of queues in process, or bytes in whatever pieces come. */
export interface MessageSocket {
  /** The negotiated sub-protocol, '' if none. */
  readonly protocol: string;
  send(data: Uint8Array | string): void;
  /** Bytes accepted by `send` and not yet on the wire. */
  readonly buffered: number;
  close(code?: number, reason?: string): void;
  /** Leaves what comes next in the network until `resume`. Absent where nothing can be left there. */
  pause?(): void;
  resume?(): void;
  onMessage(listener: (data: Uint8Array, binary: boolean) => void): void;
  /** Called once, also when the connection breaks. */
  onClose(listener: (code: number, reason: string) => void): void;
}

/** One response. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Whole bytes, a list of chunks sent one after the other, or a stream. Absent = empty. */
  readonly body?: Uint8Array | readonly Uint8Array[] | ByteStream;
  /** `Set-Cookie` of each cookie: the one header whose values cannot be joined by commas. */
  readonly cookies?: readonly string[];
  /**
   * Present only with status 101: takes the connection over. `protocol` is the chosen sub-protocol; with `raw` it is what
   * the connection becomes, in answer to `upgradeTo`.
   */
  readonly upgrade?: { readonly protocol: string; readonly raw?: boolean; accept(socket: MessageSocket): void };
}

/** Anything that answers API requests: the embedded server, an HTTPS transport, a node agent. Never rejects on bad input. */
export type ApiHandler = (request: ApiRequest) => Promise<ApiResponse>;

/** A signal that never fires, for callers that have nothing to cancel. */
export const NEVER: AbortSignal = new AbortController().signal;

/** An empty body. */
export const NO_BYTES: Uint8Array = new Uint8Array(0);
