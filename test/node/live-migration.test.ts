import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../src/api/kinds/builtin/resource-types.ts';
import type { VirtualMachineInstance } from '../../src/api/kinds/kubevirt/kinds.ts';
import { usualHostPort } from '../../src/domain/machine/host-ports.ts';
import { collect, eventually, kernelSpec, NAMESPACE } from './board.ts';
import { holdLine } from './held-line.ts';
import { type Handed, heartbeat, httpPortOf, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard();
});
afterEach(() => board.endGuests());
after(() => board?.close());

const DISKS = {
  terminationGracePeriodSeconds: 5,
  domain: {
    devices: {
      disks: [
        { name: 'root', disk: { bus: 'virtio' } },
        { name: 'seed', disk: { bus: 'virtio' } },
        { name: 'scratch', disk: { bus: 'virtio' } },
      ],
      interfaces: [{ name: 'default', masquerade: {}, ports: [{ port: 8080 }] }],
    },
    memory: { guest: '128Mi' },
  },
  networks: [{ name: 'default', pod: {} }],
  volumes: [
    { name: 'root', containerDisk: { image: 'localhost/tiny' } },
    { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\nhostname: mover\n' } },
    { name: 'scratch', emptyDisk: { capacity: '64Mi' } },
  ],
};
/** So slow that there is time to do something in the middle. */
const SLOW = { bandwidthPerMigration: '4Mi' };

const running = (name: string) => board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');
const encoder = new TextEncoder();

/** Starts a guest that is reached by HTTP; resolves with its counter. */
async function startGuest(name: string): Promise<{ vmi: VirtualMachineInstance; beats: number }> {
  await board.createVmi(name, kernelSpec());
  const vmi = await running(name);
  return { vmi, beats: await heartbeat(vmi) };
}

const httpPort = async (name: string, node: string): Promise<number> =>
  httpPortOf(
    (await board.launchers(name)).find(({ spec, status }) => spec.nodeName === node && status?.phase === 'Running'),
  );

/** The migration is in the middle of its stream. */
const underWay = (name: string): Promise<unknown> =>
  board.until(name, 'under way', (vmi) => typeof vmi.status?.migrationState?.startTimestamp === 'string');

/** The guest stays: it never stopped, one QEMU is left and it is that of the source, and the failure is told. */
async function staysAt(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
  const vmi = await board.until(name, 'failed', ({ status }) => status?.migrationState?.failed === true);
  assert.ok(vmi.status?.migrationState?.endTimestamp);
  assert.equal(vmi.status?.nodeName, handed.source);
  assert.ok((await heartbeat(vmi, () => httpPort(name, handed.source))) >= before, 'another boot');
  await eventually('the QEMU of the target is gone', async () => (await board.qemus(vmi)).size === 1);
  assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.source]);
  assert.equal((await board.vmi(name)).status?.phase, 'Running');
  await eventually('the target pod has failed', async () =>
    (await board.launchers(name)).some(
      (pod) => pod.metadata.name === handed.targetPod && pod.status?.phase === 'Failed',
    ),
  );
  await eventually(
    'the record is an ordinary one',
    async () => (await board.record(handed.source, vmi))?.['migration'] === undefined,
  );
  return vmi;
}

/** The guest has moved: it never stopped, one QEMU is left and it is that of the target. */
async function movedTo(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
  const vmi = await board.until(
    name,
    'moved',
    ({ status }) => status?.nodeName === handed.target || status?.migrationState?.failed === true,
  );
  assert.equal(vmi.status?.migrationState?.failed, undefined, vmi.status?.migrationState?.failureReason ?? '');
  assert.ok((await heartbeat(vmi)) >= before, 'another boot');
  await eventually('the QEMU of the source is gone', async () => (await board.qemus(vmi)).size === 1);
  assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.target]);
  await eventually('the source pod is completed', async () =>
    (await board.launchers(name)).some(
      (pod) => pod.spec.nodeName === handed.source && pod.status?.phase === 'Succeeded',
    ),
  );
  await eventually(
    'the files of the source are gone',
    async () => (await board.record(handed.source, vmi)) === undefined,
  );
  assert.equal((await board.vmi(name)).status?.phase, 'Running');
  return board.until(name, 'the label', ({ metadata }) => metadata.labels?.['kubevirt.io/nodeName'] === handed.target);
}

