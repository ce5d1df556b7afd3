import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HeldBytes, LARGE_OBJECT, type Leavable } from './held-bytes.ts';

function member(revision: number, size: number): Leavable & { isHeld: boolean; reads: number } {
  return {
    revision,
    size,
    isHeld: true,
    reads: 0,
    leave() {
      this.isHeld = false;
    },
    stay() {
      this.isHeld = true;
      this.reads++;
    },
  };
}

// S-691
test('the oldest leave when there are more bytes than the bound, large and small ones apart', () => {
  const held = new HeldBytes({ large: 2 * LARGE_OBJECT, small: 300 });
  const large = [1, 2, 3].map((revision) => member(revision, LARGE_OBJECT));
  const small = [4, 5, 6, 7].map((revision) => member(revision, 100));
  for (const one of [...large, ...small]) held.hold(one);
  assert.deepEqual(
    [...large, ...small].map(({ isHeld }) => isHeld),
    [false, true, true, false, true, true, true],
  );
  assert.equal(held.bytes, 2 * LARGE_OBJECT + 300);
  held.release(small[1]!, 8);
  held.hold(member(9, 100));
  assert.ok(small[2]!.isHeld, 'what was superseded takes no room');
});

test('one that is larger than the bound is never kept', () => {
  const held = new HeldBytes({ large: 1000, small: 1000 });
  const one = member(1, LARGE_OBJECT);
  held.hold(one);
  assert.ok(!one.isHeld);
  assert.equal(held.bytes, 0);
});

test('what was superseded while it lay on the disk is read before its row goes, once', async () => {
  const held = new HeldBytes({ large: 0, small: 0 });
  const [first, second] = [member(1, 10), member(2, 10)];
  held.hold(first);
  held.hold(second);
  held.release(first, 3);
  held.release(second, 5);
  await held.compacting(4);
  assert.deepEqual([first.reads, second.reads], [1, 0]);
  await held.compacting(4);
  await held.compacting(5);
  assert.deepEqual([first.reads, second.reads], [1, 1]);
});
