import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { isInstalled, KUBECTL_PROGRAM } from '../../tools/setup/host-packages.ts';
import { startProcess } from '../testkit/control-plane-process.ts';

const root = resolve(import.meta.dirname, '../..');
const blocks = [
  ...readFileSync(join(root, 'docs/guide/instancetypes.md'), 'utf8').matchAll(/^```sh guide\n([\s\S]*?)^```$/gm),
].map(([, script]) => script!);

// S-183
test('every command of the guide to instance types works as printed', { timeout: 600_000 }, async (t) => {
  const missing = Object.keys(KUBECTL_PROGRAM).filter((program) => !isInstalled(program));
  if (missing.length > 0) return t.skip(`not on this host: ${missing.join(', ')}`);
  assert.ok(blocks.length >= 10, 'the guide has commands');
  const folder = mkdtempSync(join(tmpdir(), 'coracle-guide-'));
  const plane = await startProcess(join(folder, 'data'));
  t.after(async () => {
    await plane.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });
  // The reader stands in the project's folder; the files the guide writes belong elsewhere.
  symlinkSync(join(root, 'coracle'), join(folder, 'coracle'));
  const child = spawn('bash', ['-euo', 'pipefail', '-c', blocks.join('\n')], {
    cwd: folder,
    env: {
      ...process.env,
      HOME: folder,
      KUBECONFIG: join(folder, 'data', 'kubeconfig'),
      PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  const code = await new Promise((done) => child.once('close', done));
  assert.equal(code, 0, output.slice(-4000));
  for (const expected of [
    /^u1\.nano\s/m,
    /domain\.memory\.guest +2Gi +instancetype$/m,
    /^web-u1\.small-v1beta1-[0-9a-f-]+-1$/m,
    /domain\.memory\.guest: VM field\(s\) spec\.template\.spec\.domain\.memory\.guest conflicts with selected instance type/,
    /insufficient Memory resources of 512Mi provided by instance type, preference requires 2Gi/,
    /virtualmachineclusterinstancetypes\.instancetype\.kubevirt\.io "soon" not found/,
    /^4Gi$/m,
    /^virtualmachineinstancetype\.instancetype\.kubevirt\.io\/small created$/m,
  ])
    assert.match(output, expected);
});
