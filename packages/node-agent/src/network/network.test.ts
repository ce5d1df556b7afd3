import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { QmpConnection } from '../qmp/qmp-connection.ts';
import { claimAddress, listAddresses, releaseAddress } from './address-pool.ts';
import { createForwarder, parseUsernet, probeBind } from './forwarder.ts';
import { parseWildcards, wildcardListeners } from './wildcard-listeners.ts';

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

/** A QEMU that keeps rules as ours does, and refuses some. */
function usernet(refused: (rule: string) => boolean = () => false) {
  const said: string[] = [];
  const rules = new Map<string, { protocol: string; host: string; hostPort: number; guestPort: number }>();
  let ephemeral = 33_000;
  const put = (protocol: string, host: string, hostPort: number, guestPort: number): void =>
    void rules.set(`${protocol}:${host}:${hostPort}`, { protocol, host, hostPort, guestPort });
  const execute = async (_: string, { 'command-line': line }: { 'command-line': string }) => {
    if (line === 'info usernet')
      return [
        'Hub -1 (net-0):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ',
        ...[...rules.values()].map(
          ({ protocol, host, hostPort, guestPort }) =>
            `  ${protocol.toUpperCase()}[HOST_FORWARD]  15      ${host}  ${hostPort}        10.0.2.2  ${guestPort}     0     0`,
        ),
      ].join('\r\n');
    said.push(line);
    const [command, , rule = ''] = line.split(' ');
    if (command === 'hostfwd_remove')
      return rules.delete(rule) ? `host forwarding rule for ${rule} removed\r\n` : 'not found';
    const [, protocol = '', host = '', port, guestPort] = /^(\w+):([\d.]+):(\d+)-:(\d+)$/.exec(rule) ?? [];
    if (refused(rule) || rules.has(`${protocol}:${host}:${port}`)) return 'could not set up host forwarding rule\r\n';
    put(protocol, host, port === '0' ? ephemeral++ : Number(port), Number(guestPort));
    return '';
  };
  const qmp = { execute } as unknown as QmpConnection;
  const address = '127.64.0.9';
  return { said, put, rules, forwarder: createForwarder({ qmp: () => qmp, netdev: 'net-0', address }) };
}

const HTTP = { protocol: 'tcp', port: 80, declared: true } as const;
const DNS = { protocol: 'udp', port: 53, declared: true } as const;

// S-380
test('ports of a guest are at high ports of its address, and none under its own number', async () => {
  const { forwarder, said } = usernet((rule) => rule.startsWith('udp') && !rule.includes(':0-'));
  assert.deepEqual(await forwarder.forward([HTTP, DNS], []), []);
  assert.deepEqual(said, [
    'hostfwd_add net-0 tcp:127.64.0.9:40080-:80',
    'hostfwd_add net-0 udp:127.64.0.9:40053-:53',
    'hostfwd_add net-0 udp:127.64.0.9:0-:53',
  ]);
  assert.deepEqual(await forwarder.endpoint(80), { host: '127.64.0.9', port: 40_080 });
  const extra = await forwarder.endpoint(5432);
  assert.deepEqual(await forwarder.endpoint(5432), extra);
  assert.deepEqual(
    forwarder.published().map((one) => `${one.containerPort}/${one.protocol} ${one.hostIP}:${one.hostPort}`),
    ['80/TCP 127.64.0.9:40080', '5432/TCP 127.64.0.9:45432', '53/UDP 127.64.0.9:33000'],
  );
  await forwarder.forward([HTTP, DNS], []);
  assert.equal(said.length, 4, 'what is there stays');
  await forwarder.removeAll();
  assert.deepEqual(forwarder.published(), []);
});

// S-381
test('a port under its own number is had as long as it is asked for, and reported when it cannot be', async () => {
  const { forwarder, rules } = usernet((rule) => rule.includes(':53-'));
  const problems = await forwarder.forward([HTTP], [HTTP, DNS]);
  assert.match(problems.map(({ message }) => message).join(), /^UDP port 53 of 127\.64\.0\.9/);
  assert.deepEqual(forwarder.byNumber(), [{ protocol: 'tcp', port: 80 }]);
  assert.deepEqual(await forwarder.endpoint(80), { host: '127.64.0.9', port: 40_080 });
  await forwarder.forward([HTTP], []);
  assert.deepEqual([...rules.keys()].sort(), ['tcp:127.64.0.9:40080', 'udp:127.64.0.9:40053']);
});

// S-1147
test('a port of 127.0.0.1 leads to a guest as long as it is asked for', async () => {
  const { forwarder, rules } = usernet((rule) => rule.includes('127.0.0.1:80-'));
  const problems = await forwarder.forward(
    [HTTP],
    [
      { protocol: 'tcp', port: 22, hostPort: 2222 },
      { protocol: 'tcp', port: 22, hostPort: 2223 },
      { protocol: 'tcp', port: 80, hostPort: 80 },
    ],
  );
  assert.match(problems.map(({ message }) => message).join(), /^TCP port 80 of 127\.0\.0\.1/);
  assert.deepEqual(await forwarder.endpoint(22), { host: '127.64.0.9', port: 40_022 });
  assert.deepEqual(forwarder.byNumber(), []);
  assert.deepEqual(
    forwarder.published().flatMap(({ hostIP, hostPort }) => (hostIP === '127.0.0.1' ? [hostPort] : [])),
    [2222, 2223],
  );
  await forwarder.forward([HTTP], [{ protocol: 'tcp', port: 22, hostPort: 2223 }]);
  assert.deepEqual([...rules.keys()].sort(), ['tcp:127.0.0.1:2223', 'tcp:127.64.0.9:40022', 'tcp:127.64.0.9:40080']);
});

// S-380
test('rules of an earlier version are read back, and give the ports of the host free', async () => {
  const { forwarder, rules, put } = usernet();
  put('tcp', '127.64.0.9', 22, 22);
  put('tcp', '127.64.0.9', 38_123, 5432);
  put('tcp', '127.0.0.2', 22, 22);
  await forwarder.load();
  assert.deepEqual(await forwarder.endpoint(22), { host: '127.64.0.9', port: 22 });
  assert.deepEqual(await forwarder.endpoint(5432), { host: '127.64.0.9', port: 38_123 });
  await forwarder.forward([{ protocol: 'tcp', port: 22, declared: false }], []);
  assert.deepEqual(await forwarder.endpoint(22), { host: '127.64.0.9', port: 40_022 });
  assert.ok(!rules.has('tcp:127.64.0.9:22') && rules.has('tcp:127.0.0.2:22'));
  assert.deepEqual(parseUsernet('garbage'), []);
});

test('what listens on all addresses is read from the tables of the kernel', async () => {
  const v4 = '   0: 0100007F:1538 00000000:0000 0A 00000000\n   1: 00000000:0016 00000000:0000 0A 00000000\n';
  const v6 = `   2: ${'0'.repeat(32)}:0050 ${'0'.repeat(32)}:0000 0A 00\n   3: 00000000:0051 0100007F:1F90 01 00\n`;
  assert.deepEqual(parseWildcards('tcp', v4 + v6), ['tcp/22', 'tcp/80']);
  assert.deepEqual(parseWildcards('udp', '  9: 00000000:0035 00000000:0000 07 00000000\n'), ['udp/53']);
  const server = createServer();
  await new Promise<void>((done) => server.listen({ host: '::', port: 0, ipv6Only: true }, done));
  const { port } = server.address() as { port: number };
  assert.ok((await wildcardListeners()).has(`tcp/${port}`));
  await new Promise<void>((done) => server.close(() => done()));
});