async function clean(name: string): Promise<void> {
  for (const pod of await board.launchers(name))
    if (pod.status?.phase !== 'Running') await board.removePod(pod.metadata.name ?? '');
}

test('a guest moves with its disks and its address and does not notice; and back again', {
  timeout: 240_000,
}, async () => {
  await board.createVmi('mover', DISKS);
  const vmi = await running('mover');
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.equal(migratable?.status, 'True', JSON.stringify(migratable));
  assert.equal(vmi.status?.migrationMethod, 'BlockMigration');
  const beats = await heartbeat(vmi);
  const console = await board.console(vmi);
  const line = collect(console);
  let closed = false;
  console.onClose(() => {
    closed = true;
  });
  console.send(encoder.encode('\n'));
  await line.has('login:');
  console.send(encoder.encode('root\n'));
  await line.has('# ');
  console.send(encoder.encode('echo written-before > /dev/vdc; sync; echo wr""ote; dd if=/dev/vdb bs=1M | md5sum\n'));
  await line.has('wrote');
  await line.has(/[0-9a-f]{32}/);
  const seed = /[0-9a-f]{32}/.exec(line.text())?.[0];

  const there = await board.hand('mover');
  const moved = await movedTo('mover', there, beats);
  const state = moved.status?.migrationState;
  assert.equal(state?.completed, true);
  assert.ok(state?.startTimestamp && state.endTimestamp && state.targetNodeDomainReadyTimestamp);
  assert.equal(state.mode, 'PreCopy');
  assert.equal(moved.status?.interfaces?.[0]?.ipAddress, vmi.status?.interfaces?.[0]?.ipAddress);
  await eventually('the console of the source is closed', () => closed);

  const next = await board.console(moved);
  const after = collect(next);
  await after.has('wrote');
  next.send(encoder.encode('head -c 14 /dev/vdc; dd if=/dev/vdb bs=1M | md5sum; hostname\n'));
  await after.has(/written-before[\s\S]*mover/);
  await eventually('the seed is the same to the bit', () => after.text().split(seed ?? '?').length >= 3);
  next.send(encoder.encode('echo written-after > /dev/vdc; sync; echo wr""ote-again\n'));
  await after.has('wrote-again');

  await clean('mover');
  const back = await board.hand('mover');
  assert.equal(back.target, there.source);
  const returned = await movedTo('mover', back, beats);
  const last = await board.console(returned);
  const end = collect(last);
  last.send(encoder.encode('head -c 13 /dev/vdc\n'));
  await end.has(/head -c 13[^\n]*\n[^\n]*written-after/);
});

