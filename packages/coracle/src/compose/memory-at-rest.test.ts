import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { giveMemoryBackAtRest } from './memory-at-rest.ts';

const LARGE = 200;
/** Seconds after the start; what the loop did since the last look; MiB of the heap; memory is given back, to 40 MiB. */
const CASES: readonly [
  what: string,
  looks: readonly (readonly [at: number, load: number, mib: number, back: boolean])[],
][] = [
  [
    'that is busy',
    [
      [2, 0.9, 60, false],
      [4, 0.5, 60, false],
      [6, 0.1, 60, false],
    ],
  ],
  [
    'that did nothing for two seconds',
    [
      [2, 0.9, 60, false],
      [4, 0.05, 60, true],
    ],
  ],
  [
    'that stays at rest, and is seldom looked at',
    [
      [2, 0, 60, true],
      [4, 0, 41, false],
      [19, 0, 42, false],
      [34, 0, 43, false],
    ],
  ],
  [
    'that worked again',
    [
      [2, 0, 60, true],
      [4, 0, 40, false],
      [19, 0.6, 70, false],
      [21, 0.6, 70, false],
      [23, 0, 70, false],
      [25, 0.2, 70, false],
      [27, 0, 70, false],
      [29, 0, 70, false],
      [31, 0, 70, false],
      [33, 0, 70, false],
      [35, 0, 70, true],
    ],
  ],
  [
    'that worked a little',
    [
      [2, 0, 60, true],
      [4, 0, 40, false],
      [19, 0.6, 47, false],
      [34, 0, 47, false],
    ],
  ],
  [
    'that worked between two looks',
    [
      [2, 0, 60, true],
      [4, 0, 40, false],
      [19, 0.05, 70, false],
      [21, 0, 70, false],
      [23, 0, 70, false],
      [25, 0, 70, false],
      [27, 0, 70, false],
      [29, 0, 70, true],
    ],
  ],
  [
    'with a large heap',
    [
      [2, 0, LARGE, false],
      [17, 0, LARGE, false],
    ],
  ],
];

for (const [what, looks] of CASES)
  test(`memory of a process ${what}`, async () => {
    const clock = createFakeClock();
    let at = 0;
    let now = 0;
    let isAfter = false;
    const seen: [number, boolean][] = [];
    const stop = giveMemoryBackAtRest({
      clock,
      load() {
        seen.push([now, false]);
        isAfter = false;
        return looks[at]![1];
      },
      heap: () => (isAfter ? 40 : looks[at]![2]) * 1024 * 1024,
      giveBack() {
        isAfter = true;
        seen.at(-1)![1] = true;
      },
    });
    for (; at < looks.length; at = seen.length) {
      now++;
      await clock.advance(1000);
    }
    stop();
    await clock.advance(60_000);
    assert.deepEqual(
      seen,
      looks.map(([second, , , back]) => [second, back]),
    );
  });
