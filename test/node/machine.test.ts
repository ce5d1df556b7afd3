import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CONFIG_MAPS, EVENTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import {
  FORWARDED_PORTS_ANNOTATION,
  HOST_PORTS_ANNOTATION,
  type PublishedPort,
  usualHostPort,
} from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { claimAddress } from '../../packages/node-agent/src/network/address-pool.ts';
import { runsGuestCode } from '../../packages/node-agent/src/qemu/kvm-probe.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard({ agent: { allowsHostPorts: true } });
});
after(() => board.close());

const isRunningPhase = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';
const remove = (name: string): Promise<void> =>
  board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Logs in on the console and runs one command; returns its output. */
async function inGuest(name: string, command: string): Promise<string> {
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  await seen.has('login:');
  socket.send(bytes('root\n'));
  await seen.has(':~# ');
  const mark = `end-${systemClock.monotonic()}`;
  socket.send(bytes(`${command}; echo ${mark.replace('-', "-''")}\n`));
  await seen.has(mark);
  const text = seen.text();
  socket.send(bytes('exit\n'));
  socket.close();
  return text;
}

// S-065: Acceleration is probed by running guest code under a time limit.
// S-353: A host whose KVM runs no guest, or only interprets one, is distinguished from one that has KVM before a guest
//   is started on it.
test('the probe runs guest code under TCG, and says so only when it did', async () => {
  const directory = join(board.directory, 'probe');
  await mkdir(directory);
  assert.equal(
    (await runsGuestCode('qemu-system-x86_64', 'tcg', { directory, signal: NEVER, limitMs: 10_000 })).works,
    true,
  );
  assert.equal((await runsGuestCode('false', 'tcg', { directory, signal: NEVER })).works, false);
});

// S-071: Volumes: containerDisk, kernelBoot, emptyDisk, cloudInitNoCloud inline, configMap, on every bus.
test('disks on every bus, cloud-init, a ConfigMap, a guest agent and a soft reboot', async () => {
  await board.client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'settings', namespace: NAMESPACE },
    data: { 'app.conf': 'colour=blue' },
  });
  await board.createVmi('disks', {
    hostname: 'cloudy',
    terminationGracePeriodSeconds: 0,
    domain: {
      devices: {
        disks: [
          { name: 'root', disk: { bus: 'virtio' } },
          { name: 'seed', cdrom: { bus: 'sata' } },
          { name: 'scratch', disk: { bus: 'scsi' }, serial: 'a.b+c', cache: 'none' },
          { name: 'plain', disk: { bus: 'sata' } },
          { name: 'config', disk: { bus: 'virtio' } },
        ],
      },
      memory: { guest: '160Mi' },
    },
    volumes: [
      { name: 'root', containerDisk: { image: 'localhost/tiny' } },
      { name: 'seed', cloudInitNoCloud: { userData: '#!/bin/sh\necho "from user data" > /dev/console\n' } },
      { name: 'scratch', emptyDisk: { capacity: '64Mi' } },
      { name: 'plain', emptyDisk: { capacity: '32Mi' } },
      { name: 'config', configMap: { name: 'settings', volumeLabel: 'CFG' } },
    ],
  });
  const vmi = await board.until('disks', 'running', isRunningPhase);
  assert.deepEqual(
    vmi.status?.volumeStatus?.map((v) => [v.name, v.target]),
    [
      ['config', 'vdb'],
      ['plain', 'sdc'],
      ['root', 'vda'],
      ['scratch', 'sdb'],
      ['seed', 'sda'],
    ],
  );
  const console = collect(await board.connect('disks/console?backlog=true'));
  await console.has('from user data');
  await console.has('cloudy login:');
  await board.until(
    'disks',
    'agent',
    (v) => v.status?.conditions?.some((c) => c.type === 'AgentConnected' && c.status === 'True') ?? false,
  );
  const output = await inGuest(
    'disks',
    'cat /proc/partitions; mkdir /m; mount -t iso9660 /dev/vdb /m; cat /m/app.conf',
  );
  assert.match(output, /colour=blue/);
  for (const size of [65536, 32768]) assert.match(output, new RegExp(`\\b${size}\\b`));

  const { process: identity } = await board.record(vmi);
  assert.equal(await board.put('disks/softreboot'), 200);
  await eventually('second banner', () => (console.text().match(/Coracle tiny guest/g) ?? []).length === 2);
  assert.ok(identity && (await isRunning(identity)));
  await remove('disks');
  await eventually('gone', async () => !(await isRunning(identity!)));
});

