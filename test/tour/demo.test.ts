import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { whyNoGuests } from '../testkit/tiny-guest.ts';

const root = resolve(import.meta.dirname, '../..');
const why = whyNoGuests();

// S-094: `npm run demo -- --once` exits 0 and shows the guest's banner with the UUID of the VMI.
test("the demo ends with the guest's own words and the uuid the API knows", {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async () => {
  const { code, out, err } = await new Promise<{ code: number | null; out: string; err: string }>((done) => {
    const child = spawn('sh', [join(root, 'tools/setup/run.sh'), 'tools/demo/demo.ts', '--once'], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      err += chunk.toString();
    });
    child.on('close', (code) => done({ code, out, err }));
  });
  assert.equal(code, 0, err);
  const uuid = /firmware\.uuid}: (\S+)/.exec(err)?.[1];
  assert.ok(uuid, err);
  assert.match(out, new RegExp(`^uuid: ${uuid}\\r?$`, 'm'));
  assert.match(out, /hello from tiny/);
});

// S-803: `npm run demo -- --help` prints help and starts nothing; a wrong flag is one line and exit code 1.
for (const [flag, status, printed, said] of [
  ['--help', 0, /^A control plane, a virtual machine.*Usage: npm run demo -- \[flags\].*--image REF/s, /^$/],
  ['--nonsense', 1, /^$/, /^error: Unknown option '--nonsense' \(see: npm run demo -- --help\)\n$/],
] as const)
  test(`npm run demo -- ${flag} starts nothing and ends with ${status}`, () => {
    const {
      status: code,
      stdout,
      stderr,
    } = spawnSync('npm', ['run', '--silent', 'demo', '--', flag], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.equal(code, status, stderr);
    assert.match(stdout, printed);
    assert.match(stderr, said);
  });