test('disks that the guest cannot write stay out of the way: CD-ROMs of images, read-only and not', {
  timeout: 240_000,
}, async () => {
  const image = { containerDisk: { image: 'localhost/tiny' } };
  const spec = kernelSpec({
    volumes: [
      { name: 'cd', ...image },
      { name: 'scratch-cd', ...image },
      { name: 'fixed', ...image },
      { name: 'blank', emptyDisk: { capacity: '1Mi' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\nhostname: reader\n' } },
    ],
  });
  const domain = spec['domain'] as { devices: object };
  const disks = [
    { name: 'cd', cdrom: { bus: 'sata' } },
    { name: 'scratch-cd', cdrom: { bus: 'scsi', readonly: false } },
    { name: 'fixed', disk: { bus: 'virtio', readonly: true } },
    { name: 'blank', cdrom: { bus: 'sata' } },
    { name: 'seed', cdrom: { bus: 'sata' } },
  ];
  await board.createVmi('reader', { ...spec, domain: { ...domain, devices: { ...domain.devices, disks } } });
  const vmi = await running('reader');
  const migratable = vmi.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.equal(migratable?.status, 'True', JSON.stringify(migratable));
  const beats = await heartbeat(vmi);
  await movedTo('reader', await board.hand('reader'), beats);
  await clean('reader');
  await movedTo('reader', await board.hand('reader'), beats);
});

test('a disk on a shared claim stays where it is, and a claim of one node keeps its guest', {
  timeout: 240_000,
}, async () => {
  for (const [name, mode] of [
    ['shared', 'ReadWriteMany'],
    ['local', 'ReadWriteOnce'],
  ] as const)
    await board.client.create(PERSISTENT_VOLUME_CLAIMS, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: NAMESPACE },
      spec: { accessModes: [mode], resources: { requests: { storage: '16Mi' } } },
    });
  const withClaim = (claimName: string) => {
    const spec = kernelSpec({ volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] });
    const domain = spec['domain'] as { devices: object };
    const disks = [{ name: 'data', disk: { bus: 'virtio' } }];
    return { ...spec, domain: { ...domain, devices: { ...domain.devices, disks } } };
  };
  await board.createVmi('sharing', withClaim('shared'));
  await board.createVmi('staying', withClaim('local'));
  const vmi = await running('sharing');
  const migratable = await board.until('sharing', 'migratable', ({ status }) =>
    (status?.conditions ?? []).some(({ type, status: is }) => type === 'LiveMigratable' && is === 'True'),
  );
  assert.equal(migratable.status?.migrationMethod, 'LiveMigration');
  const beats = await heartbeat(vmi);
  const line = await board.console(vmi);
  const text = collect(line);
  line.send(encoder.encode('\n'));
  await text.has('login:');
  line.send(encoder.encode('root\n'));
  await text.has('# ');
  line.send(encoder.encode('echo shared-before > /dev/vda; sync; echo wr""ote\n'));
  await text.has('wrote');
  const moved = await movedTo('sharing', await board.hand('sharing'), beats);
  const next = await board.console(moved);
  const after = collect(next);
  next.send(
    encoder.encode(
      'echo 3 > /proc/sys/vm/drop_caches; head -c 13 /dev/vda; echo shared-after > /dev/vda; sync; echo do""ne\n',
    ),
  );
  await after.has(/shared-before[\s\S]*done/);

  const stays = await board.until('staying', 'judged', ({ status }) =>
    (status?.conditions ?? []).some(({ message }) => message?.includes('is not shared')),
  );
  const condition = stays.status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  assert.deepEqual([condition?.status, condition?.reason], ['False', 'DisksNotLiveMigratable']);
});

test('a migration that is aborted leaves the guest where it is', { timeout: 240_000 }, async () => {
  const { beats } = await startGuest('aborted');
  const handed = await board.hand('aborted', { configuration: SLOW });
  await underWay('aborted');
  await board.patchStatus('aborted', { migrationState: { abortRequested: true } });
  const vmi = await staysAt('aborted', handed, beats);
  assert.equal(vmi.status?.migrationState?.abortStatus, 'Succeeded');
  assert.equal(vmi.status?.migrationState?.failureReason, 'Live migration aborted by request');
});

test('one that takes too long is given up', { timeout: 240_000 }, async () => {
  const { beats } = await startGuest('late');
  const handed = await board.hand('late', { configuration: { ...SLOW, completionTimeoutPerGiB: 1 } });
  const vmi = await staysAt('late', handed, beats);
  assert.match(vmi.status?.migrationState?.failureReason ?? '', /^Live migration is not completed after/);
});

test('what QEMU has sent is not cut off on its way: the guest moves over a line that stands still at the end', {
  timeout: 240_000,
}, async (t) => {
  // The QMP connection of the guest that moves must be seen as it is made.
  const line = holdLine(1000);
  t.after(() => line.end());
  const { beats } = await startGuest('held');
  // So little is left for the end that QEMU is rid of it at once; not so little that a slow host never comes to it.
  const handed = await board.hand('held', { configuration: { bandwidthPerMigration: '8Mi', maxDowntimeMs: 20 } });
  await movedTo('held', handed, beats);
  assert.equal(line.times, 1);
});

test('the target dies in the middle: the guest stays, and moves at the next try', { timeout: 240_000 }, async () => {
  const { beats } = await startGuest('target-dies');
  const handed = await board.hand('target-dies', { configuration: SLOW });
  await underWay('target-dies');
  const pid = (await board.qemus(await board.vmi('target-dies'))).get(handed.target);
  process.kill(pid!, 'SIGKILL');
  await staysAt('target-dies', handed, beats);
  await clean('target-dies');
  await movedTo('target-dies', await board.hand('target-dies'), beats);
});

