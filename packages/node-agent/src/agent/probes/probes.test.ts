import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { GuestProbe, VirtualMachineInstance } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { parseStates } from '../../network/forwarder.ts';
import type { AskGuestAgent } from '../../qmp/guest-agent.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { askGuest } from './ask-guest.ts';
import { keepProbes } from './keep-probes.ts';

const never = new AbortController().signal;

const instance = (spec: { readinessProbe?: GuestProbe; livenessProbe?: GuestProbe } = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'vm', namespace: 'default' },
  spec: {
    domain: { devices: { interfaces: [{ name: 'default', masquerade: {}, ports: [{ name: 'web', port: 80 }] }] } },
    ...spec,
  },
});

/** A guest whose agent answers by the table, and whose every port is `port` of this host, in the given state. */
function guestOf({
  answers = {},
  port = 1,
  states = [],
  agentConnected = true,
}: {
  answers?: Record<string, unknown>;
  port?: number;
  states?: readonly string[];
  agentConnected?: boolean;
}): Guest {
  const ask: AskGuestAgent = async (command) => {
    const answer = answers[command];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return partly<Guest>({
    signal: never,
    state: { connected: true, runState: 'running', agentConnected },
    agent: { converse: (talk) => talk(ask) },
    forwarder: { endpoint: async () => ({ host: '127.0.0.1', port }), states: async () => states },
  });
}

const asked = (probe: GuestProbe, guest: Guest, timeoutMs = 400, vmi = instance()) =>
  askGuest(probe, { guest, vmi, address: '127.64.0.1', clock: systemClock, timeoutMs, signal: never });

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return (server.address() as AddressInfo).port;
}

// S-1265: A probe by HTTP succeeds with 200 to 399 and fails with what the guest answered, or with why it did not, in kubelet's words.
test('httpGet: the status decides, headers and host are those of the probe', async () => {
  const seen: (string | undefined)[] = [];
  const server = createHttpServer((request, response) => {
    seen.push(request.headers.host, String(request.headers['x-probe'] ?? ''));
    if (request.url === '/silent') return;
    response.writeHead(Number(request.url?.slice(1)), { location: 'http://elsewhere.example/' }).end();
  });
  const guest = guestOf({ port: await listening(server) });
  const path = (text: string): GuestProbe => ({ httpGet: { port: 'web', path: text } });
  for (const status of [200, 204, 302, 399])
    assert.deepEqual(await asked(path(`/${status}`), guest), { type: 'success' });
  for (const status of [404, 500])
    assert.deepEqual(await asked(path(`/${status}`), guest), {
      type: 'failure',
      output: `HTTP probe failed with statuscode: ${status}`,
    });
  assert.deepEqual(seen.slice(0, 2), ['100.64.0.1:80', '']);
  const httpHeaders = [
    { name: 'Host', value: 'example.org' },
    { name: 'X-Probe', value: 'yes' },
  ];
  await asked({ httpGet: { port: 80, path: '200', httpHeaders } }, guest);
  assert.deepEqual(seen.slice(-2), ['example.org', 'yes']);
  assert.deepEqual(await asked(path('/silent'), guest), {
    type: 'failure',
    output:
      'Get "http://100.64.0.1:80/silent": context deadline exceeded (Client.Timeout exceeded while awaiting headers)',
  });
  assert.deepEqual(await asked({ httpGet: { port: 'ssh' } }, guest), {
    type: 'errored',
    message: 'invalid port "ssh": no port has this name',
  });
  server.closeAllConnections();
  server.close();
});

