import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CONFIG_MAPS } from '../../../apimachinery/src/types/resource-types.ts';
import type { ConfigMap } from '../../../apimachinery/src/types/types.ts';
import { createFakeClock, type FakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { ApiRequest, ApiResponse, ByteSink } from '../../../runtime/src/http/seam.ts';
import { createLogger } from '../../../runtime/src/log/log.ts';
import { createClient } from '../create-client.ts';
import { createInformer, type Informer } from './informer.ts';

/** One watch or list as the server script sees it: wait for it, then answer it. */
interface Exchange {
  readonly request: ApiRequest;
  answer(response: ApiResponse): void;
}

interface Harness {
  readonly clock: FakeClock;
  readonly informer: Informer<ConfigMap>;
  /** What listeners heard, as `added a@5`. */
  readonly heard: string[];
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  next(): Promise<Exchange>;
  /** Answers the next request with an open watch. */
  watch(): Promise<{ query: string; send(...frames: object[]): Promise<void>; end(): Promise<void> }>;
  idle(): Promise<void>;
}

/** However long the chain of promises is, it ends before the next turn of the event loop. */
const settle = (): Promise<void> => new Promise((done) => setImmediate(done));
const encode = (value: unknown): Uint8Array => new TextEncoder().encode(`${JSON.stringify(value)}\n`);

function harness(clock: FakeClock = createFakeClock()): Harness {
  const asked: Exchange[] = [];
  const client = createClient((request) => new Promise((resolve) => asked.push({ request, answer: resolve })));
  const informer = createInformer(client, CONFIG_MAPS, {
    clock,
    random: () => 0,
    indexes: { flavour: (object) => (object.data?.['flavour'] ? [object.data['flavour']] : []) },
  });
  const heard: string[] = [];
  informer.onChange(({ type, object }) =>
    heard.push(`${type} ${object.metadata.name}@${object.metadata.resourceVersion}`),
  );
  const stop = new AbortController();
  const ended = informer.start(stop.signal);
  const next = async (): Promise<Exchange> => {
    await settle();
    const exchange = asked.shift();
    assert.ok(exchange, 'the informer asked for nothing');
    return exchange;
  };
  return {
    clock,
    informer,
    heard,
    stop,
    ended,
    next,
    idle: async () => {
      await settle();
      assert.equal(asked.length, 0, 'the informer asked for something');
    },
    async watch() {
      const { request, answer } = await next();
      let sink: ByteSink | undefined;
      answer({
        status: 200,
        headers: {},
        body: (given) => {
          sink = given;
        },
      });
      await settle();
      return {
        query: request.query,
        async send(...frames) {
          for (const frame of frames) sink!.write(encode(frame));
          await settle();
        },
        async end() {
          sink!.end();
          await settle();
        },
      };
    },
  };
}

const object = (name: string, resourceVersion: number, more: { uid?: string; flavour?: string } = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid: more.uid ?? `uid-${name}`, resourceVersion: String(resourceVersion) },
  ...(more.flavour && { data: { flavour: more.flavour } }),
});
const event = (type: string, name: string, resourceVersion: number, more = {}) => ({
  type,
  object: object(name, resourceVersion, more),
});
const bookmark = (resourceVersion: number, end = false) => ({
  type: 'BOOKMARK',
  object: {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      resourceVersion: String(resourceVersion),
      ...(end && { annotations: { 'k8s.io/initial-events-end': 'true' } }),
    },
  },
});
const status = (code: number, reason: string, message = reason) => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  code,
  reason,
  message,
});
const failure = (code: number, reason: string): ApiResponse => ({
  status: code,
  headers: { 'content-type': 'application/json' },
  body: encode(status(code, reason)),
});
const listOf = (resourceVersion: number, items: object[], more = {}): ApiResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: encode({
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(resourceVersion), ...more },
    items,
  }),
});
const key = (name: string) => ({ namespace: 'ns', name });

