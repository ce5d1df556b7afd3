/**
 * Fault rows 1-3: the process is killed at random moments, start-up and compaction included. No answered write is lost,
 * an unanswered one is whole or absent, the revision never goes back and the epoch rises.
 * CORACLE_ROUNDS raises the number of kills.
 */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { it } from 'node:test';
import { createSqliteBackend } from '../../packages/apiserver/src/storage/sqlite-backend.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { randomFrom, seed } from '../testkit/seed.ts';

const ROUNDS = Number(process.env['CORACLE_ROUNDS'] ?? 15);
const FIXTURE = new URL('./storage-writer.ts', import.meta.url).pathname;
const decoder = new TextDecoder();
const random = randomFrom(seed);

interface Acknowledged {
  /** Undefined when the object was deleted. */
  readonly counter: number | undefined;
  readonly revision: number;
}

/** Runs the writer and kills it; returns the lines it had written. */
async function runAndKill(directory: string, round: number): Promise<string[]> {
  const child = spawn(process.execPath, [FIXTURE, directory], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  // Every fifth kill falls somewhere into the start.
  const early = round % 5 === 4 ? setTimeout(kill, 50 + random() * 200) : undefined;
  let later: ReturnType<typeof setTimeout> | undefined;
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    if (!early && line.startsWith('open')) later = setTimeout(kill, random() * 250);
  });
  const tooLong = setTimeout(kill, 30_000);
  await once(child, 'close');
  for (const timer of [early, later, tooLong]) clearTimeout(timer);
  return lines;
}

// S-029
it(`${ROUNDS} kills lose no answered write`, { timeout: ROUNDS * 20_000 }, async (test) => {
  test.diagnostic(`CORACLE_SEED=${seed}`);
  const directory = await mkdtemp(join(tmpdir(), 'storage-kill-'));
  const acknowledged = new Map<string, Acknowledged>();
  let shown = 0;
  let epoch = 0;
  let answers = 0;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const atStart = shown;
      for (const line of await runAndKill(directory, round)) {
        const [what, name, counter, revision] = line.split(' ');
        if (what === 'open') {
          assert.ok(Number(name) >= shown, `round ${round}: revision went back from ${shown} to ${name}`);
          continue;
        }
        // The last line may be cut off by the kill.
        if (what !== 'ack' || revision === undefined) continue;
        assert.ok(Number(revision) > atStart, `round ${round}: revision ${revision} was given out before`);
        acknowledged.set(name!, { counter: counter === '-' ? undefined : Number(counter), revision: Number(revision) });
        shown = Math.max(shown, Number(revision));
        answers++;
      }

      const backend = createSqliteBackend({ directory, clock: systemClock, log: silentLogger });
      const opened = await backend.open(AbortSignal.timeout(30_000));
      assert.ok(opened.epoch > epoch, 'the epoch rises');
      assert.ok(opened.revision >= shown, `round ${round}: revision went back`);
      epoch = opened.epoch;
      shown = opened.revision;
      const live = new Map<string, { counter: number; revision: number }>();
      const tombstones = new Map<string, number>();
      for await (const rows of opened.rows) {
        for (const { key, value, revision } of rows) {
          const name = key.slice(key.lastIndexOf('/') + 1);
          if (value === undefined) {
            live.delete(name);
            tombstones.set(name, revision);
          } else live.set(name, { counter: JSON.parse(decoder.decode(value)).counter, revision });
        }
      }
      assert.deepEqual(opened.corrupt, []);
      await backend.close();

      for (const [name, { counter, revision }] of acknowledged) {
        const found = live.get(name);
        // One write of a name is under way at a time: it may have been kept without an answer, nothing else may differ.
        if (found === undefined) {
          if (counter === undefined) continue;
          // A delete without an answer cannot have been compacted yet: its row must be there.
          const deleted = tombstones.get(name) ?? 0;
          assert.ok(deleted > revision, `round ${round}: ${name} at revision ${revision} is lost`);
          acknowledged.set(name, { counter: undefined, revision: deleted });
        } else if (found.revision !== revision) {
          assert.ok(
            found.revision > revision,
            `round ${round}: ${name} fell back from ${revision} to ${found.revision}`,
          );
          assert.equal(found.counter, (counter ?? 0) + 1, `round ${round}: ${name} is torn`);
          acknowledged.set(name, found);
        } else {
          assert.equal(found.counter, counter);
        }
      }
    }
    assert.ok(answers > 0, 'the writers got somewhere');
    test.diagnostic(`${ROUNDS} kills, ${answers} answered writes, 0 lost`);
  } finally {
    await rm(directory, { recursive: true });
  }
});
