/**
 * Post-copy with real guests that change their memory faster than it may be sent: what the monitor decides, that the
 * guest goes on there and never on both nodes, and what is left when one end dies at each side of the write that decides.
 */

// test:full: a matrix of faults.
import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { EVENTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { calledInProcess } from '../../packages/runtime/src/http/in-process-peer.ts';
import { NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { createDeferred } from '../../packages/runtime/src/signal/deferred.ts';
import { type RunWatch, watchRuns } from '../faults/run-watch.ts';
import { eventually } from '../testkit/eventually.ts';
import { collect, kernelSpec, NAMESPACE } from './board.ts';
import { type Handed, heartbeat, type MigrationBoard, startMigrationBoard } from './migration-board.ts';

let board: MigrationBoard;
let watch: RunWatch;
before(async () => {
  board = await startMigrationBoard({ binary: withProbe });
  watch = watchRuns(board.directory);
});
afterEach(() => board.endGuests());
after(async () => {
  watch?.stop();
  await board?.close();
});

/** QEMU with more monitors, since each takes a single client: one to look at it, one to set something. */
async function withProbe(directory: string): Promise<string> {
  const path = join(directory, 'qemu-with-probe');
  const more = ['probe', 'knob'].map((name) => `-qmp unix:${name}.sock,server=on,wait=off`).join(' ');
  await writeFile(path, `#!/bin/sh\nexec qemu-system-x86_64 "$@" ${more}\n`);
  await chmod(path, 0o755);
  return path;
}

/** A guest that happens to have little left to send may be whole before anybody can kill an end of it. */
const MOST_ATTEMPTS = 5;
const LOST = 'VMI is irrecoverable due to failed post-copy migration';
/** So slow that the memory has not been sent once when the time is up, and changes again meanwhile. */
const NEVER_ENDS = { bandwidthPerMigration: '24Mi', completionTimeoutPerGiB: 3, maxDowntimeMs: 10 };
const POST_COPY = { ...NEVER_ENDS, allowPostCopy: true };
const encoder = new TextEncoder();

/** Starts a guest that writes to its memory without end; `beats` is its counter. */
async function startBusyGuest(
  name: string,
  spec = kernelSpec(),
): Promise<{ vmi: VirtualMachineInstance; beats: number }> {
  await board.createVmi(name, spec);
  const vmi = await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  const beats = await heartbeat(vmi);
  const console = await board.console(vmi);
  const line = collect(console);
  console.send(encoder.encode('\n'));
  await line.has('login:');
  console.send(encoder.encode('root\n'));
  await line.has('# ');
  // Pages of zeros would not be sent; random bytes are dear to make.
  const fill = 'head -c 1000000 /dev/urandom >/tmp/r; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat /tmp/r; done >/tmp/a';
  const work = `${fill}; while :; do cp /tmp/a /tmp/b; cp /tmp/a /tmp/c; sleep 1; done`;
  console.send(encoder.encode(`(${work}) & echo bus""y\n`));
  await line.has('busy');
  console.close(1000, '');
  return { vmi, beats };
}

const state = async (name: string) => (await board.vmi(name)).status?.migrationState;

/** The one QEMU of a guest that moved is that of the target, and it has counted on. */
async function movedTo(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
  const vmi = await board.until(name, 'over', ({ status }) => status?.migrationState?.completed === true);
  assert.equal(vmi.status?.migrationState?.failed, undefined, vmi.status?.migrationState?.failureReason ?? '');
  assert.equal(vmi.status?.nodeName, handed.target);
  assert.ok((await heartbeat(vmi)) >= before, 'another boot');
  await eventually('the QEMU of the source is gone', async () => (await board.qemus(vmi)).size === 1);
  assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.target]);
  assert.equal((await board.vmi(name)).status?.phase, 'Running');
  assert.equal((await board.record(handed.target, vmi))?.['migration'], undefined);
  return vmi;
}

/** The guest stays where it was, has counted on, and is an ordinary one again. */
async function staysAt(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
  const vmi = await board.until(name, 'failed', ({ status }) => status?.migrationState?.failed === true);
  assert.equal(vmi.status?.nodeName, handed.source);
  assert.ok((await heartbeat(vmi)) >= before, 'another boot');
  await eventually('the QEMU of the target is gone', async () => (await board.qemus(vmi)).size === 1);
  assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.source]);
  await eventually('an ordinary record', async () => {
    const record = await board.record(handed.source, vmi);
    return record !== undefined && record['migration'] === undefined;
  });
  return vmi;
}

