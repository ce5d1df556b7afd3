/**
 * A controller of snapshots, restores, clones or forks is killed after each of its writes in turn: the next one finishes
 * the work, and nothing is left over.
 */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { type CrashBoard, startCrashBoard } from '../testkit/crash-a-snapshot.ts';

// One for each test: a controller that starts anew goes through all that earlier ones have left.
let board: CrashBoard;
beforeEach(async () => {
  board = await startCrashBoard();
});
afterEach(() => board.stop(), { timeout: 60_000 });

/** Some sixteen kills each, a few seconds apart on a busy machine. */
const timeout = 900_000;
/** More writes than any of them needs. */
const MOST = 40;

async function killedAfterEach(what: (write: number) => Promise<boolean>, least: number): Promise<void> {
  for (let write = 1; write <= MOST; write++) {
    if (!(await what(write))) continue;
    assert.ok(write > least, `it was done after ${write - 1} writes`);
    return;
  }
  assert.fail(`not done after ${MOST} writes`);
}

// S-573: The controller of snapshots and restores may be killed after any of its writes: the next one finishes the
//   work, and nothing is left over.
test('a snapshot is taken once, wherever its controller was killed', { timeout }, () =>
  killedAfterEach(board.snapshot, 10),
);
// S-573
test('a snapshot that is deleted on its way leaves nothing, wherever its controller was killed', { timeout }, () =>
  killedAfterEach(board.deleteSnapshot, 4),
);
test('a restore to the same machine ends, wherever its controller was killed', { timeout }, () =>
  killedAfterEach((write) => board.restore(write, 'same'), 7),
);
// S-573
test('a restore in place ends, wherever its controller was killed', { timeout }, () =>
  killedAfterEach((write) => board.restore(write, 'in-place'), 9),
);
test('a restore to a new machine ends, wherever its controller was killed', { timeout }, () =>
  killedAfterEach((write) => board.restore(write, 'new'), 7),
);
// S-843: A clone and a fork end as they should wherever one of the two controllers at work was killed: no snapshot,
//   content, restore, VolumeSnapshot, claim or saved memory is left, both machines are free, and the source of a fork
//   runs on.
for (const killed of ['clone', 'snapshot'] as const)
  test(`a clone ends, wherever the controller of ${killed}s was killed`, { timeout }, () =>
    killedAfterEach((write) => board.clone(write, killed), killed === 'clone' ? 6 : 16),
  );
// S-843
for (const killed of ['memory', 'snapshot'] as const)
  test(
    `a fork ends, wherever the controller of ${killed === 'memory' ? 'memory' : 'snapshots'} was killed`,
    { timeout },
    () => killedAfterEach((write) => board.fork(write, killed), killed === 'memory' ? 7 : 5),
  );
