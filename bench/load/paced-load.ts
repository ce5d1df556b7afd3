/** Sends requests at a steady rate, whether or not the earlier ones are answered, and measures each answer. */
import { encodeRequest, Http2Connection } from './http2-connection.ts';
import { type PacedLoad, type PacedResult, quantile } from './load.ts';

const TICK_MS = 2;
/** How long after the last request answers are waited for. */
const SETTLE_MS = 5000;

/** Runs the load. Rejects when the connection breaks. */
export async function runPaced(load: PacedLoad): Promise<PacedResult> {
  const { endpoint, requests, perSecond, seconds } = load;
  const authority = `${endpoint.host}:${endpoint.port}`;
  const total = Math.floor(perSecond * seconds);
  const encoded = requests.map((request) => encodeRequest(request, authority));
  const connection = await Http2Connection.open(endpoint);
  const latencies: number[] = [];
  try {
    await Promise.race([
      connection.failure,
      new Promise<void>((resolve) => {
        const began = performance.now();
        let sent = 0;
        const timer = setInterval(() => {
          const now = performance.now();
          const due = Math.min(total, Math.floor(((now - began) / 1000) * perSecond));
          for (; sent < due; sent++) {
            const sentAt = performance.now();
            connection.send(encoded[sent % encoded.length]!, {
              end: () => void latencies.push(performance.now() - sentAt),
            });
          }
          if (latencies.length < total && now - began < seconds * 1000 + SETTLE_MS) return;
          clearInterval(timer);
          resolve();
        }, TICK_MS);
      }),
    ]);
  } finally {
    connection.close();
  }
  const ascending = Float64Array.from(latencies).sort();
  return {
    missing: total - latencies.length,
    latencyMs: { p50: quantile(ascending, 0.5), p99: quantile(ascending, 0.99) },
  };
}