/** A target that has failed keeps its Pod, and with it the directory of the instance on its node. */
async function removeEndedPods(name: string): Promise<void> {
  for (const pod of await board.launchers(name))
    if (pod.status?.phase !== 'Running') await board.removePod(pod.metadata.name ?? '');
}

/** The guest is lost, reported as lost, and runs nowhere: least of all where it came from. */
async function lost(name: string, vmi: VirtualMachineInstance, handed: Handed): Promise<void> {
  const after = await board.until(name, 'failed', ({ status }) => status?.phase === 'Failed');
  assert.equal(after.status?.nodeName, handed.target);
  const { failed, completed, failureReason, mode, endTimestamp } = after.status?.migrationState ?? {};
  assert.deepEqual([failed, completed, failureReason, mode], [true, true, LOST, 'PostCopy']);
  assert.ok(endTimestamp);
  await eventually('no QEMU is left', async () => (await board.qemus(vmi)).size === 0);
  await eventually('the source pod is completed, the target pod failed', async () => {
    const phases = (await board.launchers(name)).map((pod) => [pod.spec.nodeName, pod.status?.phase]);
    const text = JSON.stringify(phases.sort());
    return (
      text ===
      JSON.stringify(
        [
          [handed.source, 'Succeeded'],
          [handed.target, 'Failed'],
        ].sort(),
      )
    );
  });
}

interface HeldWrite {
  readonly reached: Promise<void>;
  /** Lets it happen, and does something before the target hears of it. */
  go(then?: () => Promise<void> | void): void;
  /** It does not happen; the next one would. */
  fail(): void;
}

/** Stands before the write that decides. */
function holdTheWrite(): HeldWrite {
  const reached = createDeferred();
  const opened = createDeferred<(() => Promise<void> | void) | undefined>();
  board.gate = async (write) => {
    reached.resolve();
    const then = await opened.promise;
    const answer = await write();
    await then?.();
    return answer;
  };
  const open = (): void => {
    board.gate = undefined;
  };
  return {
    reached: reached.promise,
    go(then) {
      open();
      opened.resolve(then);
    },
    fail() {
      open();
      opened.reject(new Error('the API cannot be reached'));
    },
  };
}

/** Sends one command to a QEMU, past its agent. */
const tellQemu = (pid: number, command: object): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect(`/proc/${pid}/cwd/knob.sock`);
    socket.on('error', reject);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split('"return"').length < 3) return;
      socket.destroy();
      resolve();
    });
    socket.write(`{"execute":"qmp_capabilities"}\n${JSON.stringify(command)}\n`);
  });

/** What the agent of a node says at `/metrics`. */
async function metricsOf(node: string): Promise<string> {
  const { body } = await calledInProcess(board.agents.get(node)!.handler)({
    method: 'GET',
    path: '/metrics',
    query: '',
    headers: {},
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
    upgradable: false,
  });
  return new TextDecoder().decode(body as Uint8Array);
}

const kill = async (vmi: VirtualMachineInstance, node: string): Promise<void> => {
  const pid = (await board.qemus(vmi)).get(node) as number;
  watch.killed(pid, Date.now());
  process.kill(pid, 'SIGKILL');
};

