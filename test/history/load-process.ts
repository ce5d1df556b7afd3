/** One client process of a history run: `load-process.ts DATA_DIR FILE CLIENT SEED COMMIT`. Receives `stop`, and is ended by IPC. */
import { openSync, writeSync } from 'node:fs';
import { httpsEndpoint } from './endpoint.ts';
import type { HistoryRecord } from './history.ts';
import { runLoad } from './load.ts';

const [dataDir = '', file = '', client = '', seed = '0', commit = ''] = process.argv.slice(2);
const out = openSync(file, 'w');
const record = (line: HistoryRecord): void => void writeSync(out, `${JSON.stringify(line)}\n`);
record({ r: 'header', client, seed: Number(seed), commit });

const stop = new AbortController();
const settle = new AbortController();
process.on('message', (message) => (message === 'stop' ? stop : settle).abort());
process.on('disconnect', () => process.exit(1));

const endpoint = httpsEndpoint(dataDir);
await runLoad({
  endpoint,
  client,
  seed: Number(seed),
  record,
  stop: stop.signal,
  settle: settle.signal,
  callers: 4,
  watchers: 6,
  rest: 10,
});
endpoint.close();
process.disconnect?.();
process.exit(0);
