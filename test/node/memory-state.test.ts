/** Saved guests on real QEMUs: memory and disks of one moment, resumed by another machine and by the same one. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import type { MemorySaved } from '../../packages/kubevirt/src/rules/memory-state/memory-calls.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const COUNTER = '(while :; do i=$((i+1)); echo $i >/run/next; mv /run/next /run/count; sleep 0.1; done) &';

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

const diskSpec = (): VirtualMachineInstanceSpec => {
  const spec = kernelSpec();
  spec.domain.devices.disks = [
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

// S-671: A running guest is saved with its own disks at one point in time and runs on; asked again, the state is the
//   same.
// S-672
test('a guest is saved and runs on; another instance goes on from the same moment, with its own identity', async () => {
  await board.createVmi('source', diskSpec());
  const source = await runs('source');
  const line = await shell(board, 'source', true);
  await line.run(COUNTER);
  await line.run('echo written >/dev/vdb; echo root-mark | dd of=/dev/vda bs=512 seek=40000 conv=notrunc; sync');
  const before = Number(await line.run('until [ -s /run/count ]; do sleep 0.1; done; cat /run/count'));

  // Whose memory may be resumed is for admission, which asks for a snapshot; what is in it is for the agent.
  const metadata = { name: 'owner', namespace: NAMESPACE };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata,
    spec: { runStrategy: 'Halted', template: { spec: kernelSpec() } },
  });
  const snapshot = await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { ...metadata, annotations: { 'coracle.dev/include-memory': 'true' } },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'owner' } },
  });
  const state = snapshot.metadata.uid ?? '';
  const call = { state, namespace: NAMESPACE, vmi: 'source', vmiUid: source.metadata.uid };
  const saved = await ask<MemorySaved>('save', call);
  assert.equal(saved.status, 200, JSON.stringify(saved.body));
  assert.deepEqual((await ask<MemorySaved>('save', call)).body, saved.body, 'asked again it is the same state');
  const after = Number(await line.run('until [ -s /run/count ]; do sleep 0.1; done; cat /run/count'));
  assert.ok(after >= before, 'the source goes on');
  await line.run('echo changed >/dev/vdb; sync');

  const create = (name: string, spec: VirtualMachineInstanceSpec, more: object = {}) =>
    board.client.create(VIRTUAL_MACHINE_INSTANCES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name, namespace: NAMESPACE, annotations: { 'coracle.dev/resume-from': state, ...more } },
      spec,
    });
  await create('copy', diskSpec());
  await runs('copy');
  const copy = await shell(board, 'copy', false);
  const first = Number(await copy.run('cat /run/count'));
  assert.ok(first >= before, `${first} goes on from ${before}`);
  assert.equal(await copy.run('head -c 7 /dev/vdb'), 'written');
  assert.equal(await copy.run('dd if=/dev/vda bs=512 skip=40000 count=1 2>/dev/null | head -c 9'), 'root-mark');
  assert.equal(await line.run('head -c 7 /dev/vdb'), 'changed');

  // Its disks are those of a guest of its own: what it writes is nobody else's.
  await copy.run('echo of-copy >/dev/vdb; sync');
  assert.equal(await line.run('head -c 7 /dev/vdb'), 'changed');
  const files = await readdir(join(board.directory, 'node/memory', state));
  assert.deepEqual(
    files.filter((name) => name.startsWith('.') || name.endsWith('.tmp')),
    [],
  );

  // A machine that differs from the saved one is not started, and says why; unless it is to boot then.
  const larger = { ...diskSpec(), domain: { ...diskSpec().domain, memory: { guest: '160Mi' } } };
  await create('larger', larger);
  const refused = await board.until('larger', 'refused', (vmi) =>
    (vmi.status?.conditions ?? []).some(({ reason }) => reason === 'FailedResume'),
  );
  const condition = refused.status?.conditions?.find(({ reason }) => reason === 'FailedResume');
  assert.match(condition?.message ?? '', /does not fit: the machine differs in memoryBytes/);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'larger' });
  await create('boots', larger, { 'coracle.dev/resume-fallback': 'Boot' });
  await runs('boots');
});
