import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MachinePlan } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { QmpError } from '../../qmp/qmp-connection.ts';
import { type GuestOptions, openGuest } from './guest.ts';

test('a command to a guest without a connection is refused by its promise', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-guest-'));
  const guest = openGuest({
    directory,
    plan: { uuid: '', interfaces: [], graphics: false } as unknown as MachinePlan,
    address: '127.0.0.1',
    identity: {} as GuestOptions['identity'],
    exited: new Promise(() => {}),
    clock: systemClock,
    log: silentLogger,
    signal: new AbortController().signal,
    onChange: () => {},
  });
  try {
    // Nothing is thrown before there is a promise to catch it from.
    const failure = await guest
      .qmp()
      .execute('query-status')
      .catch((error: unknown) => error);
    assert.ok(failure instanceof QmpError);
    assert.equal(failure.failure, 'closed');
    assert.match(failure.message, /^no connection to QEMU/);
  } finally {
    guest.close();
    await rm(directory, { recursive: true });
  }
});
