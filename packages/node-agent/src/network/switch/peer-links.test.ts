import assert from 'node:assert/strict';
import { createConnection, createServer } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../../../../test/testkit/eventually.ts';
import { newAuthority } from '../../../../../test/testkit/listen-tls.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { ClusterSwitch } from './cluster-switch.ts';
import { dialHere, PeerLinks } from './peer-links.ts';
import { createServiceListeners } from './service-listeners.ts';
import type { NetworkListener } from './switch-state.ts';

const POD = '100.64.0.7';

// S-1331: A node port answers on a host that has none of the Service's Pods: the switch of the other host connects to its guest,
//   and to no port of that host but those that are forwarded for a Service.
test('a node port of one host leads to a guest of another, and to nothing else there', async (t) => {
  const authority = await newAuthority();
  const life = new AbortController();
  t.after(() => life.abort());
  const host = async (node: string, address: string) => {
    const pair = await authority.issue({
      commonName: `system:node:${node}`,
      organizations: ['system:nodes'],
      usage: 'client',
      days: 1,
    });
    const network = new ClusterSwitch({
      now: () => 0,
      resolve: async () => ({ addresses: [], code: 0 }),
      ask: async () => undefined,
    });
    const links = new PeerLinks({ network, clock: systemClock, signal: life.signal, report: () => {} });
    const port = await links.identify({ pair: () => pair, ca: authority.certificate }, address);
    return { node, host: address, port, links };
  };
  // The port of the guest, as it is forwarded on its host.
  const guest = createServer((socket) =>
    socket.on('error', () => {}).on('data', (bytes) => socket.end(`from b: ${bytes}`)),
  );
  await new Promise<void>((done) => guest.listen(0, '127.0.0.2', done));
  t.after(() => guest.close());
  const { port: forwarded } = guest.address() as { port: number };

  const [a, b] = [await host('a', '127.0.0.1'), await host('b', '127.0.0.2')];
  const peers = [a, b].map(({ node, host: address, port }) => ({ node, host: address, port }));
  const target = { address: POD, port: 8080, node: 'b' };
  const listener = (address: string, port: number, at?: { host: string; port: number }): NetworkListener => ({
    protocol: 'tcp',
    host: address,
    port,
    service: 'default/web',

    targets: [{ ...target, ...(at && { at }) }],
  });
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const { port: nodePort } = probe.address() as { port: number };
  await new Promise((done) => probe.close(done));
  a.links.setState({ node: 'a', peers, listeners: [listener('127.0.0.1', nodePort)] });
  b.links.setState({
    node: 'b',
    peers,
    listeners: [listener('127.0.0.2', nodePort, { host: '127.0.0.2', port: forwarded })],
  });
  const ports = createServiceListeners({
    clock: systemClock,
    signal: life.signal,
    dial: (one) => (one.at ? dialHere(one.at) : a.links.dial(one)),
    onProblem: () => {},
  });
  ports.set([listener('127.0.0.1', nodePort)]);
  t.after(() => ports.set([]));

  const ask = (): Promise<string> =>
    new Promise((resolve) => {
      const socket = createConnection({ host: '127.0.0.1', port: nodePort }, () => socket.write('hello'));
      let said = '';
      socket
        .on('data', (bytes) => (said += bytes))
        .on('error', () => {})
        .on('close', () => resolve(said));
    });
  assert.equal(await eventually('an answer', async () => (await ask()) || undefined), 'from b: hello');

  // Another port of the Pod is not one of a Service: what is asked for there ends without a byte.
  const other = await a.links.dial({ ...target, port: 22 });
  const said: unknown[] = [];
  other.on('data', (bytes) => said.push(bytes)).on('error', () => {});
  await new Promise((done) => other.once('close', done));
  assert.deepEqual(said, []);
});
