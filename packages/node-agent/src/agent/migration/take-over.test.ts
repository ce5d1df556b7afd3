import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { Guest } from '../guest/guest.ts';
import type { LauncherState } from '../launcher/launcher-state.ts';
import { resumeReceiver } from './take-over.ts';

const UID = '00000000-0000-4000-8000-000000000001';

/** An agent that came back after the write that decides: the API has given the guest to it. */
async function resumed(onSleep: (directory: string) => Promise<void>) {
  const vmsDirectory = await mkdtemp(join(tmpdir(), 'coracle-take-over-'));
  let slept = 0;
  const commands: string[] = [];
  const vmi = { metadata: { uid: UID, name: 'vm', namespace: 'ns' }, status: { nodeName: 'here' } };
  const migration = {
    role: 'target',
    phase: 'handing-over',
    uid: 'm',
    peerNode: 'there',
    wasRunning: true,
    sharesAddress: false,
  };
  const launcher = {
    environment: {
      vmsDirectory,
      nodeName: 'here',
      signal: new AbortController().signal,
      clock: {
        now: () => 0,
        monotonic: () => 0,
        sleep: async () => {
          if (++slept > 5) throw new Error('for ever');
          await onSleep(join(vmsDirectory, UID));
        },
      },
      client: { get: async () => vmi },
    },
    log: silentLogger,
    vmiUid: UID,
    vmi,
    record: { vmiUid: UID, namespace: 'ns', name: 'vm', plan: { interfaces: [] }, migration },
    isDeleting: () => false,
    event: () => {},
  } as unknown as LauncherState;
  const guest = {
    state: { connected: true },
    qmp: () => ({ execute: async (command: string) => void commands.push(command) }),
    refresh: async () => {},
  } as unknown as Guest;
  return { done: resumeReceiver(launcher, guest), launcher, commands, vmsDirectory };
}

// S-277: An agent that comes back takes over the guest that is its own, also where its record cannot be written at
//   first.
test('resumeReceiver() takes a guest over that is its own, although its record cannot be written at first', async () => {
  const it = await resumed(async (directory) => void (await mkdir(directory)));
  try {
    assert.equal(await it.done, undefined);
    assert.ok(it.commands.includes('cont'));
    const written = JSON.parse(await readFile(join(it.vmsDirectory, UID, 'record.json'), 'utf8')) as object;
    assert.ok(!('migration' in written));
    assert.equal(it.launcher.record?.migration, undefined);
  } finally {
    await rm(it.vmsDirectory, { recursive: true });
  }
});

// S-310: A migration ends for the API although the agent that was to tell of its end was killed just before.
test('resumeReceiver() tells the end of a post-copy although it has heard of no instance yet', async () => {
  const vmsDirectory = await mkdtemp(join(tmpdir(), 'coracle-take-over-'));
  const written: unknown[] = [];
  const migration = {
    role: 'target',
    phase: 'handed-over',
    uid: 'm',
    peerNode: 'there',
    wasRunning: true,
    postCopy: true,
  };
  const vmi = {
    metadata: { uid: UID, name: 'vm', namespace: 'ns', resourceVersion: '7' },
    status: { nodeName: 'here', phase: 'Running', migrationState: { migrationUid: 'm', mode: 'PostCopy' } },
  };
  const environment = {
    vmsDirectory,
    nodeName: 'here',
    signal: new AbortController().signal,
    clock: { now: () => 0, monotonic: () => 0, sleep: async () => {} },
    client: {
      get: async () => vmi,
      patch: async (_type: unknown, _key: unknown, { body }: { body: { status: unknown } }) => {
        written.push(body.status);
        return vmi;
      },
    },
  };
  const launcher = {
    environment,
    log: silentLogger,
    vmiUid: UID,
    record: { vmiUid: UID, namespace: 'ns', name: 'vm', plan: { interfaces: [] }, migration },
    isDeleting: () => false,
    event: () => {},
    untilDone: (_what: string, act: () => Promise<void>) => act(),
    observeVmi: () => {},
  } as unknown as LauncherState;
  const said: Record<string, unknown> = {
    'query-status': { status: 'running' },
    'query-migrate': { status: 'completed' },
  };
  const guest = {
    state: { connected: true },
    qmp: () => ({ execute: async (command: string) => said[command] ?? {} }),
    refresh: async () => {},
  } as unknown as Guest;
  try {
    await mkdir(join(vmsDirectory, UID));
    assert.equal(await resumeReceiver(launcher, guest), undefined);
    assert.deepEqual(written, [{ migrationState: { completed: true, endTimestamp: '1970-01-01T00:00:00Z' } }]);
    assert.equal(launcher.record?.migration, undefined);
  } finally {
    await rm(vmsDirectory, { recursive: true });
  }
});
