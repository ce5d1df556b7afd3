import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { startRestingHeap } from './resting-heap.ts';

const REST = '--optimize-for-size';
const WORK = '--no-optimize-for-size';

const CASES: readonly [what: string, loads: readonly number[], flags: readonly string[]][] = [
  ['is busy', [0.9, 0.5, 0.1, 0.3, 0.9], []],
  ['pauses for less than a second', [0.9, 0, 0, 0, 0.9, 0, 0, 0, 0.5], []],
  ['is quiet for a second', [0.9, 0, 0.05, 0, 0], [REST]],
  ['stays quiet', [0, 0, 0, 0, 0, 0, 0, 0, 0], [REST]],
  ['is asked again after a rest', [0, 0, 0, 0, 0.2, 0, 0, 0], [REST, WORK]],
  ['rests twice', [0, 0, 0, 0, 0.2, 0, 0, 0, 0], [REST, WORK, REST]],
];

for (const [what, loads, expected] of CASES)
  test(`the engine hears of memory and speed when a process ${what}`, async () => {
    const clock = createFakeClock();
    const flags: string[] = [];
    const setFlag = (flag: string): void => void (flag.includes('optimize') && flags.push(flag));
    let at = 0;
    const stop = startRestingHeap({ clock, load: () => loads[at++]!, setFlag });
    while (at < loads.length) await clock.advance(250);
    stop();
    await clock.advance(10_000);
    assert.equal(at, loads.length);
    assert.deepEqual(flags, expected);
  });
