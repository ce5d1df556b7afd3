import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createFakeClock } from '../../../runtime/src/clock/fake-clock.fixture.ts';
import { giveMemoryBack } from '../../../runtime/src/process/give-memory-back.ts';
import { giveMemoryBackAtRest } from './give-memory-back.ts';

const forgotten = (): WeakRef<object> => new WeakRef({ large: new Array(1000).fill('x') });

// S-992
test('what nobody refers to is gone, each time; what is used stays', async () => {
  const used = { large: 'y' };
  const kept = new WeakRef<object>(used);
  for (let time = 0; time < 2; time++) {
    const lost = forgotten();
    // A reference that was made in this turn counts until its end.
    await nextTurn();
    giveMemoryBack();
    assert.equal(lost.deref(), undefined);
    assert.equal(kept.deref(), used);
  }
});

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
