import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ResourceInfo } from '../../../apimachinery/src/types/resource.ts';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import type { ByteSink } from '../../../runtime/src/http/seam.ts';
import type { Change, StoredObject } from '../cache/object-store.ts';
import type { Server } from './exchange.ts';
import { createWatchCounts, type Watched } from './flow-control/watch-counts.ts';
import { PLAIN } from './negotiation.ts';
import { createOpenWatches } from './open-watches.ts';
import { parseRequestInfo } from './request-info.ts';
import { createRequestMetrics } from './request-metrics.ts';
import { createFrameEncoder, FrameCache } from './watch-frames.ts';
import { createWatchPace } from './watch-pace.ts';
import { MAX_BEHIND_MS, MAX_BUFFERED_BYTES, watchStream } from './watch-stream.ts';

const INFO = { group: '', version: 'v1', resource: 'things', kind: 'Thing' } as ResourceInfo;
const WATCHED = '/api/v1/things';
const encoder = new TextEncoder();

function change(revision: number): Change {
  const head = '{"kind":"Thing","apiVersion":"v1",';
  const bytes = encoder.encode(`${head}"metadata":{"name":"x","resourceVersion":"${revision}"}}`);
  const current: StoredObject = {
    prefix: '/things',
    namespace: '',
    name: 'x',
    revision,
    metadata: { name: 'x', resourceVersion: String(revision) },
    object: { kind: 'Thing', apiVersion: 'v1', metadata: { name: 'x', resourceVersion: String(revision) } },
    bytes,
    size: bytes.length,
    isHeld: true,
    headLength: head.length,
    load: () => undefined,
    isParsed: true,
    forget() {},
  };
  return { type: 'MODIFIED', revision, current, previous: undefined };
}

/** A watch over a store that publishes when asked to, and a reader that falls behind when asked to. */
function setUp() {
  const clock = createFakeClock();
  let publish: (changes: readonly Change[]) => void = () => {};
  const state = { behind: false, buffered: 0, ended: false, stopped: false, chunks: [] as Uint8Array[] };
  let caughtUp = (): void => {};
  const gone = new AbortController();
  const sink: ByteSink = {
    signal: gone.signal,
    get buffered() {
      return state.buffered;
    },
    write(chunk) {
      state.chunks.push(chunk);
      return !state.behind;
    },
    drained: () =>
      new Promise((resolve) => {
        caughtUp = resolve;
      }),
    end() {
      state.ended = true;
    },
  };
  const counts = createWatchCounts();
  const server = {
    clock,
    metrics: createRequestMetrics(),
    watches: createOpenWatches(),
    flowControl: { watching: (watched: Watched) => counts.add(watched) },
    pace: createWatchPace(clock),
    registry: {
      clock,
      store: {
        revision: () => 10,
        watch: (_prefix: string, _from: number, listener: typeof publish) => {
          publish = listener;
          return { stop: () => (state.stopped = true) };
        },
      },
    },
  } as unknown as Server;
  const cache = new FrameCache();
  const open = (): void =>
    watchStream(server, {
      info: INFO,
      namespace: '',
      name: '',
      selection: { everything: true, matches: () => true, parses: () => false, requirements: 0 },
      from: 10,
      initialState: false,
      bookmarks: false,
      timeoutMs: 3_600_000,
      frames: createFrameEncoder(cache, { info: INFO, representation: PLAIN, includeObject: 'Metadata', now: () => 0 }),
    })(sink);
  open();
  return {
    clock,
    state,
    server,
    counted: () => counts.interested(parseRequestInfo({ method: 'POST', path: WATCHED, query: '' })),
    gone,
    open,
    publish: (changes: readonly Change[]) => publish(changes),
    catchUp: () => caughtUp(),
  };
}

// S-009: A reader that stays behind is disconnected and harms nobody; a change is encoded once for all watchers.
// Compat Watch, P0, yes: slow readers are disconnected
test('a reader that stays behind for ten seconds is disconnected', async () => {
  const { clock, state, publish, server, counted } = setUp();
  await clock.advance(0);
  state.behind = true;
  publish([change(11)]);
  await clock.advance(MAX_BEHIND_MS - 1);
  assert.deepEqual([state.ended, counted()], [false, 1]);
  await clock.advance(1);
  assert.deepEqual([state.ended, state.stopped, server.watches.size, counted()], [true, true, 0, 0]);
});

test('a reader that catches up in time stays', async () => {
  const { clock, state, publish, catchUp } = setUp();
  await clock.advance(0);
  state.behind = true;
  publish([change(11)]);
  await clock.advance(MAX_BEHIND_MS - 1);
  state.behind = false;
  catchUp();
  await clock.advance(MAX_BEHIND_MS);
  assert.equal(state.ended, false);
});

// S-009
// Compat What makes it fast, P0, yes: back-pressure and bounds for every reader
test('a reader too many bytes behind is disconnected at once', async () => {
  const { clock, state, publish } = setUp();
  await clock.advance(0);
  state.behind = true;
  state.buffered = MAX_BUFFERED_BYTES + 1;
  publish([change(11), change(12)]);
  await clock.advance(0);
  assert.equal(state.ended, true);
  assert.equal(state.chunks.length, 1);
});

test('a reader that has gone leaves nothing behind', async () => {
  const { clock, state, gone, server } = setUp();
  await clock.advance(0);
  gone.abort();
  assert.deepEqual([state.stopped, state.ended, server.watches.size], [true, false, 0]);
});

// S-009
// Compat What makes it fast, P0, yes: an event is encoded once for all its watchers
test('two watchers are sent the same buffer', () => {
  const cache = new FrameCache();
  const frames = () =>
    createFrameEncoder(cache, { info: INFO, representation: PLAIN, includeObject: 'Metadata', now: () => 0 });
  const event = change(11);
  assert.equal(frames().change('MODIFIED', event), frames().change('MODIFIED', event));
  assert.notEqual(frames().change('MODIFIED', event), frames().change('ADDED', event));
});

test('the frame cache stays small', () => {
  const cache = new FrameCache();
  const first = change(1);
  const frame = cache.shared(first.current, 'k', () => new Uint8Array(10));
  for (let revision = 2; revision < 1000; revision++) {
    void cache.shared(change(revision).current, 'k', () => new Uint8Array(10));
  }
  assert.notEqual(
    cache.shared(first.current, 'k', () => new Uint8Array(10)),
    frame,
  );
});
