/**
 * A control plane whose disk fills up under it: first no new objects, then no writes at all, reads and watches all the
 * time, and everything as before once there is space again. Needs root, for a small file system of its own.
 */
// test:full: full and broken disks.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { CONFIG_MAPS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { ConfigMap } from '../../packages/apimachinery/src/types/types.ts';
import { wholeBody } from '../../packages/client/src/transport/response-body.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';

const MIB = 1024 * 1024;
const namespace = 'default';
const sleep = (ms: number): Promise<void> => new Promise((wake) => setTimeout(wake, ms));
const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace },
  data,
});

/** A file system of 32 MiB; undefined after the test was skipped because none can be mounted. Its marks are 1.6 MiB and 400 KiB. */
function smallDisk(t: TestContext): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'coracle-full-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m,mode=0700', 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    rmSync(path, { recursive: true });
    t.skip('a tmpfs cannot be mounted here (root only)');
    return undefined;
  }
  t.after(() => {
    execFileSync('umount', ['-l', path]);
    rmSync(path, { recursive: true });
  });
  return path;
}

/** Fills the disk up to `spare` bytes; undefined frees it again. */
function fill(disk: string, spare: number | undefined): void {
  const ballast = join(disk, 'ballast');
  rmSync(ballast, { force: true });
  if (spare === undefined) return;
  const { bavail, bsize } = statfsSync(disk);
  try {
    writeFileSync(ballast, new Uint8Array(Math.max(0, bavail * bsize - spare)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error; // full is what was wanted
  }
}

/** Waits until a control plane that has just become ready has written what it begins with: it takes no more of the disk. */
async function settled(disk: string): Promise<void> {
  const free = (): number => statfsSync(disk).bavail;
  for (let [before, now] = [-1, free()]; before !== now; [before, now] = [now, free()]) await sleep(1000);
}

type Client = ReturnType<typeof adminOf>['client'];
const outcomeOf = (call: Promise<unknown>): Promise<number> =>
  call.then(
    () => 200,
    (error: ApiError) => error.code ?? 0,
  );

/** Refused with a Status that says what happened and what to do. */
async function refused(call: Promise<unknown>, says: RegExp): Promise<void> {
  await assert.rejects(call, (error: ApiError) => {
    assert.ok(error.code === 507 || error.code === 503, `${error.code} ${error.message}`);
    assert.equal(error.reason, error.code === 507 ? 'InsufficientStorage' : 'ServiceUnavailable');
    assert.equal(error.status.status, 'Failure');
    assert.match(error.message, /^the write was not stored: /);
    assert.match(error.message, says);
    return true;
  });
}

/** What a watcher has seen: `TYPE name revision`. */
function follow(t: TestContext, client: Client, from: string): string[] {
  const seen: string[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const event of client.watch(CONFIG_MAPS, { namespace, resourceVersion: from, signal: stop.signal }))
      if (event.type !== 'BOOKMARK')
        seen.push(`${event.type} ${event.object.metadata?.name} ${event.object.metadata?.resourceVersion}`);
  })().catch(() => {});
  t.after(async () => {
    stop.abort();
    await watching;
  });
  return seen;
}

const revisions = async (client: Client): Promise<Record<string, string>> =>
  Object.fromEntries(
    (await client.list(CONFIG_MAPS, { namespace })).items.map(({ metadata }) => [
      metadata.name,
      metadata.resourceVersion!,
    ]),
  );

