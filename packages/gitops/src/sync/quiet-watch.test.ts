import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { QuietWatch } from './quiet-watch.ts';

const CASES: readonly [what: string, attempts: readonly [atMs: number, objects: number][], heardAtMs: number[]][] = [
  ['little was done', [[0, 199]], []],
  ['much was done, and nothing since', [[0, 200]], [15_000]],
  [
    'much was done, and a little soon after',
    [
      [0, 1000],
      [14_000, 1],
    ],
    [29_000],
  ],
  [
    'much was done twice',
    [
      [0, 1000],
      [20_000, 1000],
    ],
    [15_000, 35_000],
  ],
  [
    'much was done, and a little long after',
    [
      [0, 1000],
      [20_000, 1],
    ],
    [15_000],
  ],
  [
    'a little was done again and again',
    [
      [0, 100],
      [1000, 100],
      [2000, 100],
    ],
    [],
  ],
];

// S-992: `coracle controllers` gives the memory that a large sync took back once nothing was synced for 15 seconds.
for (const [what, attempts, expected] of CASES)
  test(`memory: ${what}`, async () => {
    const clock = createFakeClock();
    const begin = clock.monotonic();
    const heard: number[] = [];
    const watch = new QuietWatch(clock, () => heard.push(clock.monotonic() - begin));
    for (let at = 0; at <= 60_000; at += 1000) {
      for (const [atMs, objects] of attempts) if (atMs === at) watch.attempted(objects);
      await clock.advance(1000);
    }
    watch.stop();
    assert.deepEqual(heard, expected);
  });

test('a watch that was stopped is not heard', async () => {
  const clock = createFakeClock();
  const watch = new QuietWatch(clock, () => assert.fail('it was heard'));
  watch.attempted(1000);
  watch.stop();
  await clock.advance(60_000);
});
