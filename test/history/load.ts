/**
 * One client of a history run: several callers that create, read, list, change and delete a few contended objects, and
 * several watches that are resumed where they ended. Whatever is asked and answered is written down.
 */
import { randomFrom } from '../testkit/seed.ts';
import type { Answered, Endpoint } from './endpoint.ts';
import type { HistoryRecord, ListQuestion, Operation, Outcome, Resource, Sight } from './history.ts';
import { GROUP, sightOf, TAG } from './sight.ts';

export const NAMESPACES = ['history-a', 'history-b'] as const;
const RESOURCES: readonly Resource[] = ['configmaps', 'poddisruptionbudgets'];
const NAMES = 12;
const GROUPS = ['one', 'two'] as const;
/** The object that ends a run: a watch that has delivered it has delivered everything before. */
export const LAST_NAME = 'o-last';

export interface LoadOptions {
  readonly endpoint: Endpoint;
  readonly client: string;
  readonly seed: number;
  readonly record: (record: HistoryRecord) => void;
  /** Ends the calls. */
  readonly stop: AbortSignal;
  /** Ends the watches that have not seen the last object by then. */
  readonly settle: AbortSignal;
  readonly callers: number;
  readonly watchers: number;
  /** Milliseconds a caller rests between two calls, at most. */
  readonly rest: number;
}

/** Nanoseconds of the machine's monotonic clock: the same for all its processes. */
export const now = (): number => Number(process.hrtime.bigint());

const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

export const collectionPath = (resource: Resource, ns: string): string =>
  `${resource === 'configmaps' ? '/api/v1' : '/apis/policy/v1'}${ns === '' ? '' : `/namespaces/${ns}`}/${resource}`;

/** A new object. */
export function makeObject(resource: Resource, ns: string, name: string, group: string, tag: string, number: number) {
  const metadata = { name, namespace: ns, labels: { [GROUP]: group }, annotations: { [TAG]: tag } };
  return resource === 'configmaps'
    ? { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { number: String(number) } }
    : { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { minAvailable: number } };
}

const outcomeOf = ({ status, json }: Answered): Outcome => {
  if (status < 300) return 'ok';
  if (status === 409) return json.reason === 'AlreadyExists' ? 'exists' : 'conflict';
  if (status === 404) return 'notfound';
  if (status === 410) return 'gone';
  if (status === 429 || status === 503 || status === 504) return 'refused';
  return status >= 500 ? 'failed' : 'invalid';
};

