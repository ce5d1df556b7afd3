/**
 * Fills a volume in a process of its own: `fill-process.ts DIRECTORY CALL [STEP]`. Prints the last report as JSON; at STEP it
 * kills itself. `bytes:N` is a step too: so many bytes of the download are there. A source `upload` has a `file` here, which
 * is sent, unless an earlier process has received it whole.
 */
import { createReadStream, statSync } from 'node:fs';
import { join } from 'node:path';
import type { FillVolume } from '../../packages/cluster-rules/src/storage/pool-calls.ts';
import { createFills } from '../../packages/node-agent/src/fill/fills.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { openPool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock as clock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger as log } from '../../packages/runtime/src/log/log.ts';

const [directory = '', text = '', step = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const onStep = (reached: string): void => {
  if (process.env['FILL_STEPS']) process.stderr.write(`${reached}\n`);
  if (reached === step) process.kill(process.pid, 'SIGKILL');
};
const pool = await openPool({ directory: join(directory, 'claims'), clock, log, signal, onStep });
const images = await openImageStore(join(directory, 'images'), { clock, log });
const call = JSON.parse(text) as FillVolume & { readonly source: { readonly file?: string } };
const wantedBytes = Number(/^bytes:(\d+)$/.exec(step)?.[1] ?? Number.POSITIVE_INFINITY);
// Who is killed while the server stands still must not give up on it before.
const stallMs = Number.isFinite(wantedBytes) ? 60_000 : 1000;
const fills = createFills({ pool, images, clock, log, signal, onStep, stallMs });
async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  let sent = 0;
  for await (const chunk of createReadStream(file)) {
    yield chunk as Buffer;
    sent += (chunk as Buffer).length;
    if (sent >= wantedBytes) process.kill(process.pid, 'SIGKILL');
  }
}
const { file } = call.source;
if (file !== undefined) {
  await fills.fill(call);
  const incoming = { bytes: statSync(file).size, chunks: () => chunksOf(file), received: () => onStep('received') };
  // Refused where the upload of an earlier process is gone on with.
  await fills.receive(call.handle, incoming).catch((error: Error) => {
    if (!/another upload|full already/.test(error.message)) throw error;
  });
}
for (;;) {
  const report = await fills.fill(call);
  if (report.state === 'running') {
    if (report.bytes >= wantedBytes) process.kill(process.pid, 'SIGKILL');
    await new Promise((next) => setTimeout(next, 5));
    continue;
  }
  process.stdout.write(JSON.stringify(report));
  break;
}
await pool.close();
