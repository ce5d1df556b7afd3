import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { type Effect, type GraphTask, runGraph, type TaskResult } from './run-graph.ts';

interface Row {
  readonly needs?: readonly string[];
  readonly acted?: TaskResult;
  readonly effect?: Effect;
}

async function play(
  rows: Readonly<Record<string, Row>>,
  cycles: 'act' | 'skip' = 'skip',
  external?: Map<string, () => Promise<Effect>>,
) {
  const log: string[] = [];
  const tasks: GraphTask[] = Object.entries(rows).map(([id, { needs = [], acted = 'done', effect = 'ready' }]) => ({
    id,
    needs: new Set(needs),
    act: async () => {
      log.push(id);
      return acted;
    },
    effect: async () => effect,
  }));
  await runGraph({
    tasks,
    cycles,
    effectMs: 60,
    clock: systemClock,
    signal: new AbortController().signal,
    onObstacle: ({ id }, need, obstacle) => log.push(`${id} not: ${need} ${obstacle}`),
    ...(external && { external }),
  });
  return log;
}

test('what fails, is not ready or takes too long holds up what needs it and nothing else', async () => {
  assert.deepEqual(await play({ b: { needs: ['a'] }, a: {}, c: { needs: ['b'] }, d: {} }), ['a', 'd', 'b', 'c']);
  assert.deepEqual(await play({ a: { acted: 'failed' }, b: { needs: ['a'] }, c: { needs: ['b'] }, d: {} }), [
    'a',
    'd',
    'b not: a failed',
    'c not: b skipped',
  ]);
  assert.deepEqual(await play({ a: { effect: 'failed' }, b: { needs: ['a'] } }), ['a', 'b not: a not-ready']);
  assert.deepEqual(await play({ a: { effect: 'waiting' }, b: { needs: ['a'] }, c: {} }), [
    'a',
    'c',
    'b not: a timeout',
  ]);
});

test('what is outside is waited for', async () => {
  let asked = 0;
  const external = new Map([['x', async (): Promise<Effect> => (++asked < 2 ? 'waiting' : 'ready')]]);
  assert.deepEqual(await play({ a: { needs: ['x'] } }, 'skip', external), ['a']);
  assert.equal(asked, 2);
});

test('tasks that wait for each other are done at once, or not at all, and those behind them after', async () => {
  const rows = { a: { needs: ['b'] }, b: { needs: ['a'] }, c: { needs: ['a'] }, d: {} };
  assert.deepEqual(await play(rows, 'act'), ['d', 'a', 'b', 'c']);
  assert.deepEqual(await play(rows, 'skip'), ['d', 'a not: b cycle', 'b not: a cycle', 'c not: a skipped']);
});

// S-905
test('in any graph every task is done or passed over once, after all that it needs', async () => {
  const graph = fc.array(
    fc.tuple(fc.array(fc.nat(9), { maxLength: 3 }), fc.constantFrom<TaskResult>('done', 'done', 'failed')),
    { minLength: 1, maxLength: 10 },
  );
  await fc.assert(
    fc.asyncProperty(graph, fc.constantFrom<'act' | 'skip'>('act', 'skip'), async (rows, cycles) => {
      const named = Object.fromEntries(
        rows.map(([needs, acted], at) => [
          String(at),
          { needs: needs.filter((need) => need !== at && need < rows.length).map(String), acted },
        ]),
      );
      const log = await play(named, cycles);
      assert.deepEqual([...log.map((line) => line.split(' ')[0])].sort(), Object.keys(named).sort());
      if (cycles === 'act') return;
      log.forEach((line, at) => {
        if (line.includes('not')) return;
        for (const need of named[line]!.needs)
          assert.ok(log.slice(0, at).includes(need), `${line} came before ${need}`);
      });
    }),
    { numRuns: 150 },
  );
});