/** Runs until `stop`, then until the watches have settled. */
export async function runLoad(options: LoadOptions): Promise<void> {
  const { endpoint, client, record, stop, callers, watchers } = options;
  let highest = 0;
  let serial = 0;
  // biome-ignore lint/suspicious/noExplicitAny: objects as they came, to be sent back changed.
  const known = new Map<string, any>();
  const see = (rv: number): void => {
    if (rv > highest) highest = rv;
  };

  /** Asks once and writes it down. Returns the answer, undefined when none came. */
  async function call(
    operation: Pick<Operation, 'verb' | 'resource' | 'ns' | 'name'> & Partial<Operation>,
    method: string,
    target: string,
    body?: unknown,
  ): Promise<Answered | undefined> {
    const id = `${client}.${serial++}`;
    const t0 = now();
    let answer: Answered | undefined;
    try {
      answer = await endpoint.ask(method, target, body);
    } catch {
      record({ r: 'op', c: client, id, t0, t1: null, out: 'unknown', status: 0, ...operation });
      return undefined;
    }
    const t1 = now();
    const out = outcomeOf(answer);
    const { json } = answer;
    const key = `${operation.resource}/${operation.ns}/${operation.name}`;
    const shown: { object?: Sight; uid?: string; answer?: NonNullable<Operation['answer']> } = {};
    if (out === 'ok') {
      if (operation.verb === 'list') {
        const items = (json.items as { metadata: { name: string } }[])
          .filter(({ metadata }) => isOurs(metadata.name))
          .map(sightOf);
        shown.answer = {
          rv: Number(json.metadata.resourceVersion),
          items,
          more: (json.metadata.continue ?? '') !== '',
        };
        see(shown.answer.rv);
      } else if (operation.verb === 'delete') {
        shown.uid = json.details?.uid ?? json.metadata?.uid;
        known.delete(key);
      } else if (!operation.dryRun) {
        shown.object = sightOf(json);
        known.set(key, json);
        see(shown.object.rv);
      }
    } else if (out === 'notfound') known.delete(key);
    record({ r: 'op', c: client, id, t0, t1, out, status: answer.status, ...operation, ...shown });
    return answer;
  }

  async function caller(random: () => number): Promise<void> {
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
    while (!stop.aborted) {
      const resource = pick(RESOURCES);
      const ns = pick(NAMESPACES);
      const name = `o-${Math.floor(random() * NAMES)}`;
      const target = `${collectionPath(resource, ns)}/${name}`;
      const at = { resource, ns, name };
      const current = known.get(`${resource}/${ns}/${name}`);
      const tag = `${client}-${serial}`;
      const dice = random();
      const make = (called = name, marked = tag) =>
        makeObject(resource, ns, called, pick(GROUPS), marked, Math.floor(random() * 50));
      let answer: Answered | undefined;
      if (dice < 0.15) answer = await call({ ...at, verb: 'get' }, 'GET', target);
      else if (dice < 0.27) answer = await list(resource, random, pick);
      else if (dice < 0.45 || !current)
        answer = await call({ ...at, verb: 'create' }, 'POST', collectionPath(resource, ns), make());
      else if (dice < 0.75) {
        const { uid, resourceVersion } = current.metadata;
        const pre = { uid, rv: Number(resourceVersion) };
        const noop = random() < 0.08;
        const body = noop ? current : changed(current, resource, tag, random, pick(GROUPS));
        answer = await call({ ...at, verb: 'update', pre, ...(noop && { noop }) }, 'PUT', target, body);
      } else if (dice < 0.82) {
        const patch = { metadata: { annotations: { [TAG]: tag }, labels: { [GROUP]: pick(GROUPS) } } };
        answer = await call({ ...at, verb: 'patch' }, 'PATCH', target, patch);
      } else if (dice < 0.86) {
        const dry = `dry-${tag}`;
        answer =
          random() < 0.5
            ? await call(
                { ...at, name: dry, verb: 'create', dryRun: true },
                'POST',
                `${collectionPath(resource, ns)}?dryRun=All`,
                make(dry, dry),
              )
            : await call(
                { ...at, verb: 'update', dryRun: true },
                'PUT',
                `${target}?dryRun=All`,
                changed(current, resource, dry, random, 'one'),
              );
      } else {
        const { uid, resourceVersion } = current.metadata;
        const kind = random();
        const pre = kind < 0.4 ? undefined : kind < 0.7 ? { uid } : { uid, rv: Number(resourceVersion) };
        const preconditions = pre && { uid, ...(pre.rv !== undefined && { resourceVersion }) };
        answer = await call(
          { ...at, verb: 'delete', ...(pre && { pre }) },
          'DELETE',
          target,
          preconditions && { apiVersion: 'v1', kind: 'DeleteOptions', preconditions },
        );
      }
      // Without an answer the server is away: there is no hurry.
      await sleep(answer ? random() * options.rest : 20 + random() * 60);
    }
  }

  async function list(
    resource: Resource,
    random: () => number,
    pick: <T>(list: readonly T[]) => T,
  ): Promise<Answered | undefined> {
    const ns = pick(['', ...NAMESPACES]);
    const group = random() < 0.3 ? pick(GROUPS) : undefined;
    const kind = random();
    const chain = `${client}.l${serial}`;
    const query = new URLSearchParams();
    if (group) query.set('labelSelector', `${GROUP}=${group}`);
    let question: Omit<ListQuestion, 'page'> = { chain, ...(group && { group }) };
    if (kind < 0.12 && highest > 0) {
      const match = pick(['Exact', 'NotOlderThan'] as const);
      question = { ...question, rv: highest, match };
      query.set('resourceVersion', String(highest));
      query.set('resourceVersionMatch', match);
    } else if (kind < 0.2) {
      question = { ...question, rv: 0 };
      query.set('resourceVersion', '0');
    } else if (kind < 0.6) query.set('limit', String(1 + Math.floor(random() * 6)));
    for (let page = 0; ; page++) {
      const answer = await call(
        { verb: 'list', resource, ns, name: '', list: { ...question, page } },
        'GET',
        `${collectionPath(resource, ns)}?${query}`,
      );
      const token = answer?.status === 200 ? answer.json.metadata.continue : undefined;
      if (!token || stop.aborted) return answer;
      query.delete('resourceVersion');
      query.delete('resourceVersionMatch');
      query.set('continue', token);
      await sleep(random() * options.rest);
    }
  }

  async function watcher(number: number, random: () => number): Promise<void> {
    // The first watches everything of one kind for as long as it can: it misses nothing that was ever written.
    const everything = number < RESOURCES.length;
    const resource = RESOURCES[number % RESOURCES.length]!;
    const ns = everything || random() < 0.4 ? '' : NAMESPACES[Math.floor(random() * 2)]!;
    const group = everything || random() < 0.5 ? undefined : GROUPS[Math.floor(random() * 2)]!;
    let from: number | undefined;
    for (let turn = 0; !options.settle.aborted; turn++) {
      const w = `${client}.w${number}.${turn}`;
      const initial = from === undefined || (!everything && random() < 0.2);
      const query = new URLSearchParams({ watch: '1', allowWatchBookmarks: 'true' });
      if (initial) {
        query.set('sendInitialEvents', 'true');
        query.set('resourceVersionMatch', 'NotOlderThan');
      } else query.set('resourceVersion', String(from));
      if (group) query.set('labelSelector', `${GROUP}=${group}`);
      if (!everything && !stop.aborted) query.set('timeoutSeconds', String(1 + Math.floor(random() * 3)));
      record({
        r: 'open',
        c: client,
        w,
        t: now(),
        resource,
        ns,
        from: initial ? 0 : from!,
        initial,
        ...(group && { group }),
      });
      const done = new AbortController();
      const settle = AbortSignal.any([options.settle, done.signal]);
      let synced = !initial;
      let settled = false;
      let gone = false;
      let ended: { status: number; cut: boolean } | undefined;
      try {
        ended = await endpoint.watch(
          `${collectionPath(resource, ns)}?${query}`,
          ({ type, object }) => {
            if (done.signal.aborted) return;
            if (type === 'ERROR') {
              gone = object.code === 410;
              return;
            }
            const rv = Number(object.metadata.resourceVersion);
            const t = now();
            if (type === 'BOOKMARK') {
              const end = object.metadata.annotations?.['k8s.io/initial-events-end'] === 'true';
              record({ r: 'bookmark', w, t, rv, ...(end && { initialEnd: true }) });
              if (end) synced = true;
              if (synced) from = Math.max(from ?? 0, rv);
            } else if (isOurs(object.metadata.name)) {
              record({ r: 'event', w, t, type, object: sightOf(object) });
              if (synced) from = rv;
              if (object.metadata.name === LAST_NAME) settled = true;
            }
            see(rv);
            if (settled && synced) done.abort();
          },
          settle,
        );
      } catch {
        // refused or cut: as the record below
      }
      if (ended?.status === 410) gone = true;
      const reason = gone
        ? 'gone'
        : settled || options.settle.aborted
          ? 'settled'
          : ended === undefined || ended.cut
            ? 'cut'
            : ended.status === 200
              ? 'ended'
              : 'refused';
      record({ r: 'close', w, t: now(), reason, status: ended?.status ?? 0 });
      if (settled) return;
      if (gone) from = undefined;
      if (reason !== 'ended') await sleep(20 + random() * 60);
    }
  }

  const random = (salt: number): (() => number) => randomFrom(options.seed * 1000 + salt);
  await Promise.all([
    ...Array.from({ length: callers }, (_, at) => caller(random(at))),
    ...Array.from({ length: watchers }, (_, at) => watcher(at, random(100 + at))),
  ]);
}

