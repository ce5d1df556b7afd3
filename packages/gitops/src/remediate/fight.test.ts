import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COOLING_MS, createFightDetector } from './fight.ts';

test('a fight begins with the fifth write in a short time, and is over when it has cooled down', () => {
  let now = 0;
  const detector = createFightDetector({ monotonic: () => now });
  const writes = Array.from({ length: 6 }, () => {
    now += 100;
    const isFight = detector.wrote('a');
    detector.calm('a');
    return isFight;
  });
  assert.deepEqual(writes, [false, false, false, false, false, true]);
  assert.deepEqual([...detector.fights], ['a']);
  now += COOLING_MS;
  detector.calm('a');
  assert.deepEqual([...detector.fights], []);
});

test('a write a minute is no fight', () => {
  let now = 0;
  const detector = createFightDetector({ monotonic: () => now });
  for (let at = 0; at < 50; at++) {
    now += COOLING_MS;
    assert.equal(detector.wrote('a'), false);
  }
});
