/**
 * What nodes and their Pods take now. Agents count processor time from the start: a rate takes two answers, some time
 * apart. They are asked when somebody wants to know, and one question serves all who ask meanwhile.
 */
import { wholeBody } from '@coracle/client/transport/response-body';
import type { Clock } from '@coracle/runtime/clock/clock';
import { type ApiHandler, NO_BYTES } from '@coracle/runtime/http/seam';
import type { Logger } from '@coracle/runtime/log/log';

/** What somebody took over a while. */
export interface Usage {
  /** Billionths of a processor, on average over the window. */
  readonly nanoCores: number;
  /** Bytes, at the end of the window. */
  readonly memoryBytes: number;
}

/** One node, measured. */
export interface MeasuredNode {
  /** End of the window, ms since the epoch. */
  readonly at: number;
  readonly windowMs: number;
  readonly node: Usage | undefined;
  /** By the UID of the Pod, then the name of the container; Pods without a sample are not there. */
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Usage>>;
}

export interface NodeUsageOptions {
  /** The way to an agent; rejects for a node that cannot be reached. */
  readonly connect: (nodeName: string) => Promise<ApiHandler>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends all questions. */
  readonly signal: AbortSignal;
}

/** Measures a node; undefined when its agent does not answer. */
export type NodeUsage = (nodeName: string) => Promise<MeasuredNode | undefined>;

interface Taken {
  readonly cpuNanos: number;
  readonly memoryBytes: number;
}

interface Sample {
  /** Monotonic ms. */
  readonly monotonic: number;
  readonly at: number;
  readonly node: Taken | undefined;
  readonly pods: ReadonlyMap<string, ReadonlyMap<string, Taken>>;
}

interface Known {
  readonly sample: Sample;
  readonly measured: MeasuredNode | undefined;
}

interface Figures {
  readonly cpu?: { readonly usageCoreNanoSeconds?: number };
  readonly memory?: { readonly workingSetBytes?: number };
}

interface Summary {
  readonly node?: Figures;
  readonly pods?: readonly {
    readonly podRef?: { readonly uid?: string };
    readonly containers?: readonly (Figures & { readonly name?: string })[];
  }[];
}

/** Processor time is counted in hundredths of a second: over less than this the rate is too rough. An answer is kept as long. */
const LEAST_WINDOW_MS = 1_000;
/** An older sample says how it was, not how it is. */
const LONGEST_WINDOW_MS = 60_000;
/** An agent that is slower counts as silent. */
const PATIENCE_MS = 5_000;
/** Nodes whose last sample is kept. */
const MAX_KNOWN = 1_000;

/** Makes the measuring. It asks nobody by itself. */
export function createNodeUsage(options: NodeUsageOptions): NodeUsage {
  const { clock, log } = options;
  const known = new Map<string, Known>();
  const running = new Map<string, Promise<MeasuredNode | undefined>>();

  const measure = async (nodeName: string): Promise<MeasuredNode | undefined> => {
    const before = known.get(nodeName);
    const age = before ? clock.monotonic() - before.sample.monotonic : Number.POSITIVE_INFINITY;
    if (before?.measured && age < LEAST_WINDOW_MS) return before.measured;
    let first = before?.sample;
    if (!first || age > LONGEST_WINDOW_MS) first = await sampleOf(nodeName, options);
    const wait = LEAST_WINDOW_MS - (clock.monotonic() - first.monotonic);
    if (wait > 0) await clock.sleep(wait, options.signal);
    const last = await sampleOf(nodeName, options);
    const measured = between(first, last);
    known.delete(nodeName);
    known.set(nodeName, { sample: last, measured });
    const [oldest] = known.keys();
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    return measured;
  };

  return (nodeName) => {
    const asked = running.get(nodeName);
    if (asked) return asked;
    const asking = measure(nodeName)
      .catch((error: unknown) => {
        log.debug('node not measured', { node: nodeName, error: (error as Error).message });
        return undefined;
      })
      .finally(() => running.delete(nodeName));
    running.set(nodeName, asking);
    return asking;
  };
}

async function sampleOf(nodeName: string, { connect, clock, signal }: NodeUsageOptions): Promise<Sample> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]);
  const agent = await connect(nodeName);
  const answer = await agent({
    method: 'GET',
    path: '/stats/summary',
    query: 'only_cpu_and_memory=true',
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal: limit,
  });
  const text = new TextDecoder().decode(await wholeBody(answer, limit));
  if (answer.status !== 200) throw new Error(`its agent answered ${answer.status}`);
  const { node, pods = [] } = JSON.parse(text) as Summary;
  return {
    monotonic: clock.monotonic(),
    at: clock.now(),
    node: node && takenOf(node),
    pods: new Map(pods.map(({ podRef, containers = [] }) => [podRef?.uid ?? '', takenBy(containers)])),
  };
}

const takenBy = (containers: readonly (Figures & { readonly name?: string })[]): ReadonlyMap<string, Taken> =>
  new Map(
    containers.flatMap((container) => {
      const taken = takenOf(container);
      return taken ? [[container.name ?? '', taken] as const] : [];
    }),
  );

function takenOf({ cpu, memory }: Figures): Taken | undefined {
  const [cpuNanos, memoryBytes] = [cpu?.usageCoreNanoSeconds, memory?.workingSetBytes];
  return cpuNanos === undefined || memoryBytes === undefined ? undefined : { cpuNanos, memoryBytes };
}

/** What was not there before, or has begun to count anew since, has no rate yet. */
function between(first: Sample, last: Sample): MeasuredNode {
  const windowMs = Math.max(1, Math.round(last.monotonic - first.monotonic));
  const usage = (one: Taken | undefined, other: Taken | undefined): Usage | undefined =>
    one && other && other.cpuNanos >= one.cpuNanos
      ? {
          nanoCores: Math.round(((other.cpuNanos - one.cpuNanos) * 1000) / windowMs),
          memoryBytes: other.memoryBytes,
        }
      : undefined;
  const pods = new Map<string, ReadonlyMap<string, Usage>>();
  for (const [uid, containers] of last.pods) {
    const found = new Map<string, Usage>();
    for (const [name, taken] of containers) {
      const used = usage(first.pods.get(uid)?.get(name), taken);
      if (used) found.set(name, used);
    }
    if (found.size > 0) pods.set(uid, found);
  }
  return { at: last.at, windowMs, node: usage(first.node, last.node), pods };
}
