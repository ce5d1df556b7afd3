import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createConnection, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { dialHere } from './peer-links.ts';
import { createServiceListeners } from './service-listeners.ts';
import type { NetworkListener } from './switch-state.ts';

const life = new AbortController();
after(() => life.abort());

/** A server that says its name, on an address that nobody else uses. */
async function sayer(name: string): Promise<{ host: string; port: number }> {
  const server = createServer((socket) => socket.end(name));
  server.listen(0, '127.64.77.1');
  await once(server, 'listening');
  server.unref();
  return { host: '127.64.77.1', port: (server.address() as AddressInfo).port };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.64.77.2');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const said = async (port: number): Promise<string> => {
  const socket = createConnection({ host: '127.64.77.2', port });
  return text(socket).catch((error: NodeJS.ErrnoException) => error.code ?? '');
};

test('a port of a Service serves its endpoints in turn, passes over one that is gone, and closes with the Service', async () => {
  const problems: string[] = [];
  const listeners = createServiceListeners({
    clock: systemClock,
    signal: life.signal,
    dial: ({ at }) => (at ? dialHere(at) : Promise.reject(new Error('elsewhere'))),
    onProblem: (_, code) => problems.push(code),
  });
  const port = await freePort();
  const [one, two] = [await sayer('one'), await sayer('two')];
  const target = (at: { host: string; port: number } | undefined, n: number) => ({
    address: `100.64.0.${n}`,
    port: 80,
    node: 'n',
    ...(at && { at }),
  });
  const listener: NetworkListener = {
    protocol: 'tcp',
    host: '127.64.77.2',
    port,
    service: 'default/web',

    targets: [target(one, 1), target(two, 2), target(undefined, 3)],
  };
  listeners.set([listener]);
  await eventually('the port is open', async () => (await said(port)) !== 'ECONNREFUSED');
  const answers = new Set<string>();
  for (let i = 0; i < 6; i++) answers.add(await said(port));
  assert.deepEqual([...answers].sort(), ['one', 'two']);
  const again = [target(two, 2), target(one, 1)];
  listeners.set([{ ...listener, affinitySeconds: 60, targets: [target(one, 1)] }]);
  assert.equal(await said(port), 'one');
  for (const targets of [again, again.toReversed()]) {
    listeners.set([{ ...listener, affinitySeconds: 60, targets }]);
    assert.deepEqual([await said(port), await said(port)], ['one', 'one'], 'it stays where it was');
  }
  listeners.set([{ ...listener, targets: [] }]);
  assert.equal(await said(port), 'ECONNRESET');
  listeners.set([]);
  await eventually('the port is closed', async () => (await said(port)) === 'ECONNREFUSED');

  const taken = createServer().listen(port, '127.64.77.2');
  await once(taken, 'listening');
  listeners.set([listener]);
  await eventually('the problem is reported', () => problems.length > 0);
  assert.deepEqual(problems, ['EADDRINUSE']);
  listeners.set([]);
  taken.close();
});

test('a port of a Service by UDP brings answers back to who asked', async () => {
  const listeners = createServiceListeners({
    clock: systemClock,
    signal: life.signal,
    dial: () => Promise.reject(new Error('no TCP here')),
    onProblem: (_, code) => assert.fail(code),
  });
  const server = createSocket('udp4');
  server.on('message', (message, from) => server.send(`answer to ${message}`, from.port, from.address));
  server.bind(0, '127.64.77.1');
  await once(server, 'listening');
  const port = await freePort();
  const at = { host: '127.64.77.1', port: server.address().port };
  const targets = [{ address: '100.64.0.1', port: 53, node: 'n', at }];
  listeners.set([
    { protocol: 'udp', host: '127.64.77.2', port, service: 'default/dns', affinitySeconds: 10_800, targets },
  ]);
  const client = createSocket('udp4');
  const answers: string[] = [];
  client.on('message', (message) => void answers.push(String(message)));
  await eventually('an answer', () => {
    client.send('hello', port, '127.64.77.2');
    return answers.length > 0;
  });
  assert.equal(answers[0], 'answer to hello');
  client.close();
  server.close();
  listeners.set([]);
});
