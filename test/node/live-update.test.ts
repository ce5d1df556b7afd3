/** Real guests that are given processors and memory while they run, and say so themselves. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { quantityToBytes } from '../../packages/apimachinery/src/quantity/quantity.ts';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { collect, kernelSpec, NAMESPACE } from './board.ts';
import { heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true });
});
after(() => board?.close());

const encoder = new TextEncoder();
const NAME = 'grower';

/** What the guest says of itself, on its console: processors, and mebibytes of memory. */
async function askGuest(vmi: VirtualMachineInstance): Promise<{ processors: number; mebibytes: number }> {
  const console = await board.console(vmi);
  const line = collect(console);
  try {
    const mark = `m${Math.floor(performance.now())}`;
    const reported = new RegExp(`${mark}=([0-9]+) ([0-9]+)`);
    console.send(encoder.encode(`\n`));
    console.send(encoder.encode(`echo ${mark}="$(nproc) $(awk '/MemTotal/{print int($2/1024)}' /proc/meminfo)"\n`));
    await line.has(reported);
    const [, processors, mebibytes] = reported.exec(line.text()) ?? [];
    return { processors: Number(processors), mebibytes: Number(mebibytes) };
  } finally {
    console.close();
  }
}
async function logIn(vmi: VirtualMachineInstance): Promise<void> {
  const console = await board.console(vmi);
  const line = collect(console);
  console.send(encoder.encode('\n'));
  await line.has('login:');
  console.send(encoder.encode('root\n'));
  await line.has('# ');
  console.close();
}
/** What the guest says once it has brought so many processors and so much memory into use. */
async function untilGuest(
  vmi: VirtualMachineInstance,
  wanted: { readonly processors: number; readonly mebibytes: number },
): Promise<{ processors: number; mebibytes: number }> {
  let reported = { processors: 0, mebibytes: 0 };
  await eventually(`the guest uses ${JSON.stringify(wanted)}`, async () => {
    reported = await askGuest(vmi);
    return reported.processors === wanted.processors && reported.mebibytes >= wanted.mebibytes;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(reported)}`);
  });
  return reported;
}
const change = (domain: object) =>
  board.client.patch(
    VIRTUAL_MACHINES,
    { namespace: NAMESPACE, name: NAME },
    { type: 'merge', body: { spec: { template: { spec: { domain } } } } },
  );
/** No change waits, and the guest has that many sockets and that much memory. */
const until = (sockets: number, memory: string): Promise<VirtualMachineInstance> =>
  board.until(
    NAME,
    `has ${sockets} sockets and ${memory}`,
    ({ status }) =>
      status?.currentCPUTopology?.sockets === sockets &&
      status.memory?.guestCurrent === memory &&
      !status.conditions?.some(({ type }) => type.startsWith('Hot')),
  );

// S-246
// S-282
test('a guest is given processors and memory where it is, then by a migration, gives memory back, and never stops', {
  timeout: 600_000,
}, async () => {
  const containerDisk = { image: 'localhost/tiny' };
  const spec = kernelSpec({
    volumes: [
      { name: 'root', containerDisk },
      { name: 'data', containerDisk },
    ],
  });
  spec.domain.memory = { guest: '1Gi' };
  // QEMU gives both as many queues as processors, and a guest moves only to as many as it has.
  spec.domain.devices.disks = [
    { name: 'root', disk: { bus: 'virtio' } },
    { name: 'data', disk: { bus: 'scsi' } },
  ];
  spec.domain.cpu = { sockets: 1 };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: NAME, namespace: NAMESPACE },
    spec: { runStrategy: 'Always', template: { spec } },
  } as unknown as VirtualMachine);
  await eventually('the instance is there', () =>
    board.vmi(NAME).then(
      () => true,
      () => false,
    ),
  );
  const vmi = await board.until(NAME, 'running', ({ status }) => status?.phase === 'Running');
  await logIn(vmi);
  const beats = await heartbeat(vmi);
  const first = await untilGuest(vmi, { processors: 1, mebibytes: 1 });
  const [pid] = (await board.qemus(vmi)).values();

  // On its node: the same QEMU, the same Pod.
  await change({ cpu: { sockets: 2 }, memory: { guest: '1536Mi' } });
  const grown = await until(2, '1536Mi');
  const second = await untilGuest(grown, { processors: 2, mebibytes: first.mebibytes + 480 });
  assert.deepEqual([...(await board.qemus(grown)).values()], [pid]);
  assert.equal((await board.launchers(NAME)).length, 1);

  // By a migration that the cluster makes, because it is configured to.
  await board.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate'] } } } },
  );
  await change({ cpu: { sockets: 3 }, memory: { guest: '2Gi' } });
  const moved = await until(3, '2Gi');
  assert.notEqual(moved.status?.nodeName, vmi.status?.nodeName);
  // Writes to memory that was plugged could be overlooked where QEMU emulates: the guest stands still meanwhile.
  const node = await board.client.get(NODES, { namespace: '', name: vmi.status?.nodeName ?? '' });
  const major = Number(/^qemu:\/\/(\d+)\./.exec(node.status?.nodeInfo?.containerRuntimeVersion ?? '')?.[1]);
  const mode = major < 10 ? 'Paused' : 'PreCopy';
  assert.equal(moved.status?.migrationState?.mode, mode);
  await untilGuest(moved, { processors: 3, mebibytes: second.mebibytes + 480 });

  // Memory that is not wanted any more is asked back, down to what the guest booted with: with the Pod as it is.
  await board.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { workloadUpdateStrategy: { workloadUpdateMethods: null } } } },
  );
  await change({ memory: { guest: '1Gi' } });
  await board.until(NAME, 'gives memory back', ({ status }) => {
    // A guest keeps what its kernel has put there for good: some megabytes of the gigabyte.
    const current = quantityToBytes(String(status?.memory?.guestCurrent ?? '2Gi'));
    const waits = status?.conditions?.some(({ type }) => type.startsWith('Hot'));
    return status?.memory?.guestRequested === '1Gi' && current < 1.25 * 1024 ** 3 && !waits;
  });
  assert.ok((await heartbeat(await board.vmi(NAME))) >= beats, 'another boot');
  assert.ok((await heartbeat(moved)) >= beats, 'another boot');
});
