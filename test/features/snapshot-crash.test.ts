/** The controller of snapshots is killed in the middle; after every write: test/faults/snapshot-crashes.test.ts. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type CrashBoard, startCrashBoard } from '../testkit/crash-a-snapshot.ts';

let board: CrashBoard;
before(async () => {
  board = await startCrashBoard();
});
after(() => board.stop());

test('a snapshot whose controller is killed between its VolumeSnapshots is taken by the next', async () => {
  assert.equal(await board.snapshot(6), false);
});
test('a restore in place whose controller is killed when the old claims are gone is finished by the next', async () => {
  assert.equal(await board.restore(6, 'in-place'), false);
});
// S-843
test('a clone whose controller, or that of its snapshot, is killed in the middle is finished by the next', async () => {
  assert.equal(await board.clone(4, 'clone'), false);
  assert.equal(await board.clone(7, 'snapshot'), false);
});
test('a fork whose controller is killed when the memory is saved is finished by the next', async () => {
  assert.equal(await board.fork(4, 'memory'), false);
});
