import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { QmpConnection } from '../qmp/qmp-connection.ts';
import { claimAddress, listAddresses, releaseAddress } from './address-pool.ts';
import { probeBind } from './bind-probe.ts';
import { createForwarder, parseUsernet } from './forwarder.ts';

test('an address is claimed once, kept over restarts, and given back only by its holder', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-net-'));
  const uids = Array.from({ length: 50 }, (_, i) => `uid-${i}`);
  const addresses = await Promise.all(uids.map((uid) => claimAddress(dir, uid)));
  assert.equal(new Set(addresses).size, 50);
  for (const address of addresses) assert.match(address, /^127\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.\d+\.\d+$/);
  assert.equal(await claimAddress(dir, 'uid-7'), addresses[7]);
  await releaseAddress(dir, addresses[7] ?? '', 'somebody else');
  await releaseAddress(dir, '../../etc/passwd', 'uid-7');
  assert.equal((await listAddresses(dir)).get(addresses[7] ?? ''), 'uid-7');
  await releaseAddress(dir, addresses[7] ?? '', 'uid-7');
  assert.equal((await listAddresses(dir)).size, 49);
  await rm(dir, { recursive: true });
});

test('probeBind() tells a taken port from a free one', async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.77.0.1', done));
  const port = (server.address() as { port: number }).port;
  assert.equal(await probeBind('tcp', '127.77.0.1', port), 'in-use');
  assert.equal(await probeBind('tcp', '127.77.0.2', port), 'free');
  assert.equal(await probeBind('udp', '127.77.0.1', port), 'free');
  await new Promise<void>((done) => server.close(() => done()));
});

test('the forwarder reports what QEMU refuses, opens other ports on demand, and reads rules back', async () => {
  const said: string[] = [];
  const qmp = {
    execute: async (_: string, args: { 'command-line': string }) => {
      said.push(args['command-line']);
      if (args['command-line'] === 'info usernet')
        return 'Hub -1 (net-0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  TCP[HOST_FORWARD]  15      127.64.0.9  8080        10.0.2.2  8080     0     0\r\n  UDP[HOST_FORWARD]  16      127.64.0.9    53        10.0.2.2    53     0     0\r\n';
      return args['command-line'].includes(':99-') ? 'could not set up host forwarding rule\r\n' : '';
    },
  } as unknown as QmpConnection;
  const forwarder = createForwarder({ qmp: () => qmp, netdev: 'net-0', address: '127.64.0.9' });
  const problems = await forwarder.addAll([
    { protocol: 'tcp', port: 80, declared: true },
    { protocol: 'udp', port: 99, declared: true },
  ]);
  assert.deepEqual(
    problems.map((p) => p.port.port),
    [99],
  );
  assert.match(problems[0]?.message ?? '', /UDP port 99 of 127\.64\.0\.9/);
  assert.deepEqual(await forwarder.endpoint(80), { host: '127.64.0.9', port: 80 });
  const extra = await forwarder.endpoint(5432);
  assert.deepEqual(await forwarder.endpoint(5432), extra);
  assert.deepEqual(said.slice(0, 2), [
    'hostfwd_add net-0 tcp:127.64.0.9:80-:80',
    'hostfwd_add net-0 udp:127.64.0.9:99-:99',
  ]);
  assert.equal(said.length, 3);
  await forwarder.load();
  assert.deepEqual(await forwarder.endpoint(8080), { host: '127.64.0.9', port: 8080 });
  assert.deepEqual(parseUsernet('garbage'), []);
});
