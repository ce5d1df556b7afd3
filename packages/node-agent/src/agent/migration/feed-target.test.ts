import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { feedTarget } from './feed-target.ts';

/** A QEMU that says these, the last one for ever, and a clock that goes as far as it is slept. */
function fed(statuses: string[], targetOpen: (now: number) => boolean) {
  let now = 0;
  const commands: string[] = [];
  const clock = {
    monotonic: () => now,
    sleep: async (ms: number) => {
      now += ms;
      if (now > 60_000) throw new Error('for ever');
    },
  };
  const execute = async (command: string) => {
    commands.push(command);
    return command === 'query-migrate' ? { status: statuses.length > 1 ? statuses.shift() : statuses[0] } : {};
  };
  const launcher = { environment: { clock, signal: new AbortController().signal }, log: silentLogger };
  const guest = { state: {}, qmp: () => ({ execute }) };
  return {
    done: feedTarget(launcher as unknown as LauncherState, guest as unknown as Guest, () => targetOpen(now)),
    now: () => now,
    commands,
  };
}

test('feedTarget() lets QEMU go on once and waits until it has given all', async () => {
  const it = fed(['pre-switchover', 'postcopy-active', 'postcopy-active', 'completed'], () => true);
  await it.done;
  assert.equal(it.commands.filter((command) => command === 'migrate-continue').length, 1);
  assert.ok(!it.commands.includes('cont'));
});

test('feedTarget() leaves a QEMU that waits for a target that is gone', async () => {
  const it = fed(['postcopy-active'], (now) => now < 10_000);
  await it.done;
  assert.ok(it.now() > 10_000 && it.now() < 20_000, String(it.now()));
  await fed(['postcopy-paused'], () => true).done;
});
