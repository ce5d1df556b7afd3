/**
 * The API as clients meet it: a control plane in its own process on a durable store, TLS with client certificates, 32
 * requests in flight from a process of its own. Every round measures a plain Node server with answers of the same size
 * first, and every figure is also given as a ratio to it. `cpu.*` is what one request costs the control plane's process
 * on all its threads, controllers included: the figure to compare two versions by on a machine that is busy.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { adminOf } from '../../test/testkit/control-plane-process.ts';
import { type BenchContext, type Outcome, Runs } from '../figure.ts';
import { type Generator, nextMessage, startChild, startGenerator, stopChild } from '../load/child.ts';
import type { Endpoint, Protocol, RequestLoad, RequestResult, RequestTemplate } from '../load/load.ts';
import { cpuMicros } from '../process-cpu.ts';
import { residentMib } from '../process-memory.ts';
import {
  configMap,
  configMaps,
  createObjects,
  createTexts,
  getObjects,
  LISTED,
  OBJECT_BYTES,
  OBJECTS,
  PAGE,
  updateObjects,
} from './objects.ts';
import {
  answersByCode,
  endpointOf,
  keysOf,
  type MeasuredPlane,
  newDataDir,
  removeDataDir,
  startPlane,
} from './plane.ts';

const ROUNDS = 3;
const STARTS = 3;
const IN_FLIGHT = 32;
const WARM_UP_MS = 200;
const MEASURE_MS = 1000;
/** A list of 5,000 is asked for one at a time, for this long. */
const LIST_MS = 600;
/** Objects made in one measurement, however fast: memory is measured after all of them. */
const CREATES = 2_500;
/** Controllers have read all that there is, and what the start took is given back, by then: also on a busy machine. */
const IDLE_MS = 10_000;
const PROTOCOLS: readonly Protocol[] = ['http1', 'http2'];
const MIB = 1024 * 1024;

export async function benchApi({ say }: BenchContext): Promise<Outcome> {
  const runs = new Runs();
  const generator = startGenerator();
  const stops: (() => Promise<void>)[] = [generator.stop];
  const dirs: string[] = [];
  try {
    const plane = await measureStarts(runs, dirs);
    stops.push(() => plane.process.kill('SIGKILL'));
    say(`ready at ${plane.process.url}`);
    await sleep(IDLE_MS);
    const idle = residentMib(plane.process.pid);
    if (idle !== undefined) runs.add('rss.idle', 'MiB', { value: idle });

    const api = endpointOf(plane.dir, plane.process.port);
    await populate(plane, { generator, api });
    const pages = await pagePaths(plane.dir);
    const gzipPageBytes = await measureFirstPages(runs, pages, { generator, api });
    const plain = await startPlain(plane.dir, { ...pages, gzipPageBytes });
    stops.push(plain.stop);
    for (let round = 0; round < ROUNDS; round++) {
      for (const protocol of PROTOCOLS) {
        await measureRound(runs, { generator, api, plane, plain: plain[protocol], protocol, round });
      }
      say(`round ${round + 1} of ${ROUNDS} done`);
    }
    const watches = await measureWatches(runs, plane, { generator, api });
    await sleep(500);
    const loaded = residentMib(plane.process.pid);
    if (loaded !== undefined) runs.add('rss.loaded', 'MiB', { value: loaded });
    const codes = await answersByCode(plane.dir);
    const failed = [...codes].filter(([code]) => !code.startsWith('2'));
    return {
      state: 'measured',
      figures: runs.figures(),
      notes: {
        inFlight: IN_FLIGHT,
        objectBytes: OBJECT_BYTES,
        pageBytes: pages.pageBytes,
        gzipPageBytes,
        listBytes: pages.listBytes,
        missingWatchEvents: watches.missing,
        answersByCode: Object.fromEntries(codes),
        // Informers get 404s while they find their kinds at start; under load there should be none of these.
        failures: Object.fromEntries(failed),
      },
    };
  } finally {
    for (const stop of stops.reverse()) await stop();
    for (const dir of dirs) removeDataDir(dir);
  }
}

/** First starts on empty directories, then warm starts on the last of them, which stays up. */
async function measureStarts(runs: Runs, dirs: string[]): Promise<MeasuredPlane> {
  for (let i = 0; i < STARTS; i++) {
    dirs.push(newDataDir());
    const plane = await startPlane(dirs.at(-1)!);
    runs.add('ready.first', 'ms', { value: plane.readyMs });
    await plane.process.kill('SIGTERM');
  }
  for (let i = 1; ; i++) {
    const plane = await startPlane(dirs.at(-1)!);
    runs.add('ready.warm', 'ms', { value: plane.readyMs });
    if (i === STARTS) return plane;
    await plane.process.kill('SIGTERM');
  }
}