test('a watch-list shows nothing before its end bookmark, then everything at once', async () => {
  const h = harness();
  const watch = await h.watch();
  assert.match(watch.query, /sendInitialEvents=true/);
  assert.match(watch.query, /allowWatchBookmarks=true/);
  assert.match(watch.query, /resourceVersionMatch=NotOlderThan/);
  await watch.send(event('ADDED', 'a', 3), event('ADDED', 'b', 9, { flavour: 'mint' }));
  assert.equal(h.informer.isSynced, false);
  assert.deepEqual(h.informer.list(), []);
  await watch.send(bookmark(10, true));
  await h.informer.synced(new AbortController().signal);
  assert.deepEqual(h.heard, ['added a@3', 'added b@9']);
  assert.deepEqual(
    h.informer.byIndex('flavour', 'mint').map((one) => one.metadata.name),
    ['b'],
  );
  assert.throws(() => h.informer.byIndex('nothing', ''), TypeError);
  h.stop.abort();
  await h.ended;
});

test('live events change the store, in order, and their objects are frozen', async () => {
  const h = harness();
  const watch = await h.watch();
  await watch.send(
    bookmark(10, true),
    event('ADDED', 'a', 11, { flavour: 'mint' }),
    event('MODIFIED', 'a', 12, { flavour: 'lime' }),
  );
  assert.equal(h.informer.get(key('a'))?.metadata.resourceVersion, '12');
  assert.deepEqual(h.informer.byIndex('flavour', 'mint'), []);
  assert.equal(h.informer.byIndex('flavour', 'lime').length, 1);
  assert.throws(() => {
    (h.informer.get(key('a')) as unknown as ConfigMap).metadata.name = 'changed';
  }, TypeError);
  await watch.send(event('DELETED', 'a', 13));
  assert.deepEqual(h.heard, ['added a@11', 'modified a@12', 'deleted a@13']);
  assert.deepEqual(h.informer.list('ns'), []);
  h.stop.abort();
  await h.ended;
});

test('events sent twice, or older than what was seen, are dropped', async () => {
  const h = harness();
  const watch = await h.watch();
  await watch.send(event('ADDED', 'a', 8), bookmark(10, true));
  await watch.send(
    event('MODIFIED', 'a', 9),
    event('MODIFIED', 'a', 12),
    event('MODIFIED', 'a', 12),
    event('DELETED', 'a', 11),
  );
  assert.deepEqual(h.heard, ['added a@8', 'modified a@12']);
  h.stop.abort();
  await h.ended;
});

test('a stream that ends is resumed where the last bookmark or event left it', async () => {
  const h = harness();
  const first = await h.watch();
  await first.send(bookmark(10, true), event('ADDED', 'a', 11), bookmark(57));
  await h.clock.advance(6_000);
  await first.end();
  const second = await h.watch();
  assert.match(second.query, /resourceVersion=57/);
  assert.doesNotMatch(second.query, /sendInitialEvents/);
  await second.send(event('MODIFIED', 'a', 58));
  assert.deepEqual(h.heard, ['added a@11', 'modified a@58']);
  h.stop.abort();
  await h.ended;
});

test('watches that end at once are asked for more and more slowly', async () => {
  const h = harness();
  await (await h.watch()).send(bookmark(10, true));
  h.stop.abort();
  await h.ended;

  const quick = harness();
  const first = await quick.watch();
  await first.send(bookmark(10, true));
  await first.end();
  await quick.idle();
  await quick.clock.advance(250);
  await (await quick.watch()).end();
  await quick.clock.advance(499);
  await quick.idle();
  await quick.clock.advance(1);
  assert.match((await quick.watch()).query, /resourceVersion=10/);
  quick.stop.abort();
  await quick.ended;
});

