/**
 * Fixture: opens the store in argv[2], writes with eight writers until it is killed and reports each answered write as
 * a line on stdout. argv[3], if given, ends it after so many answers or the first failure.
 * Lines: `open <revision>`, `ack <name> <counter> <revision>` (counter `-` for a delete), `fail <code> <message>`.
 */
import { writeSync } from 'node:fs';
import { createObjectStore } from '../../packages/apiserver/src/cache/create-object-store.ts';
import type { Decision, StoredObject } from '../../packages/apiserver/src/cache/object-store.ts';
import { createSqliteBackend } from '../../packages/apiserver/src/storage/sqlite-backend.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';

const WRITERS = 8;
const NAMES_PER_WRITER = 12;
const PREFIX = 'faults/things';

const directory = process.argv[2]!;
let left = Number(process.argv[3] ?? Number.POSITIVE_INFINITY);

/** Straight to the pipe: an answer that was given must not be lost in a buffer of ours. */
const say = (line: string): void => {
  writeSync(1, `${line}\n`);
};

const store = await createObjectStore({
  backend: createSqliteBackend({ directory, clock: systemClock, log: silentLogger }),
  clock: systemClock,
  log: silentLogger,
  // Often, so that kills fall into compactions too.
  compactionInterval: 20,
  signal: AbortSignal.timeout(30_000),
});
say(`open ${store.revision()}`);

const counterOf = (item: StoredObject | undefined): number => Number(item?.object['counter'] ?? 0);

async function write(writer: number, turn: number): Promise<void> {
  const name = `w${writer}-${turn % NAMES_PER_WRITER}`;
  const remove = turn % 7 === 6;
  let counter = '-';
  const decide = (current: StoredObject | undefined): Decision => {
    if (remove) return current ? { type: 'delete', object: current.object } : { type: 'keep' };
    const next = counterOf(current) + 1;
    counter = String(next);
    const padding = 'x'.repeat((next * 997 + writer * 131) % 4000);
    const object = { kind: 'Thing', apiVersion: 'faults/v1', metadata: { name }, counter: next, padding };
    return { type: 'put', object };
  };
  const stored = await store.write({ prefix: PREFIX, namespace: '', name }, decide);
  if (stored) say(`ack ${name} ${counter} ${stored.revision}`);
}

await Promise.all(
  Array.from({ length: WRITERS }, async (_, writer) => {
    for (let turn = 0; left-- > 0; turn++) {
      try {
        await write(writer, turn);
      } catch (error) {
        const { code, message } = error as { code?: number; message: string };
        say(`fail ${code} ${message}`);
        left = 0;
      }
    }
  }),
);
await store.close();
