import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../base/log/log.ts';
import type { Guest } from './guest.ts';
import { keepPorts } from './keep-ports.ts';
import type { LauncherState } from './launcher-state.ts';

const settled = () => new Promise((next) => setImmediate(next));

/** A guest of one port, which is in use for so many looks. */
function scene(taken: number, why: 'in-use' | 'denied' = 'in-use') {
  const port = { port: 8080, protocol: 'tcp', declared: true };
  const pauses: number[] = [];
  let due: (() => void) | undefined;
  let looks = 0;
  let changes = 0;
  const launcher = {
    environment: {
      signal: new AbortController().signal,
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
    changed: () => void changes++,
  };
  const guest = {
    state: { connected: true },
    forwarder: {
      load: async () => {},
      addAll: async (ports: unknown[]) => {
        assert.deepEqual(ports, [port]);
        return looks++ < taken ? [{ port, why, message: 'taken' }] : [];
      },
    },
  };
  const keeper = keepPorts(launcher as unknown as LauncherState, guest as unknown as Guest);
  return {
    keeper,
    pauses,
    problems: () => launcher.record.portProblems,
    looks: () => looks,
    changes: () => changes,
    guest,
    async look() {
      const act = due;
      due = undefined;
      act?.();
      keeper.look();
      await settled();
    },
  };
}

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
