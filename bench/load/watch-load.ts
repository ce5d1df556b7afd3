/** Writes at a steady rate and measures when each write reaches each of many watchers. */
import { encodeRequest, Http2Connection } from './http2-connection.ts';
import { quantile, type WatchLoad, type WatchResult } from './load.ts';

const MARK = 'bench-seq-';
const MODIFIED = '{"type":"MODIFIED"';
const DIGITS = 6;
const TICK_MS = 2;
/** How long after the last write deliveries are waited for. */
const SETTLE_MS = 2000;
const NEWLINE = 0x0a;

/** Runs the load. Rejects when a connection breaks. */
export async function runWatch(load: WatchLoad): Promise<WatchResult> {
  const authority = `${load.endpoint.host}:${load.endpoint.port}`;
  const total = Math.floor(load.perSecond * load.seconds);
  const sentAt = new Float64Array(total);
  const latencies: number[] = [];
  const watchers = await Promise.all(Array.from({ length: load.watchers }, () => Http2Connection.open(load.endpoint)));
  const writer = await Http2Connection.open(load.endpoint);
  const all = [...watchers, writer];
  const failure = Promise.race(all.map((connection) => connection.failure));
  failure.catch(() => {});
  try {
    const watch = encodeRequest({ method: 'GET', path: load.watchPath }, authority);
    for (const connection of watchers) {
      const lines = lineReader((line) => {
        // Initial events are no deliveries.
        const at = line.indexOf(MODIFIED) === 0 ? line.indexOf(MARK) : -1;
        if (at < 0) return;
        const sequence = Number(line.toString('latin1', at + MARK.length, at + MARK.length + DIGITS));
        latencies.push(performance.now() - sentAt[sequence]!);
      });
      connection.send(watch, { data: lines, end: () => {} });
    }
    // Watches have begun when their first bytes could have come; writes below only start then.
    await Promise.race([pause(300), failure]);

    const requests = Array.from({ length: total }, (_, n) => {
      const fill = (text: string): string =>
        text.replaceAll('{i}', String(n % load.wrap)).replaceAll('{seq}', `${MARK}${String(n).padStart(DIGITS, '0')}`);
      const { method, path, body } = load.write;
      return encodeRequest({ method, path: fill(path), body: body === undefined ? undefined : fill(body) }, authority);
    });
    let written = 0;
    let answered = 0;
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
    const expected = total * load.watchers;
    for (let waited = 0; waited < SETTLE_MS && (latencies.length < expected || answered < total); waited += 20) {
      await Promise.race([pause(20), failure]);
    }
    const ascending = Float64Array.from(latencies).sort();
    return {
      writes: answered,
      deliveries: latencies.length,
      missing: expected - latencies.length,
      latencyMs: { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99), max: ascending.at(-1) ?? Number.NaN },
      perSecond: total / seconds,
    };
  } finally {
    for (const connection of all) connection.close();
  }
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