// S-036
// S-140: A control plane on a full disk does not start, says why in one line, and starts when there is space.
test('a full disk: refusals that say why, reads and watches go on, and nothing is lost when there is space again', async (t) => {
  const disk = smallDisk(t);
  if (!disk) return;
  const data = join(disk, 'data');
  let plane: ControlPlaneProcess | undefined = await startProcess(data, { controllers: '' });
  t.after(() => plane?.kill('SIGKILL'));
  let admin = adminOf(data);
  t.after(() => admin.close());
  let { client } = admin;
  const update = (name: string, value: string): Promise<ConfigMap> =>
    client.patch(CONFIG_MAPS, { namespace, name }, { type: 'merge', body: { data: { value } } });
  /** Tries until the control plane, which looks at the disk once a second, answers as wanted. */
  const until = async (wanted: number, attempt: () => Promise<unknown>): Promise<void> => {
    await eventually(`outcome ${wanted}`, async () => (await outcomeOf(attempt())) === wanted);
  };

  await settled(disk);
  for (let i = 0; i < 30; i++) await client.create(CONFIG_MAPS, configMap(`c${i}`, { value: 'x'.repeat(1000) }));
  const listed = await client.list(CONFIG_MAPS, { namespace });
  const seen = follow(t, client, listed.metadata.resourceVersion!);

  await t.test('nearly full: no new objects; updates and deletes pass, and are watched', async () => {
    fill(disk, MIB);
    let tries = 0;
    await until(507, () => client.create(CONFIG_MAPS, configMap(`early${tries++}`)));
    await refused(client.create(CONFIG_MAPS, configMap('late')), /nearly full.*delete some or free space/);
    await update('c0', 'updated');
    await client.delete(CONFIG_MAPS, { namespace, name: 'c1' });
    assert.equal((await client.get(CONFIG_MAPS, { namespace, name: 'c0' })).data?.['value'], 'updated');
    await eventually(() => seen.some((line) => line.startsWith('DELETED c1 ')));
    assert.ok(seen.some((line) => line.startsWith('MODIFIED c0 ')));
    const health = async (path: string) => {
      const response = await admin.handler({
        method: 'GET',
        path,
        query: 'verbose',
        headers: {},
        body: new Uint8Array(),
        peer: { address: '' },
        signal: t.signal,
      });
      return [response.status, new TextDecoder().decode(await wholeBody(response, t.signal))] as const;
    };
    const [ready, why] = await health('/readyz');
    assert.equal(ready, 500);
    assert.match(why, /\[-\]etcd failed: .*nearly full/);
    // Starting it anew would not make the disk any larger.
    assert.equal((await health('/livez'))[0], 200);
  });

  await t.test('full: every write is refused, a storm of them too; reads and watches go on', async () => {
    fill(disk, 0);
    await until(507, () => update('c2', 'last'));
    await refused(client.create(CONFIG_MAPS, configMap('none')), /free/);
    await refused(update('c3', 'never'), /free/);
    await refused(client.delete(CONFIG_MAPS, { namespace, name: 'c4' }), /free/);
    const before = await revisions(client);
    const storm = await Promise.all(
      Array.from({ length: 200 }, (_, i) => outcomeOf(update(`c${5 + (i % 20)}`, `never ${i}`))),
    );
    assert.deepEqual(
      [...new Set(storm)].filter((code) => code !== 507 && code !== 503),
      [],
    );
    assert.deepEqual(await revisions(client), before, 'what was refused is not there');
    const second = follow(t, client, before['c0']!);
    await eventually(() => second.some((line) => line.startsWith('DELETED c1 ')));
  });

  await t.test('with space again it writes again, and the same watch goes on', async () => {
    fill(disk, undefined);
    await until(200, () => client.create(CONFIG_MAPS, configMap('back')));
    await update('c3', 'after');
    await client.delete(CONFIG_MAPS, { namespace, name: 'c4' });
    await eventually(() => seen.some((line) => line.startsWith('DELETED c4 ')));
    const numbers = seen.map((line) => Number(line.split(' ')[2]));
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
    );
    assert.ok(!seen.some((line) => line.startsWith('ERROR') || line.includes(' none ')));
  });

  const kept = await revisions(client);
  await t.test('a kill -9 and a start later everything acknowledged is there, at its revision', async () => {
    await plane!.kill('SIGKILL');
    await admin.close();
    plane = await startProcess(data, { controllers: '' });
    admin = adminOf(data);
    client = admin.client;
    assert.deepEqual(await revisions(client), kept);
    const next = await update('c3', 'again');
    assert.ok(Number(next.metadata.resourceVersion) > Math.max(...Object.values(kept).map(Number)));
    kept['c3'] = next.metadata.resourceVersion!;
  });

  await t.test(
    'killed, it does not start while the disk is full, says why in one line, and starts when there is space',
    async () => {
      fill(disk, 0);
      await until(507, () => update('c6', 'last'));
      Object.assign(kept, await revisions(client));
      await plane!.kill('SIGKILL');
      await admin.close();
      plane = undefined;
      await assert.rejects(startProcess(data, { controllers: '' }), (error: Error) => {
        const [line, ...more] = error.message.trim().split('\n');
        assert.match(
          line!,
          /ended with 1: error: no space is left on the disk of \/.*; free some there and start again/,
        );
        assert.deepEqual(more, []);
        return true;
      });
      fill(disk, undefined);
      plane = await startProcess(data, { controllers: '' });
      admin = adminOf(data);
      client = admin.client;
      assert.deepEqual(await revisions(client), kept);
      await update('c7', 'after');
    },
  );
});