test('the agent of the source is restarted in the middle: the guest stays', { timeout: 240_000 }, async () => {
  const { beats } = await startGuest('source-agent');
  const handed = await board.hand('source-agent', { configuration: SLOW });
  await underWay('source-agent');
  await board.stopAgent(handed.source);
  await board.startAgent(handed.source);
  const vmi = await staysAt('source-agent', handed, beats);
  assert.equal(vmi.status?.migrationState?.failureReason, 'the agent of the source node was restarted');
  await clean('source-agent');
  await movedTo('source-agent', await board.hand('source-agent'), beats);
});

test('the agent of the target is restarted in the middle: the guest stays', { timeout: 240_000 }, async () => {
  const { beats } = await startGuest('target-agent');
  const handed = await board.hand('target-agent', { configuration: SLOW });
  await underWay('target-agent');
  await board.stopAgent(handed.target);
  await board.startAgent(handed.target);
  await staysAt('target-agent', handed, beats);
});

test('the API is gone when all is sent: both wait, through a restart of the source; then the target runs', {
  timeout: 240_000,
}, async () => {
  const { vmi, beats } = await startGuest('api-down');
  board.gate = async () => {
    throw new Error('the API cannot be reached');
  };
  const handed = await board.hand('api-down');
  const phaseOf = async (node: string): Promise<string | undefined> =>
    ((await board.record(node, vmi))?.['migration'] as { phase?: string } | undefined)?.phase;
  await eventually('the target tries', async () => (await phaseOf(handed.target)) === 'handing-over');
  board.cut(handed.source, true);
  await board.stopAgent(handed.source);
  assert.equal(await phaseOf(handed.source), 'sent');
  const address = vmi.status?.interfaces?.[0]?.ipAddress;
  await assert.rejects(
    fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, { signal: AbortSignal.timeout(700) }),
    'somebody runs',
  );
  assert.equal((await board.qemus(vmi)).size, 2);
  board.cut(handed.source, false);
  board.gate = undefined;
  await board.startAgent(handed.source);
  await movedTo('api-down', handed, beats);
});

test('the target agent dies between the write that decides and the go: the next one lets the guest run', {
  timeout: 240_000,
}, async () => {
  const { vmi, beats } = await startGuest('written');
  let wrote = (): void => {};
  const written = new Promise<void>((resolve) => {
    wrote = resolve;
  });
  let target = '';
  board.gate = async (write) => {
    await write();
    // Done, but the answer is lost, and nobody can be asked.
    board.cut(target, true);
    wrote();
    throw new Error('the API cannot be reached');
  };
  target = board.nodes.find((node) => node !== vmi.status?.nodeName) ?? '';
  const handed = await board.hand('written');
  await written;
  await board.stopAgent(target);
  board.gate = undefined;
  board.cut(target, false);
  assert.equal((await board.vmi('written')).status?.nodeName, target);
  await board.startAgent(target);
  await movedTo('written', handed, beats);
});

test('the target dies, or its agent, when all is sent and before it takes over: the source takes the guest back', {
  timeout: 240_000,
}, async () => {
  const { vmi, beats } = await startGuest('taken-back');
  const handUntilItTries = async (): Promise<Handed> => {
    let reach = (): void => {};
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    board.gate = async () => {
      reach();
      throw new Error('the API cannot be reached');
    };
    const handed = await board.hand('taken-back');
    await reached;
    return handed;
  };
  const decided = async ({ source, target, uid }: Handed): Promise<void> => {
    const after = await board.until('taken-back', 'decided', ({ status }) => {
      const state = status?.migrationState;
      return (state?.migrationUid === uid && state.failed === true) || status?.nodeName === target;
    });
    assert.equal(after.status?.nodeName, source);
    board.gate = undefined;
  };
  const killed = await handUntilItTries();
  process.kill((await board.qemus(vmi)).get(killed.target)!, 'SIGKILL');
  await decided(killed);
  await staysAt('taken-back', killed, beats);
  await clean('taken-back');

  const silent = await handUntilItTries();
  await board.stopAgent(silent.target);
  await decided(silent);
  // The QEMU that nobody looks after has the ports of the address until its agent is back: the guest has others.
  await eventually('another port', async () => (await httpPort('taken-back', silent.source)) !== usualHostPort(8080));
  await heartbeat(await board.vmi('taken-back'), () => httpPort('taken-back', silent.source));
  await board.startAgent(silent.target);
  await staysAt('taken-back', silent, beats);
});
