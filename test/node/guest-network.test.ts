/** What a guest reaches: the network behind its gateway, and not what this host keeps to itself. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { VIRTUAL_MACHINE_INSTANCES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

const isRunning = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';

/** A shell on the serial console. */
async function shellOf(name: string): Promise<(command: string) => Promise<string>> {
  const socket = await board.connect(`${name}/console`);
  const seen = collect(socket);
  const type = (text: string): void => socket.send(new TextEncoder().encode(text));
  await seen.has('login:');
  type('root\n');
  await seen.has(':~# ');
  let count = 0;
  return async (command) => {
    const end = `over-${++count}-`;
    const from = seen.text().length;
    // The echo of the command does not hold the mark itself.
    type(`${command}; echo over-$((${count}))-\n`);
    await seen.has(end);
    return seen.text().slice(from);
  };
}

/** A service of the host, TCP and UDP, that notes who came. */
async function serviceAt(host: string, port = 0) {
  let visits = 0;
  const tcp = createServer((socket) => {
    visits++;
    socket.on('error', () => {}).resume();
    socket.end('HTTP/1.0 200 OK\r\n\r\nthe-secret\n');
  });
  await new Promise<void>((done) => tcp.listen(port, host, done));
  const at = (tcp.address() as { port: number }).port;
  const udp = createSocket('udp4');
  udp.on('message', () => void visits++);
  await new Promise<void>((done) => udp.bind(at, host, done));
  return {
    port: at,
    visits: () => visits,
    close: () => Promise.all([new Promise((done) => tcp.close(done)), new Promise<void>((done) => udp.close(done))]),
  };
}

// S-1672
// S-382: A guest reaches neither services of the host's loopback nor forwarded ports of other guests, whatever routes
//   it makes; without its packet filter it reaches nothing.
test('a guest reaches neither services of this host’s loopback nor ports of other guests, and the world as before', async (t) => {
  await board.createVmi('prisoner', {
    ...kernelSpec({ terminationGracePeriodSeconds: 0 }),
    domain: {
      ...(kernelSpec()['domain'] as object),
      devices: {
        interfaces: [
          {
            name: 'default',
            masquerade: {},
            ports: [{ port: 8080 }, { port: 5353, protocol: 'UDP' }],
            dhcpOptions: { ntpServers: ['192.0.2.1'], privateOptions: [{ option: 224, value: 'here' }] },
          },
        ],
      },
    },
  });
  const own = await serviceAt('127.0.0.1');
  // As another guest's forwarded ports are.
  const neighbour = await serviceAt('127.64.0.99', own.port);
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const open = outside === undefined ? undefined : await serviceAt(outside);
  t.after(() => Promise.all([own.close(), neighbour.close(), open?.close()]));
  const vmi = await board.until('prisoner', 'running', isRunning);
  const run = await shellOf('prisoner');

  // Its address is from there too.
  const script = `'#!/bin/sh\\n[ $1 = bound ] && echo $ip $router $dns $ntpsrv $opt224'`;
  await run(`printf ${script} > /run/leased; chmod +x /run/leased`);
  assert.match(
    await run('udhcpc -i eth0 -f -n -q -O ntpsrv -O 224 -s /run/leased'),
    /10\.0\.2\.2 10\.0\.2\.1 10\.0\.2\.3 192\.0\.2\.1 68657265/,
  );
  await run('echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet; ip addr del 127.0.0.1/8 dev lo');
  await run('for n in 127.64.0.0/10 127.0.0.0/24; do ip route add $n via 10.0.2.1; done');
  // The gateway, any alias of it, the resolver, and the loopback range itself; by TCP and by UDP.
  const answers = await run(
    `for a in 10.0.2.1 10.0.2.77 10.0.2.3 127.64.0.99 127.0.0.1; do (echo x | nc -w 2 $a ${own.port}) & timeout 2 tftp -g -r x $a ${own.port} & done; sleep 3`,
  );
  assert.doesNotMatch(answers, /the-secret/);
  if (open) assert.match(await run(`echo x | nc -w 5 ${outside} ${open.port}`), /the-secret/);

  // Connections to the guest, and answers of it, go as before.
  const address = hostAddressOf(vmi.status?.interfaces?.[0]?.ipAddress ?? '');
  const url = `http://${address}:${usualHostPort(8080)}/`;
  await eventually('http', async () => (await fetch(url, { signal: AbortSignal.timeout(10_000) })).ok);

  // Without its filter a guest is cut off, until there is another.
  const path = join(board.directory, 'node/vms', vmi.metadata.uid ?? '', 'net-filter-process.json');
  const pidOf = async (): Promise<number> => (JSON.parse(await readFile(path, 'utf8')) as { pid: number }).pid;
  const first = await pidOf();
  process.kill(first, 'SIGKILL');
  await eventually('another filter', async () => (await pidOf()) !== first);
  await eventually('http', async () =>
    fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  assert.doesNotMatch(await run(`echo x | nc -w 1 10.0.2.1 ${own.port}`), /the-secret/);
  assert.deepEqual([own.visits(), neighbour.visits()], [0, 0]);
  await board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name: 'prisoner' });
});
