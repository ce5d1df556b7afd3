import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

test('a background process keeps its log file within a size, and writes on', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-log-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, 'coracle.log');
  writeFileSync(path, 'old\n'.repeat(100));
  const stderr = openSync(path, 'a');
  const script = `
    import { writeSync } from 'node:fs';
    import { boundLogFile } from ${JSON.stringify(join(import.meta.dirname, 'process-log.ts'))};
    boundLogFile(${JSON.stringify(path)}, 1000);
    writeSync(2, 'before\\n');
    boundLogFile(${JSON.stringify(path)}, 100);
    writeSync(2, 'after\\n');
    boundLogFile(${JSON.stringify(join(directory, 'another.log'))}, 1);
  `;
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'ignore', stderr],
  });
  closeSync(stderr);
  assert.equal(status, 0);
  assert.equal(readFileSync(path, 'utf8'), 'after\n');
  assert.equal(readFileSync(`${path}.1`, 'utf8'), `${'old\n'.repeat(100)}before\n`);
});

// S-301
test('a log that cannot be written stops nothing', () => {
  const script = `
    import { systemClock } from ${JSON.stringify(join(import.meta.dirname, '../../../runtime/src/clock/clock.ts'))};
    import { processLog } from ${JSON.stringify(join(import.meta.dirname, 'process-log.ts'))};
    processLog({}, systemClock).error('disk full');
    console.log('went on');
  `;
  const full = openSync('/dev/full', 'w');
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', full],
    encoding: 'utf8',
  });
  closeSync(full);
  assert.deepEqual([status, stdout], [0, 'went on\n']);
});
