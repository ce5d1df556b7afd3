import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { readSeed } from './seed.ts';

const unheard = (line: string): void => assert.fail(line);

// S-245: Two runs of the tests make the same choices: one seed decides them all, `CORACLE_SEED=random` draws and prints
//   another.
test('the seed is the same in each run, a number is taken as it is, "random" is printed and handed on', () => {
  assert.equal(readSeed({}, unheard), readSeed({}, unheard));
  assert.equal(readSeed({ CORACLE_SEED: '0' }, unheard), 0);
  assert.equal(readSeed({ CORACLE_SEED: '2147483647' }, unheard), 2147483647);
  const environment: NodeJS.ProcessEnv = { CORACLE_SEED: 'random' };
  const said: string[] = [];
  const drawn = readSeed(environment, (line) => void said.push(line));
  assert.deepEqual(said, [`CORACLE_SEED=${drawn}`]);
  assert.equal(readSeed(environment, unheard), drawn);
  for (const wrong of ['2147483648', '-1', '1e3', 'yes', ' ']) {
    assert.throws(() => readSeed({ CORACLE_SEED: wrong }, unheard), /CORACLE_SEED must be/, wrong);
  }
});

// S-245
test('with seed-properties.ts loaded, fast-check draws from the seed', () => {
  const program = `
    import fc from 'fast-check';
    const drawn = [];
    fc.assert(fc.property(fc.integer(), (value) => void drawn.push(value)));
    console.log(drawn.join());`;
  const draw = (seed: string): string =>
    spawnSync(
      process.execPath,
      [`--import=${new URL('seed-properties.ts', import.meta.url).href}`, '--input-type=module', `--eval=${program}`],
      { cwd: import.meta.dirname, env: { ...process.env, CORACLE_SEED: seed }, encoding: 'utf8' },
    ).stdout;
  assert.match(draw('7'), /^-?\d+(,-?\d+)+\n$/);
  assert.equal(draw('7'), draw('7'));
  assert.notEqual(draw('7'), draw('8'));
});
