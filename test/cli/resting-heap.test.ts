import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';

/** Of some 60 MiB that a first start leaves behind; without a rest the process keeps them all. */
const AT_LEAST_MIB = 25;

// S-1355: A server that nobody asks anything for a few seconds gives the memory that its start took back to the system.
test('memory of a start is given back when nobody asks', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-rest-'));
  const server = await startProcess(dir);
  try {
    const mib = (name: string): number =>
      Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))![1]) /
      1024;
    await eventually(`${AT_LEAST_MIB} MiB given back`, () => mib('VmHWM') - mib('VmRSS') >= AT_LEAST_MIB);
  } finally {
    await server.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  }
});
