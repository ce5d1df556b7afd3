/** Saved guests on real QEMUs: memory and disks of one moment, resumed by another machine and by the same one. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { VirtualMachineInstance } from '../../src/api/kinds/kubevirt/kinds.ts';
import { calledInProcess } from '../../src/base/http/in-process-peer.ts';
import { NEVER } from '../../src/base/http/seam.ts';
import type { MemorySaved, MemoryStates } from '../../src/domain/memory-state/memory-calls.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const STATE = '5a5a5a5a-0000-4000-8000-000000000001';
const COUNTER = '(while :; do i=$((i+1)); echo $i >/run/count; sleep 0.1; done) &';

/** A call to the agent. */
async function ask<T>(call: string, body: object): Promise<{ status: number; body: T }> {
  const response = await calledInProcess(board.agent.handler)({
    method: 'POST',
    path: `/memory/v1/${call}`,
    query: '',
    headers: {},
    body: new TextEncoder().encode(JSON.stringify(body)),
    peer: { address: '' },
    signal: NEVER,
  });
  return { status: response.status, body: JSON.parse(new TextDecoder().decode(response.body as Uint8Array)) as T };
}

const diskSpec = (): Record<string, unknown> => {
  const spec = kernelSpec() as { domain: { devices: Record<string, unknown> } };
  spec.domain.devices['disks'] = [
    { name: 'root', disk: { bus: 'virtio' } },
    { name: 'scratch', disk: { bus: 'virtio' } },
  ];
  return {
    ...spec,
    volumes: [
      { name: 'root', containerDisk: { image: 'localhost/tiny' } },
      { name: 'scratch', emptyDisk: { capacity: '16Mi' } },
    ],
  };
};
const runs = (name: string): Promise<VirtualMachineInstance> =>
  board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');

test('a guest is saved and runs on; another instance goes on from the same moment, with its own identity', async () => {
  await board.createVmi('source', diskSpec());
  const source = await runs('source');
  const line = await shell(board, 'source', true);
  await line.run(COUNTER);
  await line.run('echo written >/dev/vdb; echo root-mark | dd of=/dev/vda bs=512 seek=40000 conv=notrunc; sync');
  const before = Number(await line.run('cat /run/count'));

  const call = { state: STATE, namespace: NAMESPACE, vmi: 'source', vmiUid: source.metadata.uid };
  const saved = await ask<MemorySaved>('save', call);
  assert.equal(saved.status, 200, JSON.stringify(saved.body));
  console.log('saved', saved.body);
  assert.deepEqual((await ask<MemorySaved>('save', call)).body, saved.body, 'asked again it is the same state');
  const after = Number(await line.run('cat /run/count'));
  assert.ok(after >= before, 'the source goes on');
  await line.run('echo changed >/dev/vdb; sync');

  const annotated = async (name: string, spec: Record<string, unknown>, state: string): Promise<void> => {
    await board.client.create(
      { ...(await import('../../src/api/kinds/kubevirt/kinds.ts')).VIRTUAL_MACHINE_INSTANCES },
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        metadata: { name, namespace: NAMESPACE, annotations: { 'coracle.dev/resume-from': state } },
        spec,
      } as unknown as VirtualMachineInstance,
    );
  };
  const begun = performance.now();
  await annotated('copy', diskSpec(), STATE);
  await runs('copy');
  console.log('fork runs after', performance.now() - begun);
  const copy = await shell(board, 'copy', false);
  const first = Number(await copy.run('cat /run/count'));
  console.log('fork answers after', performance.now() - begun, { before, after, first });
  assert.ok(first >= before, `${first} goes on from ${before}`);
  assert.equal(await copy.run('head -c 7 /dev/vdb'), 'written');
  assert.equal(await copy.run('dd if=/dev/vda bs=512 skip=40000 count=1 2>/dev/null | head -c 9'), 'root-mark');
  console.log(await copy.run('dmesg | tail -3; cat /sys/class/dmi/id/product_uuid; cat /sys/class/net/eth0/address'));
  assert.equal(await line.run('head -c 7 /dev/vdb'), 'changed');
  const states = await ask<MemoryStates>('list', { state: STATE });
  console.log(states.body, await readdir(join(board.directory, 'node/memory', STATE)));
});
