/** Keeps requests in flight and counts the answers. */
import { encodeHttp1, Http1Connection } from './http1-connection.ts';
import { encodeRequest, Http2Connection } from './http2-connection.ts';
import { quantile, type RequestLoad, type RequestResult, type RequestTemplate } from './load.ts';

/** Past this the server is taken for stuck. */
const STUCK_MS = 30_000;

/** Runs the load. Rejects when a connection breaks or an HTTP/1.1 answer is no success. */
export async function runRequests(load: RequestLoad): Promise<RequestResult> {
  const meter = new Meter(load);
  const requests = buildRequests(load);
  const authority = `${load.endpoint.host}:${load.endpoint.port}`;
  if (load.protocol === 'http1') {
    const encoded = requests.map((request) => encodeHttp1(request, authority));
    const connections = await Promise.all(
      Array.from({ length: load.inFlight }, () => Http1Connection.open(load.endpoint)),
    );
    meter.start();
    for (const connection of connections) {
      const next = (): void => {
        const index = meter.take();
        if (index < 0) return;
        const sent = performance.now();
        connection.send(encoded[index]!, (bytes) => {
          meter.answered(sent, bytes);
          next();
        });
      };
      next();
    }
    return finish(meter, connections);
  }
  const encoded = requests.map((request) => encodeRequest(request, authority));
  const connection = await Http2Connection.open(load.endpoint);
  meter.start();
  const next = (): void => {
    const index = meter.take();
    if (index < 0) return;
    const sent = performance.now();
    connection.send(encoded[index]!, {
      end(bytes) {
        meter.answered(sent, bytes);
        next();
      },
    });
  };
  for (let i = 0; i < load.inFlight; i++) next();
  return finish(meter, [connection]);
}

async function finish(
  meter: Meter,
  connections: readonly { readonly failure: Promise<never>; close(): void }[],
): Promise<RequestResult> {
  let stuck: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      meter.done,
      new Promise<never>((_, reject) => {
        stuck = setTimeout(() => reject(new Error('the server stopped answering')), STUCK_MS);
      }),
      ...connections.map((connection) => connection.failure),
    ]);
  } finally {
    clearTimeout(stuck);
    for (const connection of connections) connection.close();
  }
}

function buildRequests({
  templates,
  count,
  wrap = Number.MAX_SAFE_INTEGER,
  first = 0,
}: RequestLoad): RequestTemplate[] {
  return Array.from({ length: count }, (_, n) => {
    const { body, ...template } = templates[n % templates.length]!;
    const fill = (text: string): string =>
      text.replaceAll('{i}', String(first + (n % wrap))).replaceAll('{v}', String(Math.floor(n / wrap)));
    return { ...template, path: fill(template.path), ...(body !== undefined && { body: fill(body) }) };
  });
}

/** Hands out request numbers and measures between the end of the warm-up and the deadline (or the last request). */
class Meter {
  readonly #load: RequestLoad;
  readonly #latencies: number[] = [];
  readonly done: Promise<RequestResult>;
  #finish: (result: RequestResult) => void = () => {};
  #sent = 0;
  #pending = 0;
  #began = 0;
  #measureFrom = 0;
  #cpuFrom: NodeJS.CpuUsage | undefined;
  #answers = 0;
  #bytes = 0;
  #ended = false;

  constructor(load: RequestLoad) {
    this.#load = load;
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
  }

  start(): void {
    this.#began = performance.now();
    if (this.#load.warmUpMs === 0) this.#open(this.#began);
  }

  /** -1 when no more is to be sent. */
  take(): number {
    if (this.#ended) return -1;
    if (this.#load.once && this.#sent >= this.#load.count) {
      if (this.#pending === 0) this.#end(performance.now());
      return -1;
    }
    this.#pending++;
    return this.#sent++ % this.#load.count;
  }

  answered(sent: number, bytes: number): void {
    this.#pending--;
    if (this.#ended) return;
    const now = performance.now();
    if (this.#cpuFrom === undefined) {
      if (now - this.#began >= this.#load.warmUpMs) this.#open(now);
      return;
    }
    this.#answers++;
    this.#bytes += bytes;
    this.#latencies.push(now - sent);
    if (now - this.#measureFrom >= this.#load.measureMs) this.#end(now);
  }

  #open(now: number): void {
    this.#measureFrom = now;
    this.#cpuFrom = process.cpuUsage();
  }

  #end(now: number): void {
    this.#ended = true;
    const seconds = (now - this.#measureFrom) / 1000;
    const { user, system } = process.cpuUsage(this.#cpuFrom);
    const ascending = Float64Array.from(this.#latencies).sort();
    this.#finish({
      answers: this.#answers,
      seconds,
      bytes: this.#bytes,
      sent: this.#sent,
      latencyMs: { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99) },
      generatorBusy: (user + system) / 1e6 / seconds,
    });
  }
}