test('410, as an event or as an answer, leads to a whole new state that replaces the old one', async () => {
  for (const form of ['event', 'answer'] as const) {
    const h = harness();
    const first = await h.watch();
    await first.send(
      event('ADDED', 'gone', 5),
      event('ADDED', 'same', 6),
      event('ADDED', 'old', 7),
      bookmark(10, true),
    );
    if (form === 'event') await first.send({ type: 'ERROR', object: status(410, 'Expired') });
    else {
      await h.clock.advance(6_000);
      await first.end();
      (await h.next()).answer(failure(410, 'Expired'));
    }
    const second = await h.watch();
    assert.match(second.query, /sendInitialEvents=true/, form);
    await second.send(event('ADDED', 'same', 6), event('ADDED', 'old', 90), event('ADDED', 'new', 91));
    assert.equal(h.informer.list().length, 3, 'the old state stays until the new one is whole');
    await second.send(bookmark(100, true));
    assert.deepEqual(h.heard.slice(3), ['modified old@90', 'added new@91', 'deleted gone@5']);
    h.stop.abort();
    await h.ended;
  }
});

test('an object made anew under its name while nobody looked is deleted, then added', async () => {
  const h = harness();
  const first = await h.watch();
  await first.send(event('ADDED', 'a', 5), bookmark(10, true), { type: 'ERROR', object: status(410, 'Expired') });
  await (await h.watch()).send(event('ADDED', 'a', 20, { uid: 'another' }), bookmark(30, true));
  assert.deepEqual(h.heard, ['added a@5', 'deleted a@5', 'added a@20']);
  h.stop.abort();
  await h.ended;
});

test('a server without watch-list is listed in pages, then watched from the version of the list', async () => {
  const h = harness();
  (await h.next()).answer(failure(422, 'Invalid'));
  const first = await h.next();
  assert.equal(first.request.query, 'limit=500');
  first.answer(listOf(40, [object('a', 3)], { continue: 'more' }));
  const second = await h.next();
  assert.equal(second.request.query, 'limit=500&continue=more');
  second.answer(listOf(40, [object('b', 4)]));
  const watch = await h.watch();
  assert.match(watch.query, /resourceVersion=40/);
  assert.deepEqual(h.heard, ['added a@3', 'added b@4']);
  // Broken history: listed again, not tried as a watch-list again.
  await watch.send({ type: 'ERROR', object: status(410, 'Expired') });
  const relist = await h.next();
  assert.equal(relist.request.query, 'limit=500');
  // A page token that expired: from the first page again, after a pause.
  relist.answer(failure(410, 'Expired'));
  await h.idle();
  await h.clock.advance(250);
  (await h.next()).answer(listOf(60, [object('b', 4)]));
  assert.match((await h.watch()).query, /resourceVersion=60/);
  assert.deepEqual(h.heard.slice(2), ['deleted a@3']);
  h.stop.abort();
  await h.ended;
});

test('a server that ignores sendInitialEvents and stays silent is listed after half a minute', async () => {
  const h = harness();
  await h.watch();
  await h.clock.advance(29_000);
  await h.idle();
  await h.clock.advance(1_000);
  (await h.next()).answer(listOf(40, []));
  await h.informer.synced(new AbortController().signal);
  h.stop.abort();
  await h.ended;
});

test('a stream that breaks in the initial events is begun again, and its part is thrown away', async () => {
  const h = harness();
  const first = await h.watch();
  await first.send(event('ADDED', 'a', 3));
  await first.end();
  await h.idle();
  await h.clock.advance(250);
  const second = await h.watch();
  await second.send(event('ADDED', 'b', 4), bookmark(10, true));
  assert.deepEqual(h.heard, ['added b@4']);
  h.stop.abort();
  await h.ended;
});

test('a future version (a restored server) leads to a new state whose older versions are taken', async () => {
  const h = harness();
  const first = await h.watch();
  await first.send(event('ADDED', 'a', 900), bookmark(1000, true));
  await h.clock.advance(6_000);
  await first.end();
  const tooLarge = { ...status(504, 'Timeout'), details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } };
  (await h.next()).answer({ status: 504, headers: { 'content-type': 'application/json' }, body: encode(tooLarge) });
  await (await h.watch()).send(event('ADDED', 'a', 20), bookmark(30, true), event('MODIFIED', 'a', 31));
  assert.deepEqual(h.heard, ['added a@900', 'modified a@20', 'modified a@31']);
  h.stop.abort();
  await h.ended;
});

