/** Ports forwarded over channels of a WebSocket, as client libraries ask for them: `@kubernetes/client-node` does. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { KubeConfig, PortForward } from '@kubernetes/client-node';
import { WebSocket } from 'ws';
import type { CertificateAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { eventually } from '../testkit/eventually.ts';
import { createGuestPod, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let guest: Server;
let node: GuestNode;
let server: InProcessServer;
let authority: CertificateAuthority;
let tls: TlsServer;

before(async () => {
  guest = createServer((line) => {
    line.on('error', () => {});
    line.on('data', (chunk) => line.write(chunk.toString().toUpperCase()));
  });
  guest.listen(0, '127.0.0.1');
  await once(guest, 'listening');
  node = await startGuestNode();
  const { port } = guest.address() as AddressInfo;
  node.run('default/web', { 80: port, 1025: port });
  server = await startServer({ connectNode: node.connectNode });
  await createGuestPod(server, 'web');
  authority = await newAuthority();
  tls = await listenTls(server.handler, authority);
});
after(async () => {
  await tls.close();
  await server.stop();
  await node.close();
  guest.close();
});

const textOf = (stream: PassThrough): (() => string) => {
  let text = '';
  stream.on('data', (chunk) => {
    text += chunk;
  });
  return () => text;
};

test('the JavaScript client`s PortForward reaches the guest, and hears why it does not', async () => {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    {
      name: 'c',
      server: `https://127.0.0.1:${tls.port}`,
      caData: Buffer.from(authority.certificate).toString('base64'),
      skipTLSVerify: false,
    },
    { name: 'u', token: 't' },
  );
  const [output, errors, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const [said, wrong] = [textOf(output), textOf(errors)];
  const socket = (await new PortForward(config).portForward('default', 'web', [80], output, errors, input)) as {
    close(): void;
  };
  input.write('hello');
  await eventually(() => said() === 'HELLO');
  input.write(' again');
  await eventually(() => said() === 'HELLO AGAIN');
  assert.equal(wrong(), '');
  socket.close();

  await new PortForward(config).portForward('default', 'web', [9], new PassThrough(), errors, new PassThrough());
  await eventually(() => wrong().startsWith('error forwarding port 9 to pod web, uid : connect ECONNREFUSED'));
});

// S-224
// Compat Pods, nodes, drain, P2, yes: portforward by `v4.channel.k8s.io`
test('several ports have two channels each, and the first message on each says which', async () => {
  const url = `wss://127.0.0.1:${tls.port}/api/v1/namespaces/default/pods/web/portforward?ports=80,9&ports=1025`;
  const socket = new WebSocket(url, ['v5.channel.k8s.io', 'v4.channel.k8s.io'], { ca: authority.certificate });
  const heard = new Map<number, string>();
  socket.on('message', (data: Buffer) => {
    const channel = data[0]!;
    heard.set(channel, (heard.get(channel) ?? '') + data.subarray(1).toString('latin1'));
  });
  await once(socket, 'open');
  assert.equal(socket.protocol, 'v4.channel.k8s.io');
  socket.send(Buffer.from('\u0000one'));
  socket.send(Buffer.from('\u0004three'));
  await eventually(
    () => heard.get(0) === 'P\0ONE' && heard.get(4) === '\x01\x04THREE' && (heard.get(3)?.length ?? 0) > 2,
  );
  assert.equal(heard.get(1), 'P\0');
  assert.equal(heard.get(2), '\t\0');
  assert.match(heard.get(3)!, /^\t\0error forwarding port 9 to pod web/);
  socket.close();
  await once(socket, 'close');
});

test('ports that are none are refused', async () => {
  for (const query of ['', '?ports=', '?ports=0', '?ports=65536', '?ports=x', `?ports=${'1,'.repeat(32)}1`]) {
    const url = `wss://127.0.0.1:${tls.port}/api/v1/namespaces/default/pods/web/portforward${query}`;
    const socket = new WebSocket(url, ['v4.channel.k8s.io'], { ca: authority.certificate });
    const [, response] = await once(socket, 'unexpected-response');
    assert.equal(response.statusCode, 400, query);
    socket.on('error', () => {});
    socket.terminate();
  }
});
