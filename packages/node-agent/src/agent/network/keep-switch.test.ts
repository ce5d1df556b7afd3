import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { isRunning, type ProcessIdentity } from '../../../../runtime/src/process/identity.ts';
import { createFrameStream, noteFrame, noteOf, withLength } from '../../network/frame-stream.ts';
import { ipv4Of, makeFrame, numberOf, put16, TCP } from '../../network/ipv4-frame.ts';
import type { GuestHello, NetworkChange, NetworkPod } from '../../network/switch/switch-state.ts';
import { ACK, makeSegment, RST, SYN, segmentOf } from '../../network/switch/tcp-connection.ts';
import { endSwitch, keepSwitch } from './keep-switch.ts';

const HELLO: GuestHello = {
  type: 'guest',
  address: '100.64.0.1',
  inside: '10.0.2.2',
  gateway: '10.0.2.1',
  dns: '10.0.2.3',
  mac: '02:00:00:00:00:01',
};

/** A filter that notes which addresses it is to bring, and what its guest gets. */
async function filter(dataDir: string): Promise<{ socket: Socket; addresses: string[]; frames: Uint8Array[] }> {
  const addresses: string[] = [];
  const frames: Uint8Array[] = [];
  const socket = await eventually('a switch', async () => {
    const made = createConnection({ path: join(dataDir, 'network/guests.sock') });
    return new Promise<Socket | undefined>((resolve) => {
      made.once('connect', () => resolve(made));
      made.once('error', () => resolve(undefined));
    });
  });
  const stream = createFrameStream((frame): undefined => {
    const note = noteOf(frame) as { add?: string[] } | undefined;
    if (!note) frames.push(frame.slice());
    addresses.push(...(note?.add ?? []));
  });
  socket.on('data', (bytes: Buffer) => void stream.take(bytes));
  socket.on('error', () => {});
  socket.write(noteFrame(HELLO));
  return { socket, addresses, frames };
}

// S-1454: The switch of a node ends by itself when its guests and its agent have gone, also when they had cards on segments.
// S-1186: The switch of a node goes on while no agent is there, and one that ends is started again with all it has to know.
test('a switch that ends is started again, and one that runs goes on without its agent', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'coracle-switch-'));
  t.after(() => rm(dataDir, { recursive: true, force: true }));
  const identityOf = async (): Promise<ProcessIdentity> =>
    (JSON.parse(await readFile(join(dataDir, 'network/switch-process.json'), 'utf8')) as { identity: ProcessIdentity })
      .identity;
  const pidOf = async (): Promise<number> => (await identityOf()).pid;
  // The guest of this card has gone: nobody waits for the switch at its socket.
  const cards = { set: [{ socket: '../vms/gone/net-pod1.sock', segment: 'default/lan' }] };
  const whole = (pods: NetworkPod[]): NetworkChange => ({ node: 'n', whole: true, pods: { set: pods }, cards });
  const agent = (life: AbortController, pods: NetworkPod[]) => {
    const keeper = keepSwitch({
      dataDir,
      host: '127.0.0.1',
      whole: () => whole(pods),
      onListening: () => {},
      onPortProblem: () => {},
      clock: systemClock,
      log: silentLogger,
      signal: life.signal,
    });
    keeper.start();
    return keeper;
  };
  const first = new AbortController();
  const pods = [{ address: '100.64.0.1', nodes: ['n'] }];
  const keeper = agent(first, pods);
  try {
    const one = await filter(dataDir);
    await eventually('its addresses', () => one.addresses.includes('100.64.0.1'));
    keeper.send({ node: 'n', pods: { set: [{ address: '100.64.0.3', nodes: ['n'] }] } });
    await eventually('what is new', () => one.addresses.includes('100.64.0.3'));
    const pid = await pidOf();
    process.kill(pid, 'SIGKILL');
    await eventually('another switch', async () => (await pidOf()) !== pid);
    const two = await filter(dataDir);
    await eventually('the addresses again', () => two.addresses.includes('100.64.0.1'));
    const now = await pidOf();

    first.abort();
    const three = await filter(dataDir);
    await eventually('the addresses without an agent', () => three.addresses.includes('100.64.0.1'));
    const second = new AbortController();
    agent(second, [...pods, { address: '100.64.0.2', nodes: ['n'] }]);
    await eventually('news of the next agent', () => three.addresses.includes('100.64.0.2'));
    assert.equal(await pidOf(), now);
    second.abort();
    for (const { socket } of [one, two, three]) socket.destroy();
    const left = await identityOf();
    await eventually('its end', async () => !(await isRunning(left)));
  } finally {
    first.abort();
    await endSwitch(dataDir, { clock: systemClock, signal: AbortSignal.timeout(5000) });
  }
});

// S-1674: A guest whose connection to a program of the node, as the server of exports, goes with the switch hears of it at once.
test('a switch that is ended resets the connections of guests to programs', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'coracle-switch-'));
  t.after(() => rm(dataDir, { recursive: true, force: true }));
  await mkdir(join(dataDir, 'network'));
  const server = createServer(() => {}).listen(join(dataDir, 'network/exports.sock'));
  const life = new AbortController();
  t.after(() => {
    life.abort();
    server.close();
  });
  const program = { address: '100.64.0.9', port: 8443 };
  const pods = [HELLO.address, program.address].map((address) => ({ address, nodes: ['n'] }));
  const guests = pods.map(({ address }) => ({ address, since: 1 }));
  const tables = { pods: { set: pods }, guests: { set: guests }, programs: { set: [program] } };
  keepSwitch({
    dataDir,
    host: '127.0.0.1',
    whole: () => ({ node: 'n', whole: true, ...tables }),
    onListening: () => {},
    onPortProblem: () => {},
    clock: systemClock,
    log: silentLogger,
    signal: life.signal,
  }).start();
  const { socket, frames } = await filter(dataDir);
  t.after(() => socket.destroy());
  const send = (flags: number, sequence: number, confirmed: number): void => {
    const segment = { sequence, confirmed, flags, window: 1000, options: new Uint8Array(), data: new Uint8Array() };
    const payload = makeSegment(segment);
    put16(payload, 0, 40_000);
    put16(payload, 2, program.port);
    const ends = { source: numberOf(HELLO.inside), destination: numberOf(program.address) };
    socket.write(withLength(makeFrame({ protocol: TCP, ...ends, payload })));
  };
  const heard = (flags: number) =>
    frames.map((frame) => segmentOf(frame, ipv4Of(frame)!)!).find((segment) => segment.flags === flags);
  const opened = await eventually('an answer', () => {
    send(SYN, 7000, 0);
    return heard(SYN | ACK);
  });
  send(ACK, 7001, opened.sequence + 1);
  life.abort();
  await endSwitch(dataDir, { clock: systemClock, signal: new AbortController().signal });
  const reset = await eventually('a reset', () => heard(RST | ACK));
  assert.deepEqual([reset.sequence, reset.confirmed], [opened.sequence + 1, 7001]);
});
