/** Life of VirtualMachines with real guests: the promises that only hold when all controllers and the agent agree. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod } from '../../packages/apimachinery/src/types/types.ts';
import {
  type RunStrategy,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceSpec,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { importImage } from '../../packages/node-agent/src/image/local-images.ts';
import { isRunning, type ProcessIdentity } from '../../packages/runtime/src/process/identity.ts';
import { ensureGuest } from '../../tools/guest/build-guest.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const keyOf = (name: string) => ({ namespace: NAMESPACE, name });
const vmOf = (name: string): Promise<VirtualMachine> => board.client.get(VIRTUAL_MACHINES, keyOf(name));
const createVm = (name: string, runStrategy: RunStrategy, spec = kernelSpec()): Promise<VirtualMachine> =>
  board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: { runStrategy, template: { metadata: {}, spec } },
  });
/** The tiny guest with other arguments of its kernel, or without ACPI in its machine. */
function specWith(change: { grace: number; kernelArgs?: string; acpi?: boolean }): VirtualMachineInstanceSpec {
  const spec = kernelSpec({ terminationGracePeriodSeconds: change.grace });
  const { domain } = spec;
  if (change.kernelArgs !== undefined) domain.firmware!.kernelBoot!.kernelArgs = change.kernelArgs;
  if (change.acpi !== undefined) domain.features = { acpi: { enabled: change.acpi } };
  return spec;
}
const setStrategy = (name: string, runStrategy: string): Promise<VirtualMachine> =>
  board.client.patch(VIRTUAL_MACHINES, keyOf(name), { type: 'merge', body: { spec: { runStrategy } } });

/** What `virtctl` asks for: the requests as the subresources write them. */
const request = (name: string, requests: object[]): Promise<VirtualMachine> =>
  board.client.patch(
    VIRTUAL_MACHINES,
    keyOf(name),
    { type: 'merge', body: { status: { stateChangeRequests: requests } } },
    { subresource: 'status' },
  );

const shows = (name: string, printed: string): Promise<unknown> =>
  eventually(`${name} ${printed}`, async () => (await vmOf(name)).status?.printableStatus === printed);
const runs = (name: string, not = ''): Promise<VirtualMachineInstance> =>
  board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running' && vmi.metadata.uid !== not);
const remove = async (name: string): Promise<void> => {
  await board.client.delete(VIRTUAL_MACHINES, keyOf(name));
  await eventually(`${name} gone`, async () => (await vmOf(name).catch(() => undefined)) === undefined);
};
const podOf = async (vmi: VirtualMachineInstance): Promise<Pod> => {
  const pod = (await board.pods()).find((p) => p.metadata.labels?.['kubevirt.io/created-by'] === vmi.metadata.uid);
  assert.ok(pod);
  return pod;
};
/** Logs in on the serial console and types a line. */
async function inConsole(name: string, line: string): Promise<void> {
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  await seen.has('login:');
  socket.send(new TextEncoder().encode('root\n'));
  await seen.has(':~# ');
  socket.send(new TextEncoder().encode(`${line}\n`));
  await seen.has(line);
}
const isReady = (object: { status?: { conditions?: readonly { type: string; status: string }[] } }): boolean =>
  object.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false;

// S-125: At most 5 writes to a VMI between its creation and Running and Ready.
test('from creation to Running and Ready a VMI is written five times at most', async () => {
  const phases: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const event of board.client.watch(VIRTUAL_MACHINE_INSTANCES, {
      namespace: NAMESPACE,
      signal: stop.signal,
    }))
      if (event.type === 'MODIFIED') phases.push(event.object.status?.phase ?? '');
  })().catch(() => {});
  await createVm('writes', 'Always');
  await board.until('writes', 'ready', isReady);
  const written = phases.length;
  stop.abort();
  await watching;
  assert.ok(written <= 5, `${written} writes: ${phases.join(', ')}`);
  await setStrategy('writes', 'Halted');
});