// S-074: A port already taken is an event and a condition, not a crash.
// S-380: A guest takes no port of the host that a program would want by number, with root or without; its Pod says
//   where each port is.
test('a guest takes no port of the host by number, but those asked for; it gives them back to who wants them', async () => {
  /** Listens on all addresses of one family, as a service of the host does; undefined when it cannot. */
  const serve = (port: number, host: '0.0.0.0' | '::'): Promise<Server | undefined> =>
    new Promise((done) => {
      const server = createServer();
      server.once('error', () => done(undefined));
      server.listen({ port, host, ipv6Only: host === '::' }, () => done(server));
    });
  const close = (server: Server | undefined): Promise<void> =>
    new Promise((done) => (server ? server.close(() => done()) : done()));
  const isTakenFor = (port: number) => async (): Promise<boolean> => {
    const server = await serve(port, '0.0.0.0');
    await close(server);
    return server === undefined;
  };
  const isFree = (port: number) => async (): Promise<boolean> => !(await isTakenFor(port)());
  const created = await board.createVmi('ports', {
    ...kernelSpec({ terminationGracePeriodSeconds: 0 }),
    startStrategy: 'Paused',
  });
  const address = await claimAddress(join(board.directory, 'node/addresses'), created.metadata.uid ?? '');
  // What it would take first is another's: it takes the next.
  const other = createServer();
  await new Promise<void>((done, fail) => other.once('error', fail).listen(usualHostPort(8080), address, done));
  const vmi = await board.until('ports', 'running', isRunningPhase);
  // startStrategy Paused: it waits for an unpause.
  assert.ok(vmi.status?.conditions?.some((c) => c.type === 'Paused'));
  assert.ok(!vmi.status?.conditions?.some((c) => c.type === 'PortsForwarded'));
  const published = async (): Promise<PublishedPort[]> => {
    const pod = (await board.pods()).find((one) => one.metadata.labels?.['vmi.kubevirt.io/id'] === 'ports');
    return JSON.parse(pod?.metadata.annotations?.[FORWARDED_PORTS_ANNOTATION] ?? '[]') as PublishedPort[];
  };
  await eventually('published', async () => (await published()).length === 1);
  const [where] = await published();
  assert.deepEqual([where?.containerPort, where?.protocol, where?.hostIP], [8080, 'TCP', address]);
  assert.ok(where!.hostPort > 32_000 && where!.hostPort !== usualHostPort(8080));
  await close(other);
  assert.ok(await isFree(8080)(), 'the host has it');

  const ask = (text: string | null): Promise<unknown> =>
    board.client.patch(
      VIRTUAL_MACHINE_INSTANCES,
      { namespace: NAMESPACE, name: 'ports' },
      { type: 'merge', body: { metadata: { annotations: { [HOST_PORTS_ANNOTATION]: text } } } },
    );
  await ask('8080');
  await eventually('the guest has it', isTakenFor(8080));
  // A service that starts now gets it for IPv6 alone; when it tries again, it gets it all.
  const half = await serve(8080, '::');
  await eventually('the guest gives it back', isFree(8080));
  await board.until('ports', 'reported', ({ status }) =>
    (status?.conditions ?? []).some(
      ({ type, message }) => type === 'PortsForwarded' && /wanted by another/.test(message ?? ''),
    ),
  );
  await eventually('event', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.some((e) => e.reason === 'PortNotForwarded'),
  );
  await close(half);
  await eventually('the guest has it again', isTakenFor(8080));
  await ask(null);
  await eventually('nobody asks for it any more', isFree(8080));
  assert.equal(await board.put('ports/unpause'), 200);
  await remove('ports');
  await eventually('gone', async () => (await board.vmi('ports').catch(() => undefined)) === undefined);
});
