/**
 * The store against a naive model: any interleaving of writes, commits that end late or fail, lists at old revisions,
 * watches from old revisions, and restarts. The model is the list of writes that were answered.
 */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import type { HeldLimits } from './held-bytes.ts';
import type { Change, ObjectStore, StoredObject } from './object-store.ts';
import { type HeldBackend, holdCommits, openStore, PREFIX, settle, thing, valueIn } from './store.fixture.ts';

interface Answered {
  readonly revision: number;
  readonly name: string;
  /** Undefined when the write deleted. */
  readonly value: string | undefined;
  /** Revision that the decider saw, 0 if nothing. */
  readonly saw: number;
}

const INTERVAL = 1000;
/** Small enough for a run to reach its bounds. */
const LIMIT = { minChanges: 4, maxChanges: 12 };
const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'];

type Command =
  | { do: 'write'; name: string; remove: boolean }
  | { do: 'burst'; names: readonly string[] }
  | { do: 'release' }
  | { do: 'fail' }
  | { do: 'list'; at: number; limit: number }
  | { do: 'watch'; at: number }
  | { do: 'interval' }
  | { do: 'restart' };

const at = fc.double({ min: 0, max: 1, noNaN: true });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ do: fc.constant('write' as const), name: fc.constantFrom(...NAMES), remove: fc.boolean() }),
  },
  {
    // Enough at once for a second commit to be sent while the first is held.
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('burst' as const),
      names: fc.array(fc.constantFrom(...NAMES), { minLength: 16, maxLength: 40 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('release' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('list' as const), at, limit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('watch' as const), at }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('interval' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

class Run {
  readonly disk = createMemoryBackend();
  readonly clock = createFakeClock();
  backend: HeldBackend = holdCommits(this.disk);
  store!: ObjectStore;
  answered: Answered[] = [];
  watches: { from: number; seen: Change[]; through: () => number }[] = [];
  #serial = 0;
  readonly #heldLimits: Partial<HeldLimits>;

  constructor(heldLimits: Partial<HeldLimits>) {
    this.#heldLimits = heldLimits;
  }

  async start(): Promise<void> {
    this.store = await openStore(this.backend, this.clock, {
      historyLimit: LIMIT,
      compactionInterval: INTERVAL,
      heldLimits: this.#heldLimits,
    });
  }

  stateAt(revision: number): string[] {
    const state = new Map<string, string>();
    for (const write of this.answered) {
      if (write.revision > revision) break;
      if (write.value === undefined) state.delete(write.name);
      else state.set(write.name, `${write.revision} ${write.name} ${write.value}`);
    }
    return [...state].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, line]) => line);
  }

  write(name: string, remove: boolean): void {
    const value = `v${++this.#serial}`;
    let saw = 0;
    let deletes = false;
    const key = { prefix: PREFIX, namespace: 'ns', name };
    this.store
      .write(key, (current) => {
        saw = current?.revision ?? 0;
        assert.equal(current?.revision, this.store.peek(key)?.revision);
        deletes = remove && current !== undefined;
        return deletes ? { type: 'delete', object: current!.object } : { type: 'put', object: thing(name, value) };
      })
      .then(
        (stored) => {
          // Answered means published: whoever asks now must see this write or a later one.
          assert.ok(this.store.revision() >= stored!.revision);
          this.answered.push({ revision: stored!.revision, name, value: deletes ? undefined : value, saw });
        },
        (error) => assert.equal(error.code, 507),
      );
  }

  list(part: number, limit: number): void {
    const floor = this.store.compactedRevision();
    const revision = floor + Math.floor(part * (this.store.revision() - floor));
    const found: StoredObject[] = [];
    const expected = this.stateAt(revision);
    for (let after: string | undefined; ; ) {
      const page = this.store.list(PREFIX, { revision, limit, ...(after !== undefined && { after }) });
      assert.equal(page.revision, revision);
      found.push(...page.items);
      assert.equal(page.remaining ?? 0, expected.length - found.length);
      after = page.next;
      if (after === undefined) break;
    }
    assert.deepEqual(found.map(lineOf), expected);
  }

  watch(part: number): void {
    const floor = this.store.compactedRevision();
    const from = floor + Math.floor(part * (this.store.revision() - floor));
    const seen: Change[] = [];
    const { through } = this.store.watch(PREFIX, from, (changes) => seen.push(...changes));
    this.watches.push({ from, seen, through });
  }

  check(): void {
    const { store, answered } = this;
    assert.deepEqual(store.list(PREFIX).items.map(lineOf), this.stateAt(store.revision()));
    assert.equal(store.count(PREFIX), store.list(PREFIX).items.length);
    for (const name of NAMES) {
      const got = store.get({ prefix: PREFIX, namespace: 'ns', name });
      assert.equal(
        got && lineOf(got),
        this.stateAt(store.revision()).find((line) => line.split(' ')[1] === name),
      );
    }
    for (const watch of this.watches) {
      const expected = answered.filter((write) => write.revision > watch.from);
      assert.deepEqual(
        watch.seen.map(({ revision, current, type }) => [
          revision,
          current.name,
          type === 'DELETED' ? undefined : valueIn(current),
        ]),
        expected.map(({ revision, name, value }) => [revision, name, value]),
      );
      for (const { type, current, previous, revision } of watch.seen) {
        assert.equal(current.object.metadata.resourceVersion, String(revision));
        assert.equal(type === 'ADDED', previous === undefined);
        assert.equal(previous?.revision ?? 0, answered.find((write) => write.revision === revision)!.saw);
      }
      assert.equal(watch.through(), store.revision());
    }
  }

  /** A write that was answered has seen exactly the answered write before it on that key. */
  checkChains(): void {
    const newest = new Map<string, number>();
    let last = 0;
    for (const { revision, name, value, saw } of this.answered) {
      assert.ok(revision > last, 'answers come in revision order');
      last = revision;
      assert.equal(saw, newest.get(name) ?? 0);
      if (value === undefined) newest.delete(name);
      else newest.set(name, revision);
    }
  }

  async restart(): Promise<void> {
    await this.backend.letThrough();
    await settle();
    const shown = this.store.revision();
    const floor = this.store.compactedRevision();
    await this.store.close();
    this.watches = [];
    this.backend = holdCommits(this.disk);
    await this.start();
    assert.ok(this.store.revision() >= shown, 'revision went back');
    assert.ok(this.store.compactedRevision() <= Math.max(floor, shown - LIMIT.minChanges), 'the log is resumed');
    // Also across the restart a watch gets everything since the floor.
    this.watch(0);
    await settle();
  }
}

const lineOf = (item: StoredObject): string => `${item.revision} ${item.name} ${valueIn(item)}`;

/** All in memory; all on the disk; two or three of the six in memory. */
const HELD: fc.Arbitrary<Partial<HeldLimits>> = fc.constantFrom({}, { small: 0 }, { small: 250 });

// S-031
// Compat Writing, P0, yes: resourceVersion: one counter for everything, also for deletes
it('the store agrees with the model under any interleaving', () =>
  fc.assert(
    fc.asyncProperty(HELD, fc.array(command, { maxLength: 60 }), async (held, commands) => {
      const run = new Run(held);
      await run.start();
      for (const command of commands) {
        switch (command.do) {
          case 'write':
            run.write(command.name, command.remove);
            break;
          case 'burst':
            for (const name of command.names) run.write(name, false);
            break;
          case 'release':
            await settle();
            await run.backend.release();
            break;
          case 'fail':
            await settle();
            await run.backend.fail('no-space');
            break;
          case 'list':
            await settle();
            run.list(command.at, command.limit);
            break;
          case 'watch':
            run.watch(command.at);
            break;
          case 'interval':
            // The second interval without writes between compacts everything up to the first.
            await run.clock.advance(INTERVAL);
            break;
          case 'restart':
            await run.restart();
            break;
          default:
            command satisfies never;
        }
        if (command.do !== 'write' && command.do !== 'burst') {
          await settle();
          run.check();
        }
      }
      await run.backend.letThrough();
      await settle();
      run.check();
      run.checkChains();
      await run.store.close();
    }),
    { numRuns: 400 },
  ));
