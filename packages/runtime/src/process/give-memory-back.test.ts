import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { giveMemoryBack } from './give-memory-back.ts';

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
