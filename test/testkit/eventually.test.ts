import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from './eventually.ts';

test('a wait ends with what was found, through values that are not there yet and errors', async () => {
  const answers = [undefined, false, null, new Error('not yet'), 0];
  const read = async (): Promise<number | undefined> => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer as number | undefined;
  };
  assert.equal(await eventually('a number', read), 0);
  assert.deepEqual(answers, []);
});

test('a wait with a condition ends when that holds', async () => {
  let count = 0;
  assert.equal(
    await eventually(
      () => ++count,
      (found) => found === 3,
    ),
    3,
  );
});

test('a wait in vain says what was waited for, how long, and what was seen last', async () => {
  await assert.rejects(
    eventually('the moon', () => false, 1),
    /^Error: the moon: not within 1 ms; last: false$/,
  );
  const failing = (): never => {
    throw new Error('no sky');
  };
  await assert.rejects(eventually('the moon', failing, 1), /^Error: the moon: not within 1 ms; last: no sky$/);
});