interface Target {
  readonly generator: Generator;
  readonly api: Endpoint;
}

async function populate(plane: MeasuredPlane, target: Target): Promise<void> {
  const admin = adminOf(plane.dir);
  try {
    for (const name of ['objects', 'list', 'http1', 'http2', 'watch']) {
      await admin.client.raw('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
    }
  } finally {
    await admin.close();
  }
  await fill(target, { templates: [createObjects('objects', 'object')], count: OBJECTS });
  await fill(target, { templates: createTexts('list', 'object'), count: LISTED });
  await fill(target, { templates: [createObjects('watch', 'object')], count: WATCHED });
}

/** Creates `count` objects; the last answers may still be on their way when it resolves. */
async function fill(
  { generator, api }: Target,
  { templates, count }: { readonly templates: readonly RequestTemplate[]; readonly count: number },
): Promise<void> {
  await generator.run({
    kind: 'requests',
    endpoint: api,
    protocol: 'http2',
    inFlight: IN_FLIGHT,
    warmUpMs: 0,
    measureMs: 60_000,
    templates,
    count,
    once: true,
  });
}

interface Pages {
  readonly paths: readonly string[];
  readonly pageBytes: number;
  readonly listBytes: number;
}

/** Walks the pages once, so that the load can ask for each of them again. */
async function pagePaths(dir: string): Promise<Pages> {
  const admin = adminOf(dir);
  try {
    const base = `${configMaps('list')}?limit=${PAGE}`;
    const paths = [base];
    let pageBytes = 0;
    for (;;) {
      const path = paths.at(-1)!;
      const [, query] = path.split('?');
      const page = (await admin.client.raw('GET', configMaps('list'), { query: query! })) as {
        items: unknown[];
        metadata: { continue?: string };
      };
      if (paths.length === 1) {
        if (page.items.length !== PAGE) throw new Error(`a page of ${page.items.length} items`);
        pageBytes = JSON.stringify(page).length;
      }
      // The namespace holds a ConfigMap of its own (the cluster's CA), so there is always one page more.
      if (!page.metadata.continue || paths.length === LISTED / PAGE) break;
      paths.push(`${base}&continue=${encodeURIComponent(page.metadata.continue)}`);
    }
    if (paths.length !== LISTED / PAGE) throw new Error(`${paths.length} pages, not ${LISTED / PAGE}`);
    return { paths, pageBytes, listBytes: pageBytes * paths.length };
  } finally {
    await admin.close();
  }
}

const toTemplates = (paths: readonly string[], acceptEncoding?: string): RequestTemplate[] =>
  paths.map((path) => ({ method: 'GET', path, ...(acceptEncoding !== undefined && { acceptEncoding }) }));

/** The pages in gzip, one after the other, as nobody has asked for them before. Returns the bytes of one in the mean. */
async function measureFirstPages(runs: Runs, { paths }: Pages, { generator, api }: Target): Promise<number> {
  const result = await generator.run({
    kind: 'requests',
    endpoint: api,
    protocol: 'http2',
    inFlight: 1,
    warmUpMs: 0,
    measureMs: 60_000,
    templates: toTemplates(paths, 'gzip'),
    count: paths.length,
    once: true,
  });
  runs.add('pages.gzip.first', '/s', { value: result.answers / result.seconds });
  return Math.round(result.bytes / result.answers);
}

async function startPlain(
  dir: string,
  pages: Pages & { readonly gzipPageBytes: number },
): Promise<Record<Protocol, Endpoint> & { stop: () => Promise<void> }> {
  const child = startChild('api/plain-server.ts');
  const { ca, server } = keysOf(dir);
  const started = nextMessage<Record<Protocol, number>>(child);
  child.send({
    ...server,
    ca,
    sizes: {
      '/small': OBJECT_BYTES,
      '/page': pages.pageBytes,
      '/page.gz': pages.gzipPageBytes,
      '/list': pages.listBytes,
    },
  });
  const ports = await started;
  return {
    http1: endpointOf(dir, ports.http1),
    http2: endpointOf(dir, ports.http2),
    stop: () => stopChild(child),
  };
}

interface Round extends Target {
  readonly plane: MeasuredPlane;
  readonly plain: Endpoint;
  readonly protocol: Protocol;
  readonly round: number;
}

async function measureRound(runs: Runs, { generator, api, plane, plain, protocol, round }: Round): Promise<void> {
  const load = (
    endpoint: Endpoint,
    templates: readonly RequestTemplate[],
    more: Partial<RequestLoad> = {},
  ): Promise<RequestResult> =>
    generator.run({
      kind: 'requests',
      endpoint,
      protocol,
      inFlight: IN_FLIGHT,
      warmUpMs: WARM_UP_MS,
      measureMs: MEASURE_MS,
      templates,
      count: 2 * OBJECTS,
      wrap: OBJECTS,
      ...more,
    });
  const perSecond = (name: string, result: RequestResult, beside?: RequestResult): void => {
    const rate = result.answers / result.seconds;
    runs.add(`${name}.${protocol}`, '/s', {
      value: rate,
      ...(beside && { plain: beside.answers / beside.seconds }),
    });
    runs.add(`generator.${name}.${protocol}`, 'core', { value: result.generatorBusy });
  };

  /** The same on the control plane, with the CPU time of a request. */
  const loadApi = async (
    name: string,
    templates: readonly RequestTemplate[],
    more?: Partial<RequestLoad>,
  ): Promise<RequestResult> => {
    const { pid } = plane.process;
    const before = cpuMicros(pid);
    const result = await load(api, templates, more);
    const after = cpuMicros(pid);
    if (before !== undefined && after !== undefined)
      runs.add(`cpu.${name}.${protocol}`, 'µs', { value: (after - before) / result.sent });
    return result;
  };

  const plainGet = await load(plain, [{ method: 'GET', path: '/small' }]);
  perSecond('plain-get', plainGet);
  const plainPost = await load(plain, [{ method: 'POST', path: '/small', body: configMap('object') }]);
  perSecond('plain-post', plainPost);
  perSecond('get', await loadApi('get', [getObjects('objects', 'object')]), plainGet);
  perSecond('update', await loadApi('update', [updateObjects('objects', 'object')]), plainPost);
  const creates = { once: true, count: CREATES, wrap: CREATES };
  perSecond('create', await loadApi('create', [createObjects(protocol, `round-${round}`)], creates), plainPost);

  const plainPages = await load(plain, [{ method: 'GET', path: '/page' }], { count: 2 * IN_FLIGHT });
  // Of a fresh snapshot: what was written meanwhile would have pushed an older one out of the history.
  const pages = await pagePaths(plane.dir);
  const ofPages = await loadApi('pages', toTemplates(pages.paths), { count: 10 * pages.paths.length });
  perSecond('pages', ofPages, plainPages);
  runs.add(`pages-bytes.${protocol}`, 'MiB/s', {
    value: ofPages.bytes / ofPages.seconds / MIB,
    plain: plainPages.bytes / plainPages.seconds / MIB,
  });

  const plainGzip = await load(plain, [{ method: 'GET', path: '/page.gz' }], { count: 2 * IN_FLIGHT });
  const gzipTemplates = toTemplates(pages.paths, 'gzip');
  perSecond('pages.gzip', await loadApi('pages.gzip', gzipTemplates, { count: 10 * pages.paths.length }), plainGzip);

  const one = { inFlight: 1, count: 4, measureMs: LIST_MS };
  const plainList = await load(plain, [{ method: 'GET', path: '/list' }], one);
  const list = await load(api, [{ method: 'GET', path: configMaps('list') }], one);
  runs.add(`list5000.${protocol}`, 'ms', { value: list.latencyMs.p50, plain: plainList.latencyMs.p50 });
}

/** Where watches begin: without it they would be sent the whole state first. */
async function revisionOf(dir: string): Promise<string> {
  const admin = adminOf(dir);
  try {
    const list = (await admin.client.raw('GET', configMaps('watch'), { query: 'limit=1' })) as {
      metadata: { resourceVersion: string };
    };
    return list.metadata.resourceVersion;
  } finally {
    await admin.close();
  }
}

const WATCHERS = 20;
const WATCHED = 500;
const WRITES_PER_SECOND = 500;
const WATCH_SECONDS = 3;

async function measureWatches(
  runs: Runs,
  plane: MeasuredPlane,
  { generator, api }: Target,
): Promise<{ missing: number }> {
  let missing = 0;
  for (let run = 0; run < ROUNDS; run++) {
    const now = await revisionOf(plane.dir);
    const result = await generator.run({
      kind: 'watch',
      endpoint: api,
      watchers: WATCHERS,
      watchPath: `${configMaps('watch')}?watch=true&allowWatchBookmarks=true&resourceVersion=${now}`,
      perSecond: WRITES_PER_SECOND,
      seconds: WATCH_SECONDS,
      write: {
        method: 'PUT',
        path: `${configMaps('watch')}/object-{i}`,
        body: configMap('object', { seq: '{seq}' }),
      },
      wrap: WATCHED,
    });
    runs.add('watch.p50', 'ms', { value: result.latencyMs.p50 });
    runs.add('watch.p99', 'ms', { value: result.latencyMs.p99 });
    runs.add('watch.writes', '/s', { value: result.perSecond });
    missing += result.missing;
  }
  return { missing };
}
