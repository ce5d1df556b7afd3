/** Forks of a running machine through the API, on real QEMUs. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../src/api/kinds/kubevirt/kubevirt.ts';
import { type Board, eventually, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

test('a fork goes on in two machines with identities of their own, and leaves nothing behind', async () => {
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'web', namespace: NAMESPACE, labels: { app: 'web' } },
    spec: { runStrategy: 'Always', template: { metadata: { labels: { app: 'web' } }, spec: kernelSpec() } },
  } as unknown as VirtualMachine);
  await board.until('web', 'running', (vmi) => vmi.status?.phase === 'Running');
  const line = await shell(board, 'web', true);
  await line.run('(while :; do i=$((i+1)); echo $i >/run/count; sleep 0.1; done) &');
  const before = Number(await line.run('cat /run/count'));
  const begun = performance.now();
  await board.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: {
      generateName: 'web-fork-',
      namespace: NAMESPACE,
      annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': 'web-1,web-2' },
    },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'web' } },
  } as never);
  const uuids = new Set<string | undefined>();
  for (const name of ['web', 'web-1', 'web-2']) {
    await board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');
    console.log(name, 'runs after', performance.now() - begun);
    const vm = await board.client.get(VIRTUAL_MACHINES, { namespace: NAMESPACE, name });
    uuids.add(vm.spec.template.spec?.domain.firmware?.uuid);
    const copy = name === 'web' ? line : await shell(board, name, false);
    assert.ok(Number(await copy.run('cat /run/count')) >= before, name);
    console.log(name, 'answers after', performance.now() - begun);
  }
  assert.equal(uuids.size, 3);
  await eventually('the snapshot goes', async () => {
    const { items } = await board.client.list(VIRTUAL_MACHINE_SNAPSHOTS, { namespace: NAMESPACE });
    return items.length === 0;
  });
  assert.deepEqual(await readdir(join(board.directory, 'node/memory')), []);
  const fork = await board.client.get(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'web-1' });
  assert.equal(fork.metadata.annotations?.['coracle.dev/resume-from'], undefined);
  assert.equal(fork.metadata.annotations?.['coracle.dev/forked-from'], 'web');
});
