/** Fills a volume from a URL, in a process of its own: `import-fill.ts DIRECTORY CALL`. Prints seconds and CPU seconds as JSON. */
import { join } from 'node:path';
import type { FillVolume } from '../packages/cluster-rules/src/storage/pool-calls.ts';
import { createFills } from '../packages/node-agent/src/fill/fills.ts';
import { openImageStore } from '../packages/node-agent/src/image/image-store.ts';
import { openPool } from '../packages/node-agent/src/storage/pool.ts';
import { systemClock as clock } from '../packages/runtime/src/clock/clock.ts';
import { silentLogger as log } from '../packages/runtime/src/log/log.ts';

const [directory = '', text = ''] = process.argv.slice(2);
const { signal } = new AbortController();
const pool = await openPool({ directory: join(directory, 'claims'), clock, log, signal });
const images = await openImageStore(join(directory, 'images'), { clock, log });
const fills = createFills({ pool, images, clock, log, signal });
const call = JSON.parse(text) as FillVolume;
const before = process.cpuUsage();
const began = performance.now();
let report = await fills.fill(call);
while (report.state === 'running') {
  await new Promise((next) => setTimeout(next, 10));
  report = await fills.fill(call);
}
if (report.state === 'failed') throw new Error(report.message);
const seconds = (performance.now() - began) / 1000;
const { user, system } = process.cpuUsage(before);
process.stdout.write(JSON.stringify({ seconds, cpuSeconds: (user + system) / 1e6 }));
await pool.close();
process.exit(0);
