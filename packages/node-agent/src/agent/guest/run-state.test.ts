import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MachinePlan } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import type { Clock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { RunState } from '../../qmp/commands.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import type { AgentEnvironment } from '../environment.ts';
import { LauncherState } from '../launcher/launcher-state.ts';
import { superviseGuest } from '../launcher/launcher-supervise.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import type { VmResult } from '../launcher/vm-result.ts';
import type { Guest, GuestState } from './guest.ts';
import { guestCondition, hasEnded } from './run-state.ts';

/** Every state of QEMU: how the guest in it ends, or that it does not. */
const STATES: Readonly<Record<RunState, { readonly is: string; readonly ends?: string }>> = {
  running: { is: 'runs' },
  suspended: { is: 'runs' },
  paused: { is: 'stopped' },
  prelaunch: { is: 'stopped' },
  watchdog: { is: 'stopped' },
  debug: { is: 'stopped' },
  'save-vm': { is: 'stopped' },
  'io-error': { is: 'stalled' },
  inmigrate: { is: 'moving' },
  postmigrate: { is: 'moving' },
  'finish-migrate': { is: 'moving' },
  'restore-vm': { is: 'moving' },
  colo: { is: 'moving' },
  shutdown: { is: 'off', ends: 'Succeeded' },
  'guest-panicked': { is: 'panicked', ends: 'Failed' },
  'internal-error': { is: 'broken', ends: 'Failed' },
};

interface Supervised {
  readonly launcher: LauncherState;
  readonly commands: string[];
  readonly ended: Promise<VmResult>;
  readonly state: { value: GuestState };
  stop(): void;
}

/** Supervises a guest of which only its QMP is there; `answer` is asked for each command. */
function supervise(
  runState: RunState,
  options: { readonly rebootPolicy?: 'terminate'; readonly reboots?: boolean } = {},
  answer: (command: string, state: { value: GuestState }) => void = () => {},
): Supervised {
  const stop = new AbortController();
  const waiting = new Set<() => void>();
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    schedule: (_ms: number, act: () => void) => {
      const timer = setImmediate(act);
      return () => clearImmediate(timer);
    },
    sleep: () => new Promise<void>((resolve) => setImmediate(resolve)),
  } as unknown as Clock;
  const environment = { clock, log: silentLogger, signal: stop.signal, nodeName: 'n' } as unknown as AgentEnvironment;
  const plan = { disks: [], interfaces: [], machine: { options: {} }, rebootPolicy: options.rebootPolicy ?? 'reboot' };
  const launcher = new LauncherState(environment, {
    pod: undefined,
    record: { plan: plan as unknown as MachinePlan } as VmRecord,
    hasPredecessor: () => false,
  });
  if (options.reboots) launcher.softRebootUntil = 1;
  const commands: string[] = [];
  const state = { value: { connected: true, foreign: false, runState, agentConnected: false } as GuestState };
  launcher.guest = {
    get state() {
      return state.value;
    },
    qmp: () => ({
      execute: async (command: string) => {
        commands.push(command);
        answer(command, state);
        return {};
      },
    }),
    refresh: async () => {},
    output: async () => '',
    onEvent: () => () => waiting.clear(),
  } as unknown as Guest;
  const ended = superviseGuest(launcher);
  ended.catch(() => {});
  return { launcher, commands, ended, state, stop: () => stop.abort(new Error('stopped')) };
}

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

// S-397: Every run state of QEMU has a decision, a dead guest is never shown Running, and a QEMU that refuses a command
//   is supervised on.
test('each state of QEMU has its meaning, and those of a dead guest end it', async () => {
  for (const [state, { is, ends }] of Object.entries(STATES) as [RunState, { is: string; ends?: string }][]) {
    assert.equal(guestCondition(state), is, state);
    assert.equal(hasEnded(state), ends !== undefined, state);
    const supervised = supervise(state);
    const result = await Promise.race([supervised.ended, turns(20)]);
    supervised.stop();
    assert.equal(result?.phase, ends, state);
  }
  assert.equal(guestCondition('unknown'), 'unknown');
  assert.equal(guestCondition('of a newer QEMU' as RunState), 'unknown');
});

// S-396
test('a soft reboot: the guest boots again, and one whose policy is Terminate has ended', async () => {
  const rebooting = supervise('shutdown', { reboots: true }, (command, state) => {
    if (command === 'system_reset') state.value = { ...state.value, runState: 'paused' };
    if (command === 'cont') state.value = { ...state.value, runState: 'running' };
  });
  await turns(50);
  assert.deepEqual(rebooting.commands, ['system_reset', 'cont']);
  assert.equal(rebooting.launcher.softRebootUntil, 0);
  rebooting.stop();

  const ending = supervise('shutdown', { reboots: true, rebootPolicy: 'terminate' });
  assert.equal((await ending.ended).phase, 'Succeeded');
  assert.deepEqual(ending.commands, []);
});

// S-397
test('a QEMU that does not carry out a command is supervised on', async () => {
  let refusals = 0;
  const supervised = supervise('shutdown', { reboots: true }, (command) => {
    if (command !== 'cont') return;
    refusals++;
    throw new QmpError('refused', 'Resetting the Virtual Machine is required');
  });
  await turns(400);
  assert.ok(refusals > 1, 'it was tried once and no more');
  // The time for the reboot is over: what is off stays off.
  supervised.launcher.softRebootUntil = 0;
  supervised.launcher.changed();
  assert.equal((await supervised.ended).phase, 'Succeeded');
});