// S-250: A guest whose memory never ends moves by post-copy where that is allowed, with its disks; where a host cannot
//   take it the migration says so and goes on without.
test('a guest whose memory never ends: given up without post-copy, moved with it, and its disks go along', {
  timeout: 600_000,
}, async () => {
  const spec = kernelSpec({ volumes: [{ name: 'scratch', emptyDisk: { capacity: '32Mi' } }] });
  const domain = spec['domain'] as { devices: object };
  const devices = { ...domain.devices, disks: [{ name: 'scratch', disk: { bus: 'virtio' } }] };
  const { vmi, beats } = await startBusyGuest('busy', { ...spec, domain: { ...domain, devices } });
  const before = await board.console(vmi);
  const line = collect(before);
  before.send(encoder.encode('echo written-before > /dev/vda; sync; echo wr""ote\n'));
  await line.has('wrote');
  const first = await board.hand('busy', { configuration: NEVER_ENDS });
  await eventually('its progress is reported', async () => {
    const text = await metricsOf(first.source);
    const value = (name: string) =>
      Number(new RegExp(`^kubevirt_vmi_migration_${name}{.*} (.*)$`, 'm').exec(text)?.[1]);
    return (
      value('data_remaining_bytes') > 0 && value('data_processed_bytes') > 0 && value('data_bytes_total') > 2 ** 27
    );
  });
  const stayed = await staysAt('busy', first, beats);
  assert.doesNotMatch(await metricsOf(first.source), /data_remaining_bytes{/);
  assert.match(stayed.status?.migrationState?.failureReason ?? '', /^Live migration is not completed after/);
  await removeEndedPods('busy');

  const handed = await board.hand('busy', { configuration: POST_COPY });
  const moved = await movedTo('busy', handed, beats);
  assert.equal(moved.status?.migrationState?.mode, 'PostCopy');
  assert.equal(moved.status?.interfaces?.[0]?.ipAddress, vmi.status?.interfaces?.[0]?.ipAddress);
  assert.ok(!moved.status?.conditions?.some(({ type }) => type === 'Paused'));
  await eventually('the source pod is completed', async () =>
    (await board.launchers('busy')).some(
      (pod) => pod.spec.nodeName === handed.source && pod.status?.phase === 'Succeeded',
    ),
  );
  const console = await board.console(moved);
  const after = collect(console);
  console.send(
    encoder.encode('echo 3 > /proc/sys/vm/drop_caches; head -c 14 /dev/vda; echo more > /dev/vda; sync; echo do""ne\n'),
  );
  await after.has(/written-before[\s\S]*done/);
  assert.deepEqual(watch.violations(), []);
});

// Compat KubeVirt's API, P1, yes: `allowPostCopy`, `allowWorkloadDisruption`
test('workload disruption that is forbidden gives up, and without post-copy pauses', { timeout: 600_000 }, async () => {
  const { beats } = await startBusyGuest('strict');
  const strict = { ...POST_COPY, allowWorkloadDisruption: false };
  const stayed = await staysAt('strict', await board.hand('strict', { configuration: strict }), beats);
  assert.match(stayed.status?.migrationState?.failureReason ?? '', /^Live migration is not completed after/);
  assert.equal(stayed.status?.migrationState?.mode, 'PreCopy');
  await removeEndedPods('strict');
  // So slow that its memory has not been sent once when the time is up, however seldom the guest gets a processor.
  const paused = {
    ...NEVER_ENDS,
    bandwidthPerMigration: '4Mi',
    completionTimeoutPerGiB: 20,
    allowWorkloadDisruption: true,
  };
  const handed = await board.hand('strict', { configuration: paused });
  const response = await board.until('strict', 'shows why it is paused', ({ status }) =>
    (status?.conditions ?? []).some(({ type, reason }) => type === 'Paused' && reason === 'PausedByMigrationMonitor'),
  );
  await tellQemu((await board.qemus(response)).get(handed.source) as number, {
    execute: 'migrate-set-parameters',
    arguments: { 'max-bandwidth': 2 ** 30 },
  });
  const moved = await movedTo('strict', handed, beats);
  assert.equal(moved.status?.migrationState?.mode, 'Paused');
});

// S-251: Before the write that decides post-copy, whatever ends, the guest stays where it is.
test('before the write: the target dies, or the source agent is restarted, and the guest stays', {
  timeout: 600_000,
}, async () => {
  const { vmi, beats } = await startBusyGuest('before');
  for (const what of ['target', 'agent'] as const) {
    const held = holdTheWrite();
    const handed = await board.hand('before', { configuration: POST_COPY });
    await held.reached;
    const phase = (await board.record(handed.source, vmi))?.['migration'] as { phase: string; postCopy: boolean };
    assert.deepEqual([phase.phase, phase.postCopy], ['sent', true]);
    assert.equal((await state('before'))?.mode, 'PostCopy');
    if (what === 'target') await kill(vmi, handed.target);
    else await board.stopAgent(handed.source);
    held.fail();
    if (what === 'agent') await board.startAgent(handed.source);
    await staysAt('before', handed, beats);
    assert.deepEqual(watch.violations(), []);
    await removeEndedPods('before');
  }
});

// S-252: After that write the end of either side is the end of the guest, which is reported; there are never two.
test('after the write, before QEMU has sent the guest: either end dies and the guest is lost, never two', {
  timeout: 600_000,
}, async () => {
  for (const victim of ['source', 'target'] as const) {
    const name = `after-${victim}`;
    const { vmi } = await startBusyGuest(name);
    const held = holdTheWrite();
    const handed = await board.hand(name, { configuration: POST_COPY });
    await held.reached;
    held.go(() => kill(vmi, handed[victim]));
    await lost(name, vmi, handed);
    assert.deepEqual(watch.violations(), []);
  }
});

/** A source that is stopped most of the time sends in turns of so many ms, and is looked at while it stands still. */
const TURN_MS = 10;
const LOOK_MS = 20;

/** Lets the guest go on at the target while its memory is still on its way; false when all of it had come before. */
async function runsThereInTheMiddle(uid: string, source: number, target: string): Promise<boolean> {
  const runsThere = (): boolean => watch.owner(uid)?.node === target;
  try {
    for (;;) {
      process.kill(source, 'SIGSTOP');
      await setTimeout(LOOK_MS);
      if (runsThere()) return true;
      process.kill(source, 'SIGCONT');
      await setTimeout(TURN_MS);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

/** Kills one end while the memory is on its way; false when all of it had come before. */
async function killInTheMiddle(victim: 'source' | 'target', name: string): Promise<boolean> {
  const { vmi } = await startBusyGuest(name);
  const held = holdTheWrite();
  const handed = await board.hand(name, { configuration: POST_COPY });
  await held.reached;
  const pid = (await board.qemus(vmi)).get(handed.source) as number;
  await tellQemu(pid, {
    execute: 'migrate-set-parameters',
    arguments: { 'max-postcopy-bandwidth': 4096 },
  });
  held.go();
  const reached = await runsThereInTheMiddle(vmi.metadata.uid ?? '', pid, handed.target);
  if (reached) {
    assert.equal((await board.vmi(name)).status?.nodeName, handed.target);
    await kill(vmi, handed[victim]);
    if (victim === 'target') process.kill(pid, 'SIGCONT');
  }
  const { status } = await board.until(
    name,
    'over',
    (seen) => seen.status?.phase === 'Failed' || seen.status?.migrationState?.completed === true,
  );
  if (status?.migrationState?.failed !== true) return false;
  await lost(name, vmi, handed);
  return true;
}

// S-252
test('in the middle of the memory: either end dies and the guest is lost, never two', {
  timeout: 600_000,
}, async () => {
  for (const victim of ['source', 'target'] as const) {
    let struck = false;
    for (let attempt = 0; attempt < MOST_ATTEMPTS && !struck; attempt++) {
      struck = await killInTheMiddle(victim, `middle-${victim}-${attempt}`);
      assert.deepEqual(watch.violations(), []);
      await board.endGuests();
    }
    assert.ok(struck, `the memory was always there before the ${victim} could be killed`);
  }
});

// S-252
test('the agent of the target is restarted in the middle of the memory: the guest is lost and reported as lost', {
  timeout: 600_000,
}, async () => {
  const { vmi } = await startBusyGuest('middle-agent');
  const held = holdTheWrite();
  const handed = await board.hand('middle-agent', { configuration: POST_COPY });
  await held.reached;
  let stopped: Promise<void> | undefined;
  held.go(() => {
    stopped = board.stopAgent(handed.target);
  });
  await board.until('middle-agent', 'written', ({ status }) => status?.nodeName === handed.target);
  await stopped;
  await board.startAgent(handed.target);
  const after = await board.until('middle-agent', 'failed', ({ status }) => status?.phase === 'Failed');
  assert.equal(after.status?.nodeName, handed.target);
  await eventually('no QEMU is left', async () => (await board.qemus(vmi)).size === 0);
  assert.deepEqual(watch.violations(), []);
});

// S-250
test('a host that cannot take post-copy says so, and the migration goes on without it', {
  timeout: 600_000,
}, async () => {
  const other = await startMigrationBoard({ postCopyObstacle: 'no page faults here' });
  try {
    await other.createVmi('plain', kernelSpec());
    const vmi = await other.until('plain', 'running', ({ status }) => status?.phase === 'Running');
    const beats = await heartbeat(vmi);
    const handed = await other.hand('plain', { configuration: { allowPostCopy: true } });
    const moved = await other.until('plain', 'over', ({ status }) => status?.migrationState?.completed === true);
    assert.equal(moved.status?.nodeName, handed.target, moved.status?.migrationState?.failureReason ?? '');
    assert.equal(moved.status?.migrationState?.mode, 'PreCopy');
    assert.ok((await heartbeat(moved)) >= beats, 'another boot');
    const { items } = await other.client.list(EVENTS, { namespace: NAMESPACE });
    const response = items.find(({ reason }) => reason === 'PostCopyNotPossible');
    assert.match(response?.message ?? '', new RegExp(`node ${handed.target}: no page faults here$`));
  } finally {
    await other.close();
  }
});