test('a listener that comes late hears what is held; one that throws does not stop the others', async () => {
  const h = harness();
  const watch = await h.watch();
  await watch.send(event('ADDED', 'a', 3), bookmark(10, true));
  const late: string[] = [];
  const end = h.informer.onChange(({ type, object: { metadata } }) => {
    late.push(`${type} ${metadata.name}`);
    throw new Error('bug');
  });
  await watch.send(event('ADDED', 'b', 11));
  end();
  await watch.send(event('ADDED', 'c', 12));
  assert.deepEqual(late, ['added a', 'added b']);
  assert.deepEqual(h.heard, ['added a@3', 'added b@11', 'added c@12']);
  h.stop.abort();
  await h.ended;
});

test('synced() rejects with the reason when its signal aborts first', async () => {
  const h = harness();
  const wait = new AbortController();
  const waiting = h.informer.synced(wait.signal);
  wait.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  const forEver = h.informer.synced(new AbortController().signal);
  h.stop.abort(new Error('over'));
  await h.ended;
  await assert.rejects(forEver, /over/);
});

// S-052: Informers never go back and end as the server is, whatever breaks or repeats.
test('whatever the script of breaks and repeats, the store ends as the server is and never goes back', async () => {
  const names = ['a', 'b', 'c'];
  const write = fc.record({ name: fc.constantFrom(...names), remove: fc.boolean() });
  const round = fc.record({
    writes: fc.array(write, { maxLength: 6 }),
    break: fc.constantFrom('end', '410', 'repeat', 'none'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 8 }), async (rounds) => {
      const h = harness();
      const newest = new Map<string, number>();
      h.informer.onChange(({ object: { metadata } }) => {
        const version = Number(metadata.resourceVersion);
        assert.ok(version >= (newest.get(metadata.name!) ?? 0), 'went back in time');
        newest.set(metadata.name!, version);
      });
      let version = 10;
      const server = new Map<string, number>();
      let watch = await h.watch();
      await watch.send(bookmark(version, true));
      let sent: object[] = [];
      for (const { writes, break: kind } of rounds) {
        for (const { name, remove } of writes) {
          version++;
          const known = server.has(name);
          if (remove && !known) continue;
          const frame = event(remove ? 'DELETED' : known ? 'MODIFIED' : 'ADDED', name, version);
          if (remove) server.delete(name);
          else server.set(name, version);
          sent.push(frame);
          await watch.send(frame);
        }
        if (kind === 'repeat') await watch.send(...sent);
        if (kind === 'end') {
          await watch.end();
          await h.clock.advance(60_000);
          watch = await h.watch();
          await watch.send(...sent);
        }
        if (kind === '410') {
          await watch.send({ type: 'ERROR', object: status(410, 'Expired') });
          watch = await h.watch();
          for (const [name, at] of server) await watch.send(event('ADDED', name, at));
          await watch.send(bookmark(version, true));
          sent = [];
        }
      }
      const held = h.informer.list().map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]);
      assert.deepEqual(new Map(held as [string, number][]), server);
      h.stop.abort();
      await h.ended;
    }),
    { numRuns: 60 },
  );
});

// S-321: A kind that is not served is reported once, and waited for.
test('a kind that the server does not have is reported once, and waited for', async () => {
  const clock = createFakeClock();
  const reported: string[] = [];
  let has = false;
  const client = createClient(async () => {
    if (has) return { status: 200, headers: {}, body: encode({ metadata: { resourceVersion: '7' }, items: [] }) };
    return {
      status: 404,
      headers: {},
      body: encode({ kind: 'Status', code: 404, reason: 'NotFound', message: 'none' }),
    };
  });
  const informer = createInformer(client, CONFIG_MAPS, {
    clock,
    random: () => 0,
    log: createLogger(
      ({ message, fields }) => reported.push(`${message}: ${fields['resource']} ${fields['apiVersion']}`),
      'warn',
    ),
  });
  const stop = new AbortController();
  const ended = informer.start(stop.signal);
  for (let at = 0; at < 20; at++) {
    await settle();
    await clock.advance(5000);
  }
  assert.deepEqual(reported, ['the API server has no such kind; waiting until it has: configmaps v1']);
  has = true;
  for (let at = 0; at < 20 && !informer.isSynced; at++) {
    await settle();
    await clock.advance(5000);
  }
  assert.equal(informer.isSynced, true);
  stop.abort();
  await ended;
});

