/** Guests that move while something dies, restarts or stands still: one end has them in the end, and only one. */
// test:full: a matrix of faults.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { eventually } from '../testkit/eventually.ts';
import { holdLine } from './held-line.ts';
import { type Handed, heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';
import { type MovingGuests, movingGuests, SLOW } from './moving-guests.ts';

let board: MigrationBoard;
let guests: MovingGuests;
before(async () => {
  board = await startMigrationBoard();
  guests = movingGuests(board);
});
afterEach(() => board.endGuests());
after(() => board?.close());

// S-276: What QEMU has sent is not cut off on its way; who could not send tells the reason before the streams close.
// S-281: A guest that moved over a line that stood still for a second answers at its address, and its counter goes on.
test('what QEMU has sent is not cut off on its way: the guest moves over a line that stands still at the end', {
  timeout: 600_000,
}, async (t) => {
  // The QMP connection of the guest that moves must be seen as it is made.
  const line = holdLine(1000);
  t.after(() => line.end());
  const { beats } = await guests.startGuest('held');
  // So little is left for the end that QEMU is rid of it at once; not so little that a slow host never comes to it.
  const handed = await board.hand('held', { configuration: { bandwidthPerMigration: '8Mi', maxDowntimeMs: 20 } });
  await guests.movedTo('held', handed, beats);
  assert.equal(line.times, 1);
});

// S-195
test('the agent of the source is restarted in the middle: the guest stays', { timeout: 600_000 }, async () => {
  const { beats } = await guests.startGuest('source-agent');
  const handed = await board.hand('source-agent', { configuration: SLOW });
  await guests.underWay('source-agent');
  await board.stopAgent(handed.source);
  await board.startAgent(handed.source);
  const vmi = await guests.staysAt('source-agent', handed, beats);
  assert.equal(vmi.status?.migrationState?.failureReason, 'the agent of the source node was restarted');
  await guests.clean('source-agent');
  await guests.movedTo('source-agent', await board.hand('source-agent'), beats);
});

// S-195
test('the agent of the target is restarted in the middle: the guest stays', { timeout: 600_000 }, async () => {
  const { beats } = await guests.startGuest('target-agent');
  const handed = await board.hand('target-agent', { configuration: SLOW });
  await guests.underWay('target-agent');
  await board.stopAgent(handed.target);
  await board.startAgent(handed.target);
  await guests.staysAt('target-agent', handed, beats);
});

// S-195
test('the API is gone when all is sent: both wait, through a restart of the source; then the target runs', {
  timeout: 600_000,
}, async () => {
  const { vmi, beats } = await guests.startGuest('api-down');
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
  const address = hostAddressOf(vmi.status?.interfaces?.[0]?.ipAddress ?? '');
  await assert.rejects(
    fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, { signal: AbortSignal.timeout(700) }),
    'somebody runs',
  );
  assert.equal((await board.qemus(vmi)).size, 2);
  board.cut(handed.source, false);
  board.gate = undefined;
  await board.startAgent(handed.source);
  await guests.movedTo('api-down', handed, beats);
});

// S-195
test('the target agent dies between the write that decides and the go: the next one lets the guest run', {
  timeout: 600_000,
}, async () => {
  const { vmi, beats } = await guests.startGuest('written');
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
  await guests.movedTo('written', handed, beats);
});

// S-195
test('the target dies, or its agent, when all is sent and before it takes over: the source takes the guest back', {
  timeout: 600_000,
}, async () => {
  const { vmi, beats } = await guests.startGuest('taken-back');
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
  await guests.staysAt('taken-back', killed, beats);
  await guests.clean('taken-back');

  const silent = await handUntilItTries();
  await board.stopAgent(silent.target);
  await decided(silent);
  // The QEMU that nobody looks after has the ports of the address until its agent is back: the guest has others.
  await eventually(
    'another port',
    async () => (await guests.httpPort('taken-back', silent.source)) !== usualHostPort(8080),
  );
  await heartbeat(await board.vmi('taken-back'), () => guests.httpPort('taken-back', silent.source));
  await board.startAgent(silent.target);
  await guests.staysAt('taken-back', silent, beats);
});