// S-141
test('a restart of a Manual VM brings another guest; with no grace the old one goes at once', async () => {
  // Ten minutes of grace, and a guest that hears no power button: only the Pod's own grace can make this swift.
  await createVm('manual', 'Manual', specWith({ grace: 600, kernelArgs: 'console=ttyS0 acpi=off' }));
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

test('a guest without ACPI is not waited for, and counts as shut down', async () => {
  await createVm('deaf', 'Manual', specWith({ grace: 600, kernelArgs: 'console=ttyS0 acpi=off', acpi: false }));
  await request('deaf', [{ action: 'Start' }]);
  const vmi = await runs('deaf');
  const phases: (string | undefined)[] = [];
  await request('deaf', [{ action: 'Stop', uid: vmi.metadata.uid }]);
  await eventually('gone', async () => {
    const now = await board.vmi('deaf').catch(() => undefined);
    phases.push(now?.status?.phase);
    return now === undefined;
  });
  assert.ok(!phases.includes('Failed'), phases.join());
  await remove('deaf');
});

// S-143: A paused guest is not ready, nor is its Pod.
test('a paused guest is not ready, nor is its Pod', async () => {
  await createVm('paused', 'Always', kernelSpec({ terminationGracePeriodSeconds: 3 }));
  const vmi = await runs('paused');
  await board.until('paused', 'ready', isReady);
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

// S-070: A guest whose image was missing starts once the image is there.
test('an image that comes late ends the trouble, and is reported no more', async () => {
  await createVm('late', 'Always', {
    terminationGracePeriodSeconds: 0,
    domain: { memory: { guest: '128Mi' }, devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] } },
    volumes: [{ name: 'root', containerDisk: { image: 'localhost/late' } }],
  });
  await shows('late', 'ErrImagePull');
  const guest = await ensureGuest();
  await importImage(board.images, 'late', guest.disk, { signal: AbortSignal.timeout(90_000) });
  const vmi = await board.until('late', 'ready', isReady);
  assert.equal(
    vmi.status?.conditions?.find((c) => c.type === 'Synchronized'),
    undefined,
  );
  await remove('late');
});

// S-141: There are never two guests of one machine, however its strategy is turned, and the last word holds.
test('Halted and Always six times over: never two guests, and the last word holds', async () => {
  await createVm('flip', 'Always', kernelSpec({ terminationGracePeriodSeconds: 0 }));
  const seen = new Map<string, ProcessIdentity>();
  const look = async (): Promise<void> => {
    const vmi = await board.vmi('flip').catch(() => undefined);
    const record = vmi && (await board.record(vmi).catch(() => undefined));
    if (record?.process) seen.set(record.vmiUid, record.process);
    const alive = await Promise.all([...seen.values()].map((identity) => isRunning(identity)));
    assert.ok(alive.filter(Boolean).length <= 1, 'two guests of one VM');
  };
  for (let round = 0; round < 6; round++) {
    await setStrategy('flip', 'Halted');
    await look();
    await setStrategy('flip', 'Always');
    await look();
  }
  await eventually('runs', async () => {
    await look();
    const { status } = await vmOf('flip');
    return status?.printableStatus === 'Running' && status.ready === true;
  });
  await remove('flip');
});

// S-142: A guest that powers itself off stays off under Manual and RerunOnFailure.
test('a guest that powers off: Once leaves it, RerunOnFailure takes it away and stays off', async () => {
  await Promise.all([createVm('off-rerun', 'RerunOnFailure'), createVm('off-once', 'Once')]);
  const names = ['off-rerun', 'off-once'];
  for (const name of names) {
    await runs(name);
    await inConsole(name, 'poweroff');
  }
  await Promise.all(names.map((name) => shows(name, 'Stopped')));
  await eventually('rerun', async () => (await vmOf('off-rerun')).status?.created === undefined);
  assert.equal((await board.vmi('off-once')).status?.phase, 'Succeeded');
  await Promise.all(names.map(remove));
});

// S-396: With `rebootPolicy: Terminate` a reboot of any kind ends the instance as Succeeded; what follows is the run
//   strategy's.
test('rebootPolicy Terminate: a reboot ends the instance, asked for in the guest or from outside', async () => {
  const spec = (): VirtualMachineInstanceSpec => {
    const kernel = kernelSpec();
    return { ...kernel, domain: { ...kernel.domain, rebootPolicy: 'Terminate' } };
  };
  await createVm('term-once', 'Once', spec());
  const once = await runs('term-once');
  await inConsole('term-once', 'reboot -f');
  const ended = await board.until('term-once', 'ended', ({ status }) => status?.phase === 'Succeeded');
  assert.equal(ended.metadata.uid, once.metadata.uid);
  await shows('term-once', 'Stopped');
  await remove('term-once');

  await createVm('term-always', 'Always', spec());
  const first = await runs('term-always');
  // Where it listens to its power button.
  await inConsole('term-always', 'true');
  assert.equal(await board.put('term-always/softreboot'), 200);
  const second = await runs('term-always', first.metadata.uid);
  // The machine itself is reset: a reboot like any other.
  assert.equal(await board.put('term-always/reset'), 200);
  await runs('term-always', second.metadata.uid);
  await remove('term-always');
});

// S-068: A guest that shut down while no agent watched is Succeeded.
// S-142
test('a guest that shut down while no agent watched is Succeeded, and stays off under Manual', async () => {
  await createVm('alone', 'Manual');
  await request('alone', [{ action: 'Start' }]);
  const vmi = await runs('alone');
  const address = hostAddressOf(vmi.status?.interfaces?.[0]?.ipAddress ?? '');
  await inConsole('alone', '(sleep 2; poweroff) &');
  await board.restartAgent(() =>
    eventually('the guest is down', async () => {
      const answer = await fetch(`http://${address}:${usualHostPort(8080)}/`, {
        signal: AbortSignal.timeout(500),
      }).catch(() => undefined);
      return answer === undefined;
    }),
  );
  const ended = await board.until('alone', 'ended', (v) => ['Succeeded', 'Failed'].includes(v.status?.phase ?? ''));
  assert.equal(ended.status?.phase, 'Succeeded');
  await shows('alone', 'Stopped');
  await remove('alone');
});
