/**
 * What the figures are held to. The reference is a single-binary Kubernetes on a machine of the same size under the
 * same load: 32 requests in flight, 2 kB ConfigMaps, TLS, durable writes.
 */
import type { Figure } from './figure.ts';

interface Budget {
  readonly figure: string;
  readonly atLeast?: number;
  readonly below?: number;
  readonly because: string;
}

const REFERENCE = {
  http1: { create: 1380, update: 1280, get: 3310, list: 740, pages: 97 },
  http2: { create: 1560, update: 1310, get: 3660, list: 890, pages: 66 },
} as const;
const GET_FACTOR = { http1: 2.5, http2: 4 } as const;
const WRITE_FACTOR = 3;
const LIST_FACTOR = 15;

const BUDGETS: readonly Budget[] = [
  ...(['http1', 'http2'] as const).flatMap((protocol): Budget[] => {
    const reference = REFERENCE[protocol];
    const times = (name: 'create' | 'update' | 'get' | 'pages', factor: number): Budget => ({
      figure: `${name}.${protocol}`,
      atLeast: reference[name] * factor,
      because: `${factor} x reference (${reference[name]}/s)`,
    });
    return [
      times('create', WRITE_FACTOR),
      times('update', WRITE_FACTOR),
      times('get', GET_FACTOR[protocol]),
      times('pages', LIST_FACTOR),
      {
        figure: `pages.gzip.${protocol}`,
        atLeast: reference.pages * LIST_FACTOR,
        because: 'as pages, for a client that reads gzip; those of the reference are plain',
      },
      {
        figure: `list5000.${protocol}`,
        below: reference.list / LIST_FACTOR,
        because: `${LIST_FACTOR} x faster than reference (${reference.list} ms)`,
      },
    ];
  }),
  { figure: 'watch.p50', below: 8, because: '20 watchers, 500 writes/s' },
  { figure: 'ready.first', below: 1500, because: 'keys are made' },
  { figure: 'ready.warm', below: 1000, because: 'state is there' },
  { figure: 'rss.idle', below: 150, because: 'controllers run, nobody asks' },
  { figure: 'rss.loaded', below: 400, because: 'after the whole load' },
  { figure: 'migration.total', below: 3000, because: '256 MiB idle guest, two agents of one host' },
  { figure: 'migration.pause', below: 300, because: 'from the stop on the source to the go on the target' },
  { figure: 'fork.answers', below: 2000, because: '256 MiB guest, from the start of `coracle fork` to its console' },
  { figure: 'snapshot.offline', below: 300, because: 'a sparse volume of 10 GiB, from the call to its answer' },
  { figure: 'restore.copied', below: 1024, because: 'a volume of a snapshot that holds 64 MiB shares them' },
  { figure: 'snapshot.paused', below: 200, because: 'two volumes of a guest that writes: its writes are held back' },
  { figure: 'guest-network.ratio', atLeast: 50, because: "% of the same guest's user-mode path to this host" },
  { figure: 'machines.memory', below: 1.5, because: 'a machine of 1,000, control plane and agent' },
  ...(['http1', 'http2'] as const).map(
    (protocol): Budget => ({ figure: `watchers.p99.${protocol}`, below: 250, because: '1,000 watchers, 200 writes/s' }),
  ),
  { figure: 'many.ready', below: 3000, because: '50,000 objects of 2 kB' },
  { figure: 'many.rss.settled', below: 600, because: '50,000 objects, controllers have read them' },
  { figure: 'many.rss.listed', below: 600, because: '50,000 objects, after a list of all' },
  { figure: 'policy.cpu', below: 20, because: 'one ValidatingAdmissionPolicy on one write, in the mean' },
  { figure: 'eviction.p99', below: 5, because: '200 evictions/s' },
  ...['refused.claim', 'refused.secret', 'allowed.secret', 'refused.namespace', 'allowed.namespace'].map(
    (deletion): Budget => ({
      figure: `protection.${deletion}`,
      below: 100,
      because: 'one deletion, beside 10,000 protected machines that refer to 100,000 objects',
    }),
  ),
  { figure: 'protection.other.ratio', below: 1.1, because: 'writes of other kinds cost what they cost without it' },
  { figure: 'expand.p99', below: 5, because: '500 requests/s to expand-vm-spec' },
  {
    figure: 'create.extra',
    below: 1000,
    because: 'of `coracle create --image tiny --wait`: more than the same QEMU by hand, to ssh',
  },
  { figure: 'boot.extra', below: 300, because: 'more than the same QEMU started by hand, to the first console byte' },
  { figure: 'gitops.push', below: 1000, because: 'one object of 1,000, period of 1 s, from the commit to the object' },
  { figure: 'gitops.full', below: 10_000, because: '1,000 objects, from the RootSync to its lastSyncedCommit' },
  { figure: 'gitops.drift', below: 500, because: 'from the answer to a change until it is put back' },
  {
    figure: 'gitops.idle.cpu',
    below: 1,
    because: 'of a core, 1,000 objects, the period of 15 s that is the default, git included',
  },
  { figure: 'gitops.idle.memory', below: 20, because: 'more than before the sync of 1,000 objects' },
  { figure: 'start.built', below: 350, because: 'a build, state is there' },
  { figure: 'rss.idle.built', below: 110, because: 'a build, controllers run, nobody asks' },
  {
    figure: 'create.first-to-later',
    atLeast: 60,
    because: 'the first 3,000 creates of a process, % of the later rate',
  },
  { figure: 'burst.launcher.p50', below: 150, because: '100 VMs with instance type and preference, a node attached' },
  { figure: 'burst.launcher.p95', below: 400, because: '100 VMs with instance type and preference, a node attached' },
  { figure: 'launcher.p50', below: 150, because: '100 VMs, from the answer to the Pod seen by a watcher' },
];

export interface Result extends Budget {
  /** The median that was held against it. */
  readonly measured: number;
  readonly toPlain?: number;
  readonly met: boolean;
}

/** The budgets of the figures that were measured. */
export function checkBudgets(figures: Readonly<Record<string, Figure>>): Result[] {
  return BUDGETS.flatMap((budget): Result[] => {
    const figure = figures[budget.figure];
    if (!figure) return [];
    const { median, toPlain } = figure;
    const met = median >= (budget.atLeast ?? Number.NEGATIVE_INFINITY) && median < (budget.below ?? Infinity);
    return [{ ...budget, measured: median, ...(toPlain && { toPlain: toPlain.median }), met }];
  });
}

export function resultLine({ figure, atLeast, below, because, measured, met }: Result): string {
  const bound = atLeast === undefined ? `< ${round(below!)}` : `>= ${round(atLeast)}`;
  return `  ${met ? 'met   ' : 'MISSED'} ${figure.padEnd(16)} ${String(measured).padStart(8)}  ${bound.padEnd(9)} ${because}`;
}

const round = (value: number): number => Math.round(value * 10) / 10;
