import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generatedTargetName } from './target-name.ts';

test('generatedTargetName() joins the name of the source and five characters, within what a name may hold', () => {
  const random = (count: number) => new Uint8Array(count).fill(1);
  assert.equal(generatedTargetName('db', random), 'clone-db-ccccc');
  const long = generatedTargetName('a'.repeat(253), random);
  assert.equal(long.length, 253);
  assert.match(long, /^clone-a+-ccccc$/);
  assert.match(generatedTargetName('db'), /^clone-db-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
});
