import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { identify, isRunning, type ProcessIdentity, signalProcess } from '../../../../runtime/src/process/identity.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { createGuestAgent } from '../../qmp/guest-agent.ts';
import { freezeGuest, thawGuest } from './freeze.ts';

const UID = '00000000-0000-4000-8000-000000000001';

/** A directory of a VM with the socket of an agent that freezes and thaws, and refuses what is asked of it here. */
async function frozenScene(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'coracle-thaw-'));
  const directory = join(root, 'vms', UID);
  await mkdir(directory, { recursive: true });
  const asked: string[] = [];
  let status = 'thawed';
  const refused = new Set<string>();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      for (const line of bytes.toString('latin1').split('\n')) {
        const text = line.slice(line.indexOf('{'));
        if (!text.startsWith('{')) continue;
        const { execute, arguments: args } = JSON.parse(text) as { execute: string; arguments?: { id?: number } };
        if (refused.has(execute)) {
          socket.write(`${JSON.stringify({ error: { class: 'GenericError', desc: 'no' } })}\n`);
          continue;
        }
        if (execute !== 'guest-sync-delimited') asked.push(execute);
        if (execute === 'guest-fsfreeze-freeze') status = 'frozen';
        if (execute === 'guest-fsfreeze-thaw') status = 'thawed';
        const answer = execute === 'guest-sync-delimited' ? args?.id : execute === 'guest-fsfreeze-status' ? status : 1;
        socket.write(Buffer.concat([Buffer.of(0xff), Buffer.from(`${JSON.stringify({ return: answer })}\n`)]));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(join(directory, VM_FILES.guestAgent), resolve));
  const life = new AbortController();
  const agent = createGuestAgent(join(directory, VM_FILES.guestAgent), { clock: systemClock, signal: life.signal });
  const guest = { agent, directory, process: (await identify(process.pid))! };
  const timer = async (): Promise<ProcessIdentity | undefined> =>
    readFile(join(root, 'thaw-process.json'), 'utf8').then(
      (text) => JSON.parse(text) as ProcessIdentity,
      () => undefined,
    );
  t.after(async () => {
    life.abort();
    server.close();
    const left = await timer();
    if (left) await signalProcess(left, 'SIGKILL');
    await rm(root, { recursive: true, force: true });
  });
  return { root, guest, directory, asked, refused, timer, status: () => status };
}

// S-1276: A guest that is frozen for a time is thawed when it is over by a process that needs no agent: it tries again until the guest answers, and ends when no guest waits.
test('freeze: once, and undone when its time is over, without whoever froze it', async (t) => {
  const { guest, directory, asked, refused, timer, status } = await frozenScene(t);
  await freezeGuest(guest, systemClock.now() + 60_000);
  const watching = await timer();
  assert.ok(watching && (await isRunning(watching)));
  refused.add('guest-fsfreeze-thaw');
  await freezeGuest(guest, systemClock.now() + 100);
  assert.deepEqual(await timer(), watching, 'one process for all');
  assert.deepEqual(asked, ['guest-fsfreeze-status', 'guest-fsfreeze-freeze', 'guest-fsfreeze-status']);
  assert.equal(status(), 'frozen');
  setTimeout(() => refused.clear(), 1500);
  await eventually('thawed', () => status() === 'thawed');
  await eventually('nothing left', async () => (await timer()) === undefined && !(await isRunning(watching)));
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.startsWith('thaw')),
    [],
  );
});

test('freeze: thawed by hand, without a time, and refused', async (t) => {
  const { root, guest, directory, asked, refused, status } = await frozenScene(t);
  const orders = async (): Promise<string[]> => (await readdir(directory)).filter((name) => name.startsWith('thaw'));
  await freezeGuest(guest, systemClock.now() + 60_000);
  assert.deepEqual(await orders(), ['thaw.json']);
  await freezeGuest(guest, undefined);
  assert.deepEqual(await orders(), [], 'the newest word counts');
  await thawGuest(guest);
  assert.equal(status(), 'thawed');
  refused.add('guest-fsfreeze-freeze');
  await assert.rejects(freezeGuest(guest, systemClock.now() + 60_000), /guest-fsfreeze-freeze: no/);
  assert.deepEqual(await orders(), []);
  // What the guest was in is gone, and another has its directory: nobody thaws that.
  const before = asked.length;
  refused.clear();
  await writeFile(
    join(directory, 'thaw.json'),
    JSON.stringify({ thawAt: 0, process: { ...guest.process, startTime: '1' } }),
  );
  const other = join(root, 'vms', UID.replace(/1$/, '2'));
  await mkdir(other);
  await freezeGuest({ ...guest, directory: other }, systemClock.now() + 60_000);
  await eventually('the order is gone', async () => (await orders()).length === 0);
  assert.equal(asked.slice(before).includes('guest-fsfreeze-thaw'), false);
});
