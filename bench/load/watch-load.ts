/** Writes at a steady rate and measures when each write reaches each of many watchers. */
import { connect } from 'node:tls';
import { cpuMicros } from '../process-cpu.ts';
import { encodeRequest, Http2Connection } from './http2-connection.ts';
import { type Endpoint, quantile, type WatchLoad, type WatchResult } from './load.ts';

const MARK = 'bench-seq-';
const MODIFIED = '{"type":"MODIFIED"';
const DIGITS = 6;
const TICK_MS = 2;
/** How long after the last write deliveries are waited for. */
const SETTLE_MS = 2000;
const NEWLINE = 0x0a;
/** Connections opened at the same time. */
const AT_ONCE = 20;

/** Runs the load. Rejects when a connection breaks. */
export async function runWatch(load: WatchLoad): Promise<WatchResult> {
  const authority = `${load.endpoint.host}:${load.endpoint.port}`;
  const total = Math.floor(load.perSecond * load.seconds);
  const sentAt = new Float64Array(total);
  const latencies: number[] = [];
  const reader = (): ((chunk: Buffer) => void) =>
    lineReader((line) => {
      // Initial events are no deliveries.
      const at = line.indexOf(MODIFIED) === 0 ? line.indexOf(MARK) : -1;
      if (at < 0) return;
      const sequence = Number(line.toString('latin1', at + MARK.length, at + MARK.length + DIGITS));
      latencies.push(performance.now() - sentAt[sequence]!);
    });
  const watchers = await openWatchers(load, { authority, reader });
  const writer = await Http2Connection.open(load.endpoint);
  const all: readonly Connection[] = [...watchers, writer];
  const failure = Promise.race(all.map((connection) => connection.failure));
  failure.catch(() => {});
  try {
    // Watches have begun when their first bytes could have come; writes below only start then.
    await Promise.race([pause(300 + load.watchers), failure]);

    const requests = Array.from({ length: total }, (_, n) => {
      const fill = (text: string): string =>
        text.replaceAll('{i}', String(n % load.wrap)).replaceAll('{seq}', `${MARK}${String(n).padStart(DIGITS, '0')}`);
      const { method, path, body } = load.write;
      return encodeRequest({ method, path: fill(path), body: body === undefined ? undefined : fill(body) }, authority);
    });
    let written = 0;
    let answered = 0;
    const cpuFrom = process.cpuUsage();
    const serverFrom = load.pid === undefined ? undefined : cpuMicros(load.pid);
    const began = performance.now();
    const writing = new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        const due = Math.min(total, Math.floor(((performance.now() - began) / 1000) * load.perSecond));
        while (written < due) {
          sentAt[written] = performance.now();
          writer.send(requests[written]!, { end: () => void answered++ });
          written++;
        }
        if (written < total) return;
        clearInterval(timer);
        resolve();
      }, TICK_MS);
    });
    await Promise.race([writing, failure]);
    const seconds = (performance.now() - began) / 1000;
    const { user, system } = process.cpuUsage(cpuFrom);
    const expected = total * load.watchers;
    for (let waited = 0; waited < SETTLE_MS && (latencies.length < expected || answered < total); waited += 20) {
      await Promise.race([pause(20), failure]);
    }
    const serverTo = load.pid === undefined ? undefined : cpuMicros(load.pid);
    const ascending = Float64Array.from(latencies).sort();
    return {
      writes: answered,
      deliveries: latencies.length,
      missing: expected - latencies.length,
      latencyMs: { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99), max: ascending.at(-1) ?? Number.NaN },
      perSecond: total / seconds,
      generatorBusy: (user + system) / 1e6 / seconds,
      ...(serverFrom !== undefined &&
        serverTo !== undefined &&
        latencies.length > 0 && { cpuMicros: (serverTo - serverFrom) / latencies.length }),
    };
  } finally {
    for (const connection of all) connection.close();
  }
}

interface Connection {
  readonly failure: Promise<never>;
  close(): void;
}

/** Opens the watches, some at a time: a thousand handshakes at once would only wait for each other. */
async function openWatchers(
  { endpoint, watchers, perConnection = 1, protocol = 'http2', watchPath: path }: WatchLoad,
  { authority, reader }: { readonly authority: string; readonly reader: () => (chunk: Buffer) => void },
): Promise<Connection[]> {
  const connections: Connection[] = [];
  const each = protocol === 'http1' ? 1 : perConnection;
  const watch = encodeRequest({ method: 'GET', path }, authority);
  for (let open = 0; open < watchers; open += each * AT_ONCE) {
    const count = Math.min(AT_ONCE, Math.ceil((watchers - open) / each));
    connections.push(
      ...(await Promise.all(
        Array.from({ length: count }, async (_, n): Promise<Connection> => {
          if (protocol === 'http1') return openHttp1Watch(endpoint, { path, authority, data: reader() });
          const connection = await Http2Connection.open(endpoint);
          const streams = Math.min(each, watchers - open - n * each);
          for (let i = 0; i < streams; i++) connection.send(watch, { data: reader(), end: () => {} });
          return connection;
        }),
      )),
    );
  }
  return connections;
}

/** A watch over HTTP/1.1. Its chunk lengths are lines of their own, and no event begins like one. */
function openHttp1Watch(
  { host, port, ca, certificate, key }: Endpoint,
  { path, authority, data }: { path: string; authority: string; data: (chunk: Buffer) => void },
): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, ca, cert: certificate, key, ALPNProtocols: ['http/1.1'] });
    socket.setNoDelay(true);
    socket.once('error', reject);
    socket.once('secureConnect', () => {
      socket.off('error', reject);
      const failure = new Promise<never>((_, fail) => {
        socket.on('error', fail);
        socket.on('close', () => fail(new Error('the server closed a watch')));
      });
      failure.catch(() => {});
      socket.on('data', data);
      socket.write(`GET ${path} HTTP/1.1\r\nhost: ${authority}\r\naccept: application/json\r\n\r\n`);
      resolve({ failure, close: () => socket.destroy() });
    });
  });
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function lineReader(onLine: (line: Buffer) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  return (chunk) => {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      parts.push(chunk.subarray(start, end));
      onLine(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      parts = [];
      start = end + 1;
    }
    if (start < chunk.length) parts.push(chunk.subarray(start));
  };
}