test('of a whole state no more is delivered in one turn than it should hold; who comes meanwhile hears each object once', async () => {
  let reported = 0;
  const clock = { ...createFakeClock(), turnIsLong: () => reported++ > 1 };
  const h = harness(clock);
  const watch = await h.watch();
  const late: string[] = [];
  h.informer.onChange(({ object }) => {
    if (object.metadata.name === 'b') h.informer.onChange((change) => late.push(change.object.metadata.name!));
  });
  await watch.send(...['a', 'b', 'c', 'd'].map((name, i) => event('ADDED', name, i + 1)), bookmark(10, true));
  assert.ok(h.heard.length < 4);
  await h.informer.synced(new AbortController().signal);
  assert.deepEqual(h.heard, ['added a@1', 'added b@2', 'added c@3', 'added d@4']);
  assert.deepEqual(late, ['a', 'b', 'c', 'd']);
  h.stop.abort();
  await h.ended;
});

for (const code of [400, 403, 404, 500, 501, 503])
  test(`a server that refuses a watch-list with ${code} is listed at once`, async () => {
    const h = harness();
    const first = await h.next();
    assert.match(first.request.query, /sendInitialEvents=true/);
    first.answer({
      status: code,
      headers: {},
      body: encode({ kind: 'Status', status: 'Failure', code, message: 'no' }),
    });
    const second = await h.next();
    assert.equal(second.request.query, 'limit=500');
    second.answer(listOf(7, []));
    await h.informer.synced(new AbortController().signal);
    h.stop.abort();
    await h.ended;
  });

for (const code of [401, 410, 429])
  test(`a server that answers a watch-list with ${code} is asked for it again after a pause`, async () => {
    const h = harness();
    const refusal = { kind: 'Status', status: 'Failure', code, message: 'not now' };
    (await h.next()).answer({ status: code, headers: {}, body: encode(refusal) });
    await settle();
    await h.clock.advance(60_000);
    assert.match((await h.next()).request.query, /sendInitialEvents=true/);
    h.stop.abort();
    await h.ended;
  });

// S-418: A watch-list that is refused for any reason but 401, 410 and 429 is followed by a LIST; a kind that has not
//   synced for 10 s is reported at level warning with its last error.
test('a kind that has not synced for 10 s is reported at level warning with the last error, and when it works', async () => {
  const clock = createFakeClock();
  const reported: string[] = [];
  const log = createLogger(
    ({ level, message, fields }) => reported.push(`${level} ${message} ${fields['error'] ?? ''}`),
    'info',
  );
  let broken = true;
  const client = createClient(async ({ query }) => {
    if (broken)
      return { status: 500, headers: {}, body: encode({ kind: 'Status', code: 500, message: 'etcd is gone' }) };
    return query.includes('watch=') ? { status: 200, headers: {}, body: () => {} } : listOf(7, []);
  });
  const informer = createInformer(client, CONFIG_MAPS, { clock, log, random: () => 0 });
  const stop = new AbortController();
  const ended = informer.start(stop.signal);
  const pass = async (seconds: number): Promise<void> => {
    for (let at = 0; at < seconds; at++) {
      await settle();
      await clock.advance(1000);
    }
    await settle();
  };
  await pass(9);
  assert.deepEqual(reported, []);
  assert.equal(informer.lastError, 'etcd is gone');
  await pass(30);
  assert.deepEqual(reported, ['warn not synced etcd is gone'], 'once');
  broken = false;
  await pass(31);
  assert.equal(informer.isSynced, true);
  assert.deepEqual(reported.slice(1), ['info list/watch works again ']);
  assert.equal(informer.lastError, undefined);
  stop.abort();
  await ended;
});
