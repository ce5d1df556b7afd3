/** The controller of the bin is killed after each of its writes in turn: the next one finishes the work. */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type BinCrashBoard, startBinCrashBoard } from '../testkit/crash-the-bin.ts';

let board: BinCrashBoard;
before(async () => {
  board = await startBinCrashBoard();
});
after(() => board?.stop());

/** More writes than any of them needs. */
const MOST = 50;

async function afterEach(what: (write: number) => Promise<boolean>, least: number): Promise<void> {
  for (let write = 1; write <= MOST; write++) {
    if (!(await what(write))) continue;
    assert.ok(write > least, `it was done after ${write - 1} writes`);
    return;
  }
  assert.fail(`not done after ${MOST} writes`);
}

// S-781: The controller of the bin may be killed after any of its writes, on the way into the bin, back, and out:
//   nothing is lost and nothing is left over.
test('a machine goes to the bin, wherever its controller was killed', () => afterEach((n) => board.remove(n), 1));
// S-781
test('a machine comes back whole, wherever its controller was killed', () => afterEach((n) => board.undelete(n), 8));
// S-781
test('what cannot come back leaves nothing and loses nothing, wherever its controller was killed', () =>
  afterEach((n) => board.refused(n), 10));
// S-781
test('a disk is released, wherever its controller was killed', () => afterEach((n) => board.empty(n, 'kept'), 1));
// S-781
test('a machine that is on its way back when the bin is emptied is whole or gone, wherever its controller was killed', () =>
  afterEach((n) => board.empty(n, 'undeleting'), 1));
