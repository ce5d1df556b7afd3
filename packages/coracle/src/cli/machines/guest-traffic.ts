/** What guests have read, written, received and sent since their start, as their nodes count it. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import type { Client } from '@coracle/client/client';

/** Bytes since the guest started. Absent where nobody counts them: those of cards take a guest agent. */
export interface GuestTraffic {
  readonly readBytes?: number;
  readonly writtenBytes?: number;
  readonly receivedBytes?: number;
  readonly sentBytes?: number;
}

/** Nodes that are asked. */
const MOST_NODES = 100;

const COUNTERS: Readonly<Record<string, keyof GuestTraffic>> = {
  storage_read_traffic: 'readBytes',
  storage_write_traffic: 'writtenBytes',
  network_receive: 'receivedBytes',
  network_transmit: 'sentBytes',
};
const SAMPLE = /^kubevirt_vmi_(\w+)_bytes_total\{node="[^"]*",namespace="([^"]*)",name="([^"]*)".*\} (\S+)$/;

/** By `NAMESPACE/NAME`, from metrics as Prometheus reads them: of all drives and cards of a guest together. */
export function readTraffic(metrics: string): Map<string, GuestTraffic> {
  const found = new Map<string, GuestTraffic>();
  for (const line of metrics.split('\n')) {
    const [, counter = '', namespace, name, value] = SAMPLE.exec(line) ?? [];
    if (!Object.hasOwn(COUNTERS, counter)) continue;
    const [key, field] = [`${namespace}/${name}`, COUNTERS[counter]!];
    const before = found.get(key) ?? {};
    found.set(key, { ...before, [field]: (before[field] ?? 0) + Number(value) });
  }
  return found;
}

/** Of the guests of those nodes. A node that does not tell, or may not be asked, is left out. */
export async function guestTraffic(
  client: Client,
  nodes: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<Map<string, GuestTraffic>> {
  const texts = [...nodes].slice(0, MOST_NODES).map(async (node) => {
    try {
      return await client.raw('GET', `/api/v1/nodes/${encodeURIComponent(node)}/proxy/metrics`, { signal });
    } catch (error) {
      if (error instanceof ApiError) return '';
      throw error;
    }
  });
  return readTraffic((await Promise.all(texts)).filter((text) => typeof text === 'string').join('\n'));
}
