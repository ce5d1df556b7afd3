/** Life of VirtualMachines with real guests: the promises that only hold when all controllers and the agent agree. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { bareSpec, kernelSpec, NAMESPACE } from './board.ts';
import {
  board,
  createVm,
  isReady,
  keyOf,
  podOf,
  remove,
  request,
  runs,
  setStrategy,
  shows,
  useBoard,
  vmOf,
} from './vm-life.ts';

useBoard();

// S-125: At most 5 writes to a VMI between its creation and Running and Ready.
// S-143: A paused guest is not ready, nor is its Pod.
test('from creation to Running and Ready a VMI is written five times at most; paused it is not ready, nor is its Pod', async () => {
  const phases: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const event of board.client.watch(VIRTUAL_MACHINE_INSTANCES, {
      namespace: NAMESPACE,
      signal: stop.signal,
    }))
      if (event.type === 'MODIFIED') phases.push(event.object.status?.phase ?? '');
  })().catch(() => {});
  await createVm('paused', 'Always', bareSpec({ terminationGracePeriodSeconds: 3 }));
  const vmi = await board.until('paused', 'ready', isReady);
  const written = phases.length;
  stop.abort();
  await watching;
  assert.ok(written <= 5, `${written} writes: ${phases.join(', ')}`);

  assert.equal(await board.put('paused/pause'), 200);
  await shows('paused', 'Paused');
  await board.until('paused', 'not ready', (v) => !isReady(v));
  assert.equal((await podOf(vmi)).status?.phase, 'Running');
  assert.equal(isReady(await podOf(vmi)), false);
  assert.equal(await board.put('paused/reset'), 200);
  assert.equal(await board.put('paused/unpause'), 200);
  await board.until('paused', 'ready again', isReady);

  // Its Pod is taken away by force: never are there two guests.
  const { process: old } = await board.record(vmi);
  assert.ok(old);
  await board.client.delete(PODS, keyOf((await podOf(vmi)).metadata.name!), { gracePeriodSeconds: 0 });
  await runs('paused', vmi.metadata.uid);
  assert.equal(await isRunning(old), false);
  await setStrategy('paused', 'Halted');
});

// S-141
test('a restart of a Manual VM brings another guest; with no grace the old one goes at once', async () => {
  // Ten minutes of grace, and a guest that hears no power button: only the Pod's own grace can make this swift.
  await createVm('manual', 'Manual', bareSpec({ terminationGracePeriodSeconds: 600 }));
  await request('manual', [{ action: 'Start' }]);
  const first = await runs('manual');
  await request('manual', [{ action: 'Stop', uid: first.metadata.uid }, { action: 'Start' }]);
  await shows('manual', 'Stopping');
  await board.client.delete(PODS, keyOf((await podOf(first)).metadata.name!), { gracePeriodSeconds: 1 });
  const second = await runs('manual', first.metadata.uid);
  assert.equal((await vmOf('manual')).status?.stateChangeRequests, undefined);

  // Restarted, then halted before the old guest was gone: it stays off.
  await request('manual', [{ action: 'Stop', uid: second.metadata.uid }, { action: 'Start' }]);
  await setStrategy('manual', 'Halted');
  await board.client.delete(PODS, keyOf((await podOf(second)).metadata.name!), { gracePeriodSeconds: 1 });
  await shows('manual', 'Stopped');
  await eventually('the request is dropped', async () => {
    const { spec, status } = await vmOf('manual');
    return spec.runStrategy === 'Halted' && status?.created === undefined && status?.stateChangeRequests === undefined;
  });
  await remove('manual');
});

// S-070: A guest whose image was missing starts once the image is there.
test('an image that comes late ends the trouble, and is reported no more', async () => {
  await createVm('late', 'Always', {
    terminationGracePeriodSeconds: 0,
    domain: { memory: { guest: '128Mi' }, devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] } },
    volumes: [{ name: 'root', containerDisk: { image: 'localhost/late' } }],
  });
  await shows('late', 'ErrImagePull');
  const blank = join(board.directory, 'blank.img');
  await writeFile(blank, Buffer.alloc(1024 * 1024));
  await importImage(board.images, 'late', blank, { signal: AbortSignal.timeout(90_000) });
  const vmi = await board.until('late', 'ready', isReady);
  assert.equal(
    vmi.status?.conditions?.find((c) => c.type === 'Synchronized'),
    undefined,
  );
  await remove('late');
});

/** A guest that does no more than run this command some seconds after its kernel has booted. */
function guestThat(command: string): VirtualMachineInstanceSpec {
  const spec = kernelSpec();
  spec.domain.firmware!.kernelBoot!.kernelArgs = `console=ttyS0 rdinit=/bin/sh -- -c "sleep 5; ${command}"`;
  return spec;
}

// S-142: A guest that powers itself off stays off under Manual and RerunOnFailure.
test('a guest that powers off: Once leaves it, RerunOnFailure takes it away and stays off', async () => {
  const names = ['off-rerun', 'off-once'];
  const spec = guestThat('/bin/poweroff -f');
  await Promise.all([createVm('off-rerun', 'RerunOnFailure', spec), createVm('off-once', 'Once', spec)]);
  await Promise.all(names.map((name) => runs(name)));
  await Promise.all(names.map((name) => shows(name, 'Stopped')));
  await eventually('rerun', async () => (await vmOf('off-rerun')).status?.created === undefined);
  assert.equal((await board.vmi('off-once')).status?.phase, 'Succeeded');
  await Promise.all(names.map(remove));
});

// S-396: With `rebootPolicy: Terminate` a reboot of any kind ends the instance as Succeeded; what follows is the run
//   strategy's.
test('rebootPolicy Terminate: a reboot ends the instance, asked for in the guest', async () => {
  const spec = guestThat('/bin/reboot -f');
  spec.domain.rebootPolicy = 'Terminate';
  await createVm('term-once', 'Once', spec);
  const once = await runs('term-once');
  const ended = await board.until('term-once', 'ended', ({ status }) => status?.phase === 'Succeeded');
  assert.equal(ended.metadata.uid, once.metadata.uid);
  await shows('term-once', 'Stopped');
  await remove('term-once');
});
