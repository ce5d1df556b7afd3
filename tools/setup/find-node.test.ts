/** The launcher's way to a Node: a version is asked for once for each binary, and a folder of others is no cache. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const HERE = resolve(import.meta.dirname);
/** As large as a Node that holds all of itself. */
const LARGE = 40_000_000;

// S-1000: The launcher asks a Node for its version once, and again when another binary lies in its place; a Node of
//   less than 24 is never remembered, and a shim is asked each time.
test('a Node is asked for its version once, and again when another one lies there; a shim is asked each time', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-find-node-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  const node = join(bin, 'node');
  const stamp = join(dir, 'stamp');
  const asked = join(dir, 'asked');
  const place = (version: string, bytes?: number): void => {
    rmSync(node, { force: true });
    writeFileSync(node, `#!/bin/sh\necho asked >>'${asked}'\necho v${version}\nexit\n`);
    chmodSync(node, 0o755);
    if (bytes !== undefined) truncateSync(node, bytes);
  };
  const find = (...more: string[]): { readonly found: string; readonly asked: number } => {
    rmSync(asked, { force: true });
    const { stdout } = spawnSync('sh', ['-c', '. "$0/find-node.sh"; find_node "$@"', HERE, dir, ...more], {
      encoding: 'utf8',
      env: { PATH: `${bin}:/usr/bin:/bin` },
    });
    return {
      found: stdout.trim(),
      asked: existsSync(asked) ? readFileSync(asked, 'utf8').trim().split('\n').length : 0,
    };
  };
  place('24.1.0', LARGE);
  assert.deepEqual(find(stamp), { found: node, asked: 1 });
  assert.deepEqual(find(stamp), { found: node, asked: 0 });
  assert.deepEqual(find(), { found: node, asked: 1 }, 'without a stamp');
  place('24.2.0', LARGE + 1);
  assert.deepEqual(find(stamp), { found: node, asked: 1 }, 'another binary');
  place('22.0.0', LARGE + 2);
  assert.deepEqual(find(stamp), { found: '', asked: 1 }, 'too old');
  assert.deepEqual(find(stamp), { found: '', asked: 1 }, 'too old, and never noted');
  place('24.1.0');
  assert.deepEqual(find(stamp), { found: node, asked: 1 }, 'a shim');
  assert.deepEqual(find(stamp), { found: node, asked: 1 }, 'a shim again');
  assert.deepEqual(find(join(dir, 'missing/stamp')), { found: node, asked: 1 }, 'nowhere to note it');
});
