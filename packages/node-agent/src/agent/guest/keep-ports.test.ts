import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST_PORTS_ANNOTATION } from '../../../../kubevirt/src/rules/machine/host-ports.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import type { Guest } from './guest.ts';
import { keepPorts } from './keep-ports.ts';

const settled = () => new Promise((next) => setImmediate(next));

/** A guest of one port, which is in use for so many looks. */
function scene(taken: number, why: 'in-use' | 'denied' = 'in-use', allowsHostPorts = true) {
  const port = { port: 8080, protocol: 'tcp', declared: true };
  const pauses: number[] = [];
  let due: (() => void) | undefined;
  let looks = 0;
  let changes = 0;
  const launcher = {
    environment: {
      signal: new AbortController().signal,
      nodeName: 'here',
      allowsHostPorts,
      clock: {
        schedule(ms: number, act: () => void) {
          pauses.push(ms);
          due = act;
          return () => {
            due = undefined;
          };
        },
      },
    },
    log: silentLogger,
    record: { plan: { interfaces: [{ ports: [port] }] }, portProblems: [] as string[] },
    vmi: { metadata: { annotations: {} as Record<string, string> } },
    event: (_: string, reason: string, message: string) => void events.push(`${reason}: ${message}`),
    changed: () => void changes++,
  };
  const events: string[] = [];
  const listeners = new Set<string>();
  let held: readonly unknown[] = [];
  const guest = {
    state: { connected: true },
    forwarder: {
      load: async () => {},
      published: () => [],
      byNumber: () => held,
      forward: async (ports: unknown[], byNumber: readonly unknown[]) => {
        assert.deepEqual(ports, [port]);
        held = byNumber;
        return looks++ < taken ? [{ port, declared: true, why, message: 'taken' }] : [];
      },
    },
  };
  const keeper = keepPorts(launcher as unknown as LauncherState, guest as unknown as Guest, {
    listeners: async () => listeners,
  });
  return {
    keeper,
    pauses,
    problems: () => launcher.record.portProblems,
    looks: () => looks,
    changes: () => changes,
    guest,
    events,
    listeners,
    held: () => held,
    ask(text: string) {
      launcher.vmi.metadata.annotations = { [HOST_PORTS_ANNOTATION]: text };
    },
    async look() {
      const act = due;
      due = undefined;
      act?.();
      keeper.look();
      await settled();
    },
  };
}

// S-255: A port that could not be had is tried again until it is forwarded, and the condition says so meanwhile.
test('keepPorts() gets a port back that another one had, and says so meanwhile', async () => {
  const it = scene(9);
  for (let i = 0; i < 9; i++) {
    await it.look();
    assert.deepEqual(it.problems(), ['taken']);
  }
  assert.deepEqual(it.pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  await it.look();
  assert.deepEqual(it.problems(), []);
  await it.look();
  assert.equal(it.looks(), 10);
});

test('keepPorts() looks once where all is well, and where nothing will change', async () => {
  for (const [it, problems] of [
    [scene(0), []],
    [scene(99, 'denied'), ['taken']],
  ] as const) {
    await it.look();
    await it.look();
    assert.deepEqual([it.looks(), it.pauses, it.problems()], [1, [], problems]);
  }
});

// S-255
test('keepPorts() does not look at a QEMU that does not answer, and again after a migration', async () => {
  const it = scene(1);
  it.guest.state.connected = false;
  await it.look();
  assert.equal(it.looks(), 0);
  it.guest.state.connected = true;
  await it.look();
  assert.deepEqual(it.pauses, [100]);
  // The ports were given to a target that failed.
  it.keeper.forget();
  it.keeper.look();
  await settled();
  assert.deepEqual([it.looks(), it.problems()], [2, []]);
  it.keeper.stop();
  await it.look();
  assert.equal(it.looks(), 2);
});

test('keepPorts() keeps nothing of a look that a migration overtook', async () => {
  const it = scene(1);
  it.keeper.look();
  it.keeper.forget();
  await settled();
  assert.deepEqual([it.looks(), it.problems(), it.pauses], [1, [], []]);
});

// S-381: A port by number is had where operator and user ask for it, and given back when a program of the host wants it
//   or nobody asks any more.
test('keepPorts() gives a port by number to a guest that asks, and back when the host or nobody wants it', async () => {
  const it = scene(0);
  await it.look();
  assert.deepEqual([it.held(), it.pauses], [[], []]);
  it.ask('22');
  await it.look();
  assert.deepEqual([it.held(), it.pauses], [[{ protocol: 'tcp', port: 22 }], [1000]]);
  // A program of the host got it for IPv6 alone.
  it.listeners.add('tcp/22');
  await it.look();
  assert.deepEqual(it.held(), []);
  assert.match(it.events.join(), /^PortNotForwarded: TCP port 22 of the host is wanted by another program/);
  assert.equal(it.problems().length, 1);
  await it.look();
  it.listeners.clear();
  await it.look();
  assert.deepEqual([it.held().length, it.problems(), it.events.length], [1, [], 1]);
  // Taken back by the user: at once, not when the next look is due.
  it.ask('');
  it.keeper.look();
  await settled();
  assert.deepEqual(it.held(), []);
});

// S-381
test('keepPorts() gives no port by number where the node does not allow it', async () => {
  const it = scene(0, 'in-use', false);
  it.ask('22');
  await it.look();
  assert.deepEqual([it.held(), it.pauses], [[], []]);
  assert.match(it.events.join(), /started without --allow-host-ports/);
});
