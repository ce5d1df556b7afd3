/**
 * The one seed of every test that makes choices: walks, floods, kills, properties. Fixed unless asked otherwise, so that
 * two runs of `npm test` on the same tree do the same; what a run finds, the next run finds again.
 *
 * CORACLE_SEED: a number between 0 and 2147483647 repeats a run, `random` draws a new one, which is printed.
 */

const DEFAULT_SEED = 20_220_926;
const END = 2 ** 31;

/**
 * Reads CORACLE_SEED. A drawn seed is written back to `env`, so that processes started from here take the same one.
 * @throws Error when the value is neither `random` nor such a number.
 */
export function readSeed(env: NodeJS.ProcessEnv, note: (line: string) => void): number {
  const given = env['CORACLE_SEED'] ?? '';
  if (given === '') return DEFAULT_SEED;
  if (given === 'random') {
    const drawn = Math.floor(Math.random() * END);
    env['CORACLE_SEED'] = String(drawn);
    note(`CORACLE_SEED=${drawn}`);
    return drawn;
  }
  const value = Number(given);
  if (!/^\d+$/.test(given) || value >= END) {
    throw new Error(`CORACLE_SEED must be "random" or a whole number below ${END}, not "${given}"`);
  }
  return value;
}

/** The seed of this process. Tests name it where they fail. */
export const seed = readSeed(process.env, (line) => void process.stderr.write(`${line}\n`));

/** Numbers in [0, 1) that a seed decides. */
export function randomFrom(start: number): () => number {
  let state = start >>> 0 || 1;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
