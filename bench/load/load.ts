/** What the load generator is asked to do, and what it answers: plain values that cross the process border. */

/** A TLS server and the client certificate shown to it. PEM. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

export type Protocol = 'http1' | 'http2';

/** `{i}` in path and body becomes the request's number (modulo `wrap`), `{v}` the lap it belongs to. */
export interface RequestTemplate {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly body?: string;
  /** What the client says it can read, `Accept-Encoding`; nothing when absent. */
  readonly acceptEncoding?: string;
}

/** Requests kept in flight for a while: built before the clock starts, sent round and round unless `once`. */
export interface RequestLoad {
  readonly kind: 'requests';
  readonly endpoint: Endpoint;
  readonly protocol: Protocol;
  readonly inFlight: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Used in turn. */
  readonly templates: readonly RequestTemplate[];
  /** Requests built; with `once` also the most that are sent. */
  readonly count: number;
  readonly wrap?: number;
  readonly first?: number;
  readonly once?: boolean;
}

export interface RequestResult {
  /** Answers in the measured time. */
  readonly answers: number;
  readonly seconds: number;
  /** Body bytes received in the measured time. */
  readonly bytes: number;
  /** Requests sent in all, warm-up included. */
  readonly sent: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number };
  /** Share of one core that the generator itself used: near 1 means that it was the bottleneck. */
  readonly generatorBusy: number;
}

/** Writes at a steady rate on one connection, watched on `watchers` others. */
export interface WatchLoad {
  readonly kind: 'watch';
  readonly endpoint: Endpoint;
  readonly watchers: number;
  /** How many watches share one connection: 1 when not said, and always over HTTP/1.1. */
  readonly perConnection?: number;
  /** How the watchers speak; the writer speaks HTTP/2. */
  readonly protocol?: Protocol;
  readonly watchPath: string;
  readonly perSecond: number;
  readonly seconds: number;
  /** PUT; the body holds `{seq}`, which names the write. `{i}` runs through `wrap` objects. */
  readonly write: RequestTemplate;
  readonly wrap: number;
  /** The server's process, on this machine: its CPU time is read when the writes begin and when all was delivered. */
  readonly pid?: number;
}

export interface WatchResult {
  readonly writes: number;
  readonly deliveries: number;
  /** Deliveries that did not come within two seconds of the last write. */
  readonly missing: number;
  /** From the moment a write is sent to the moment a watcher has its event whole. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number };
  readonly perSecond: number;
  /** Share of one core that the generator itself used while it wrote. */
  readonly generatorBusy: number;
  /** CPU time of `pid` for one delivery, microseconds; the watches' own beginnings are no part of it. */
  readonly cpuMicros?: number;
}

/** Requests at a steady rate on one connection. */
export interface PacedLoad {
  readonly kind: 'paced';
  readonly endpoint: Endpoint;
  /** Sent in turn, as they are. */
  readonly requests: readonly RequestTemplate[];
  readonly perSecond: number;
  readonly seconds: number;
}

export interface PacedResult {
  /** Requests that were not answered within five seconds of the last one. */
  readonly missing: number;
  readonly latencyMs: { readonly p50: number; readonly p99: number };
}

export type Load = RequestLoad | WatchLoad | PacedLoad;

/** The `fraction` quantile of ascending values. */
export function quantile(ascending: readonly number[] | Float64Array, fraction: number): number {
  if (ascending.length === 0) return Number.NaN;
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * fraction))]!;
}