// S-1266: A probe by TCP asks QEMU whether the guest has taken the connection: one to a closed port, or to a guest that does not answer, fails.
test('tcpSocket: not the forwarder but the guest has to take the connection', async () => {
  const open = createServer(() => {});
  const closing = createServer((socket) => socket.destroy());
  const [openPort, closingPort] = [await listening(open), await listening(closing)];
  const probe: GuestProbe = { tcpSocket: { port: 22 } };
  assert.deepEqual(await asked(probe, guestOf({ port: openPort, states: ['ESTABLISHED'] })), { type: 'success' });
  const failures = [
    [openPort, ['ESTABLISHED', 'SYN_SENT'], 'dial tcp 100.64.0.1:22: i/o timeout'],
    [openPort, [], 'dial tcp 100.64.0.1:22: i/o timeout'],
    [closingPort, [], 'dial tcp 100.64.0.1:22: connect: connection refused'],
  ] as const;
  for (const [port, states, output] of failures)
    assert.deepEqual(await asked(probe, guestOf({ port, states })), { type: 'failure', output });
  const greeting = createServer((socket) => void socket.write('SSH-2.0-x\r\n'));
  assert.deepEqual(await asked(probe, guestOf({ port: await listening(greeting), states: [] })), { type: 'success' });
  for (const server of [open, closing, greeting]) server.close();
});

test('parseStates(): what QEMU says of the connections that came in for a port', () => {
  const text = [
    'Hub -1 (net-0):',
    '  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ',
    '  TCP[ESTABLISHED]   28      127.64.0.1 40022       10.0.2.2    22     0     0',
    '  TCP[SYN_SENT]      29      127.64.0.1 40022       10.0.2.2    22     0     0',
    '  TCP[ESTABLISHED]   30      127.64.0.1 40080       10.0.2.2    80     0     0',
    '  TCP[ESTABLISHED]   31        10.0.2.2 51000      192.0.2.1    22     0     0',
    '  TCP[HOST_FORWARD]  12      127.64.0.1 40022       10.0.2.2    22     0     0',
  ].join('\r\n');
  assert.deepEqual(parseStates(text, '127.64.0.1', 22), ['ESTABLISHED', 'SYN_SENT']);
  assert.deepEqual(parseStates(text, '127.64.0.2', 22), []);
});

// S-1522: While an instance carries the annotation kubevirt.io/pause-guest-agent-probes: "true" its probes by guestAgentPing succeed, whether the agent answers or not; one that fails is an event GuestAgentPingFailed of the instance.
// S-1267: A probe by command runs it in the guest without a shell, by the guest agent: its exit code decides, its output is the reason of a failure.
test('exec and guestAgentPing: by the agent of the guest', async () => {
  const exec: GuestProbe = { exec: { command: ['cat', '/tmp/healthy'] } };
  const ended = (exitcode: number, text: string) => ({
    'guest-exec': { pid: 5 },
    'guest-exec-status': { exited: true, exitcode, 'err-data': Buffer.from(text).toString('base64') },
  });
  assert.deepEqual(await asked(exec, guestOf({ answers: ended(0, 'fine') })), { type: 'success' });
  assert.deepEqual(await asked(exec, guestOf({ answers: ended(1, 'cat: no such file\n') })), {
    type: 'failure',
    output: 'cat: no such file',
  });
  assert.deepEqual(await asked(exec, guestOf({ answers: ended(3, '') })), {
    type: 'failure',
    output: 'command exited with 3',
  });
  const endless = { 'guest-exec': { pid: 5 }, 'guest-exec-status': { exited: false } };
  assert.deepEqual(await asked(exec, guestOf({ answers: endless })), {
    type: 'failure',
    output: 'command timed out after 0.4s',
  });
  const refusal = new QmpError('refused', 'guest-exec: Command guest-exec has been disabled');
  assert.deepEqual(await asked(exec, guestOf({ answers: { 'guest-exec': refusal } })), {
    type: 'failure',
    output: 'guest-exec: Command guest-exec has been disabled',
  });
  assert.deepEqual(
    await asked(exec, guestOf({ answers: { 'guest-exec': refusal, 'guest-fsfreeze-status': 'frozen' } })),
    { type: 'errored', message: 'the file systems of the guest are frozen' },
    'nothing is known of a guest that is frozen for a snapshot',
  );
  const ping: GuestProbe = { guestAgentPing: {} };
  assert.deepEqual(await asked(ping, guestOf({})), { type: 'success' });
  assert.deepEqual(await asked(ping, guestOf({ agentConnected: false })), {
    type: 'failure',
    output: 'QEMU guest agent is not connected',
  });
  const paused = { ...instance(), metadata: { annotations: { 'kubevirt.io/pause-guest-agent-probes': 'true' } } };
  assert.deepEqual(await asked(ping, guestOf({ agentConnected: false }), 400, paused), { type: 'success' });
  assert.equal((await asked(exec, guestOf({ agentConnected: false }), 400, paused)).type, 'failure');
});

