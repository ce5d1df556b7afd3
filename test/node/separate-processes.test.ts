import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { COMPILED, MAIN_FILE } from '../testkit/program.ts';
import { byKernel, importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const KEY = { namespace: 'default', name: 'apart' };
/** Not the default: virt-api can only reach the agent where its Node says. */
const ADDRESS = '127.0.0.3';

/** Starts a `coracle` command that runs on, and resolves when it has said `ready`. */
function runOn(argv: readonly string[], ready: RegExp): Promise<ChildProcess> {
  const child = spawn(process.execPath, [MAIN_FILE, ...argv], {
    env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return new Promise((started, fail) => {
    let output = '';
    const collect = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-65_536);
      if (ready.test(output)) started(child);
    };
    child.stdout!.on('data', collect);
    child.stderr!.on('data', collect);
    child.once('exit', (code) => fail(new Error(`${argv.join(' ')} ended with ${code}: ${output}`)));
  });
}

// S-054: The server in one process and all controllers and the agent in another, over HTTPS with their own tokens, boot
//   a machine.
// S-090: `coracle node` runs an agent alone against any kubeconfig.
// S-147: `node --address` serves the node API on an address of the host that a control plane elsewhere reaches.
test('API server, controllers and agent in three processes boot a VM over HTTPS, each with its own token', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'coracle-apart-'));
  const nodeDir = join(dir, 'node');
  const kubeconfig = join(dir, 'plane', 'kubeconfig');
  const children: ChildProcess[] = [];
  const plane = await startProcess(join(dir, 'plane'), { nodes: 0, controllers: '' });
  t.after(async () => {
    for (const child of children) {
      const ended = new Promise((done) => child.once('exit', done));
      if (child.exitCode === null && child.kill('SIGTERM')) await ended;
    }
    await plane.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });
  await importTinyGuest(nodeDir);
  children.push(await runOn(['controllers', '--kubeconfig', kubeconfig], /^running .*\bvm\b/m));
  children.push(
    await runOn(
      ['node', '--kubeconfig', kubeconfig, '--data-dir', nodeDir, '--name', 'edge-1', '--address', ADDRESS],
      /^node edge-1 is ready/m,
    ),
  );

  const { client, close } = adminOf(join(dir, 'plane'));
  const node = await client.get(NODES, { namespace: '', name: 'edge-1' });
  assert.deepEqual(
    node.status?.addresses?.find(({ type }) => type === 'InternalIP'),
    { type: 'InternalIP', address: ADDRESS },
  );
  await client.create(VIRTUAL_MACHINES, tinyVm(KEY.name, byKernel));
  const vmi = await eventually('the guest to run', async () => {
    const found = await client.get(VIRTUAL_MACHINE_INSTANCES, KEY);
    return found.status?.phase === 'Running' ? found : undefined;
  });
  assert.equal(vmi.status?.nodeName, 'edge-1');
  // virt-api reaches the agent of the other process, by the certificate the Node names.
  await client.raw(
    'PUT',
    `/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/${KEY.name}/pause`,
    { body: {} },
  );
  await eventually('the guest to pause', async () => {
    const found = await client.get(VIRTUAL_MACHINES, KEY);
    return found.status?.printableStatus === 'Paused' ? true : undefined;
  });
  await client.delete(VIRTUAL_MACHINES, KEY);
  await eventually('the VM to go', async () => {
    const left = await client.list(VIRTUAL_MACHINES, { namespace: 'default' });
    return left.items.length === 0 ? true : undefined;
  });
  await close();
});
