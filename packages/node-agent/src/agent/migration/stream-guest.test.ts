import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrationLimits } from '../../../../kubevirt/src/rules/migration/migration-limits.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { type Streaming, streamGuest } from './stream-guest.ts';

const GAVE_UP = 'the target gave up: QEMU of the target could not load the guest';

/** Sends a guest to a target that gives up as soon as QEMU was asked to send; `said` is what QEMU says then. */
function send(said: object, { refused = false, plan = {}, commands = [] as string[] } = {}): Promise<unknown> {
  let given = false;
  const execute = async (command: string): Promise<object> => {
    commands.push(command);
    if (command === 'migrate' && refused) throw new Error('refused');
    // Before it was asked what it says is of an earlier migration.
    if (command === 'query-migrate') return said;
    return {};
  };
  const launcher = {
    environment: {
      clock: { now: () => 0, monotonic: () => 0, schedule: () => () => {} },
      facts: { qemuVersion: '7.2.0' },
      // To an instance that is gone nothing is written.
      client: { get: async () => ({ metadata: { uid: 'another' } }) },
    },
    vmiUid: 'own',
    record: { plan: { memoryBytes: 1, accelerator: 'kvm', ...plan } },
  };
  const streaming = {
    guest: { state: {}, qmp: () => ({ execute }), forwarder: undefined },
    outgoing: { uid: 'm' },
    limits: migrationLimits(undefined),
    signal: new AbortController().signal,
    disks: [],
    events: {
      wait: async () => {
        given = true;
        throw new Error(GAVE_UP);
      },
      close: () => {},
    },
    onNoPostCopy: () => {},
    targetGaveUp: () => given || refused,
  };
  return streamGuest(launcher as unknown as LauncherState, streaming as unknown as Streaming);
}

// S-276
test('streamGuest() tells why QEMU could not send, and not what the target made of the stream that ended', async () => {
  const failed = (why?: string) => ({ status: 'failed', ...(why && { 'error-desc': why }) });
  const cases: [said: object, reason: string][] = [
    [failed('disk is busy'), 'QEMU could not send the guest: disk is busy'],
    // The far end went first: it knows why.
    [failed('Unable to write to socket: Broken pipe'), GAVE_UP],
    [failed('Unable to write to socket: Connection reset by peer'), GAVE_UP],
    [failed(), GAVE_UP],
    [{ status: 'active' }, GAVE_UP],
  ];
  for (const [said, message] of cases) await assert.rejects(send(said), { message }, JSON.stringify(said));
});

// S-276
test('streamGuest() believes nothing that QEMU says of an earlier migration', async () => {
  const said = { status: 'failed', 'error-desc': 'of the last time' };
  await assert.rejects(send(said, { refused: true }), { message: 'refused' });
});

// S-282
test('streamGuest() stops a guest whose writes could be overlooked, before its memory goes', async () => {
  const order = async (plan: object): Promise<string[]> => {
    const commands: string[] = [];
    await assert.rejects(send({}, { plan, commands }));
    return commands.filter((command) => command === 'stop' || command === 'migrate');
  };
  assert.deepEqual(await order({ accelerator: 'tcg' }), ['stop', 'migrate']);
  assert.deepEqual(await order({ accelerator: 'tcg', heldBackBytes: 131072 }), ['migrate']);
  assert.deepEqual(await order({ accelerator: 'kvm' }), ['migrate']);
});