/** A launcher whose guest answers pings, or does not, by the letters of `script`: one a second. */
function scene(spec: { readinessProbe?: GuestProbe; livenessProbe?: GuestProbe }, script: string, ready = false) {
  const clock = createFakeClock();
  const events: string[] = [];
  let wakes = 0;
  let asks = 0;
  const state = { connected: true, runState: 'running', agentConnected: true };
  const guest = partly<Guest>({
    signal: never,
    get state() {
      return { ...state, agentConnected: script[asks++ % script.length] === 's' } as Guest['state'];
    },
    agent: { converse: (talk) => talk(async () => ({})) },
  });
  const vmi = instance(spec);
  if (ready) vmi.status = { conditions: [{ type: 'Ready', status: 'True' }] };
  const launcher = partly<LauncherState>({
    environment: { clock, signal: never },
    log: silentLogger,
    vmi,
    record: { startedAt: clock.now(), address: '127.64.0.1' },
    isDeleting: () => false,
    changed: () => void wakes++,
    podEvent: (type, reason, message) => void events.push(`${type} ${reason} ${message}`),
    event: (type, reason, message) => void events.push(`of the VMI: ${type} ${reason} ${message}`),
  });
  const keeper = keepProbes(launcher, guest);
  keeper.look();
  return { keeper, clock, events, wakes: () => wakes, asks: () => asks, state };
}

// Compat KubeVirt's API, P1, yes: readiness and liveness probes of guests: httpGet, tcpSocket, exec, guestAgentPing
// S-1268: A guest with a readiness probe is not ready until the probe says so, after the delay of the probe; one that was ready stays so until its probe fails as often as its threshold says.
test('readiness: not before the probe says so', async () => {
  const readinessProbe = { guestAgentPing: {}, initialDelaySeconds: 5, periodSeconds: 1, failureThreshold: 2 };
  // The state is looked at three times for each outcome: before, while and after it is asked.
  const { keeper, clock, wakes } = scene({ readinessProbe }, 'sss');
  await clock.advance(4900);
  assert.deepEqual([keeper.isReady, keeper.isDead, wakes()], [false, false, 0]);
  await eventually('ready', async () => {
    await clock.advance(200);
    return keeper.isReady === true;
  });
  assert.equal(wakes(), 1);
  keeper.stop();
  assert.equal(scene({ livenessProbe: readinessProbe }, 's').keeper.isReady, undefined, 'nothing is asked for');
  const before = scene({ readinessProbe: { ...readinessProbe, initialDelaySeconds: 0 } }, 'f', true);
  assert.equal(before.keeper.isReady, true);
  await eventually('not ready', async () => {
    await before.clock.advance(1000);
    return before.keeper.isReady === false;
  });
  assert.equal(
    before.events.filter(
      (text) => text === 'Warning Unhealthy Readiness probe failed: QEMU guest agent is not connected',
    ).length >= 2,
    true,
    before.events.join(),
  );
  before.keeper.stop();
});

// S-1269: A guest is not asked while it is paused, moves or is saved: only a guest that runs can fail its probes.
test('liveness: fails a guest that runs, and no other', async () => {
  const livenessProbe = { guestAgentPing: {}, periodSeconds: 1 };
  const dead = scene({ livenessProbe }, 'f');
  await eventually('dead', async () => {
    await dead.clock.advance(1000);
    return dead.keeper.isDead;
  });
  assert.equal(dead.keeper.isReady, undefined);
  const reported = [
    'Warning Unhealthy Liveness probe failed: QEMU guest agent is not connected',
    'of the VMI: Warning GuestAgentPingFailed GuestAgentPing probe failed for VMI vm',
  ];
  assert.deepEqual([...new Set(dead.events)], reported);
  dead.keeper.stop();
  const paused = scene({ livenessProbe }, 'f');
  paused.state.runState = 'paused';
  await paused.clock.advance(60_000);
  assert.deepEqual([paused.keeper.isDead, paused.events], [false, []]);
  paused.keeper.stop();
});