const isOurs = (name: string): boolean => name.startsWith('o-') || name.startsWith('dry-');

// biome-ignore lint/suspicious/noExplicitAny: an object as it came.
function changed(current: any, resource: Resource, tag: string, random: () => number, group: string): unknown {
  const metadata = {
    ...current.metadata,
    annotations: { ...current.metadata.annotations, [TAG]: tag },
    ...(random() < 0.3 && { labels: { ...current.metadata.labels, [GROUP]: group } }),
  };
  if (random() < 0.3) return { ...current, metadata };
  const number = Math.floor(random() * 50);
  return resource === 'configmaps'
    ? { ...current, metadata, data: { number: String(number) } }
    : { ...current, metadata, spec: { ...current.spec, minAvailable: number } };
}

/** Makes the namespaces, before the load. */
export async function prepare(endpoint: Endpoint): Promise<void> {
  for (const name of NAMESPACES) {
    const { status } = await endpoint.ask('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name },
    });
    if (status !== 201) throw new Error(`cannot make namespace ${name}: ${status}`);
  }
}

/** Writes the last objects of a run, in every place that is watched, and returns the first of their revisions. */
export async function finish(endpoint: Endpoint, record: (record: HistoryRecord) => void): Promise<number> {
  let rv = 0;
  for (const resource of RESOURCES) {
    for (const ns of NAMESPACES) {
      for (const group of GROUPS) {
        // One object passes through both groups, so that watches of either see it come or go.
        const t0 = now();
        const target = collectionPath(resource, ns);
        const object = makeObject(resource, ns, LAST_NAME, group, `last-${group}`, 1);
        const first = group === GROUPS[0];
        const answer = first
          ? await endpoint.ask('POST', target, object)
          : await endpoint.ask('PATCH', `${target}/${LAST_NAME}`, { metadata: object.metadata });
        if (answer.status >= 300)
          throw new Error(`the last write was refused: ${answer.status} ${JSON.stringify(answer.json)}`);
        const sight = sightOf(answer.json);
        const verb = first ? 'create' : 'patch';
        record({
          r: 'op',
          c: 'last',
          id: `last.${resource}.${ns}.${group}`,
          t0,
          t1: now(),
          verb,
          resource,
          ns,
          name: LAST_NAME,
          out: 'ok',
          status: answer.status,
          object: sight,
        });
        rv ||= sight.rv;
      }
    }
  }
  record({ r: 'settled', rv });
  return rv;
}
