/**
 * `kubectl port-forward` and `kubectl proxy` of versions of kubectl: those before 1.31 forward over SPDY/3.1, the newer ones
 * over WebSockets. The guest behind the Pod is a web server of this process.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { createGuestPod, type GuestNode, startGuestNode } from '../testkit/guest-node.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';
import { findKubectls, type Kubectl, type RunningCommand, runKubectl, startKubectl } from './kubectl.ts';

const OLDEST = 27;
const known = findKubectls().filter(({ minor }) => minor >= OLDEST);
/** Why no version can be tried here, or false. */
const skip = known.length === 0 && `there is no kubectl 1.${OLDEST} or newer on PATH`;
const ends = new Set([known[0], known.at(-1)]);
/** The oldest, which speaks SPDY, and the newest, which speaks WebSocket; or what there is. */
export const ENDS = known.filter((kubectl) => ends.has(kubectl));
/** The versions between those. */
export const BETWEEN = known.filter((kubectl) => !ends.has(kubectl));
/** More than every buffer on the way holds. */
const LARGE = randomBytes(24 * 1024 * 1024);

let folder = '';
let env: Record<string, string> = {};
let server: InProcessServer;
let tls: TlsServer;
let node: GuestNode;
let guest: Server;

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

before(async () => {
  if (skip) return;
  guest = createServer((request, response) => {
    if (request.url === '/large') return void response.end(LARGE);
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => response.end(`${request.method} ${request.url} ${sha(Buffer.concat(chunks))}\n`));
  });
  guest.listen(0, '127.0.0.1');
  await once(guest, 'listening');
  node = await startGuestNode();
  node.run('default/guest', { 8080: (guest.address() as AddressInfo).port });
  server = await startServer({ connectNode: node.connectNode });
  await createGuestPod(server, 'guest', { ports: [8080] });
  const authority = await newAuthority();
  tls = await listenTls(server.handler, authority);
  folder = mkdtempSync(join(tmpdir(), 'coracle-forward-'));
  const cluster = {
    server: `https://127.0.0.1:${tls.port}`,
    'certificate-authority-data': Buffer.from(authority.certificate).toString('base64'),
  };
  writeFileSync(
    join(folder, 'kubeconfig'),
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token: 't' } }],
    }),
  );
  env = { HOME: folder, PATH: process.env['PATH'] ?? '', KUBECONFIG: join(folder, 'kubeconfig') };
});
after(async () => {
  if (skip) return;
  await tls.close();
  await server.stop();
  await node.close();
  guest.closeAllConnections();
  guest.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = (kubectl: Kubectl, words: string): RunningCommand =>
  startKubectl(kubectl, words.split(' '), { env, cwd: folder });

/** The local address it says it listens at. */
async function localOf(command: RunningCommand, pattern: RegExp): Promise<string> {
  await command.saw(pattern);
  return `http://${pattern.exec(command.stdout())![1]}`;
}

/** Many connections and large bodies through a forwarded port, and a port that nobody listens on. */
export function testPortForward(kubectls: readonly Kubectl[]): void {
  for (const kubectl of kubectls) {
    // S-224: `kubectl` of every version forwards ports, over SPDY or WebSockets; so do client libraries that use two
    //   channels for each port.
    // Compat Pods, nodes, drain, P1, yes: portforward by kubectl of every version, over SPDY and WebSockets
    test(`kubectl 1.${kubectl.minor} port-forward: many connections, large bodies both ways`, { skip }, async () => {
      const before = node.seen.length;
      const command = start(kubectl, 'port-forward pod/guest :8080');
      const url = await localOf(command, /Forwarding from (127\.0\.0\.1:\d+) -> 8080/);
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_, i) =>
          (await fetch(`${url}/n${i}`, { headers: { connection: 'close' } })).text(),
        ),
      );
      assert.deepEqual(
        answers,
        Array.from({ length: 20 }, (_, i) => `GET /n${i} ${sha(new Uint8Array())}\n`),
      );
      assert.equal(sha(await (await fetch(`${url}/large`)).bytes()), sha(LARGE));
      const sent = await fetch(`${url}/up`, { method: 'POST', body: LARGE });
      assert.equal(await sent.text(), `POST /up ${sha(LARGE)}\n`);
      command.interrupt();
      await command.outcome;
      assert.deepEqual(
        node.seen.slice(before).map(({ path }) => path),
        ['/portForward/default/guest'],
      );
    });

    // S-224
    test(`kubectl 1.${kubectl.minor} port-forward: a port nobody listens on is an error and no end`, {
      skip,
    }, async () => {
      const command = start(kubectl, 'port-forward pod/guest :9');
      const url = await localOf(command, /Forwarding from (127\.0\.0\.1:\d+) -> 9/);
      await assert.rejects(fetch(url));
      command.interrupt();
      const { stderr } = await command.outcome;
      assert.match(stderr, /error forwarding port 9 to pod guest/);
    });
  }
}

/** A guest's port through the server's proxy, asked for raw and by `kubectl proxy`. */
export function testProxy(kubectls: readonly Kubectl[]): void {
  for (const kubectl of kubectls) {
    // S-224
    test(`kubectl 1.${kubectl.minor} get --raw and kubectl proxy reach the guest`, { skip }, async () => {
      const raw = await runKubectl(
        kubectl,
        ['get', '--raw', '/api/v1/namespaces/default/pods/http:guest:8080/proxy/a/b?c=d'],
        { env, cwd: folder },
      );
      assert.equal(raw.stdout, `GET /a/b?c=d ${sha(new Uint8Array())}\n`, raw.stderr);
      const command = start(kubectl, 'proxy --port=0');
      const url = await localOf(command, /Starting to serve on (127\.0\.0\.1:\d+)/);
      const page = `${url}/api/v1/namespaces/default/pods/guest:8080/proxy`;
      assert.equal(sha(await (await fetch(`${page}/large`)).bytes()), sha(LARGE));
      const body = LARGE.subarray(0, 2 * 1024 * 1024);
      const sent = await fetch(`${page}/up`, { method: 'PUT', body });
      assert.equal(await sent.text(), `PUT /up ${sha(body)}\n`);
      command.interrupt();
      await command.outcome;
      const closed = await runKubectl(kubectl, ['get', '--raw', '/api/v1/namespaces/default/pods/guest:9/proxy/'], {
        env,
        cwd: folder,
      });
      assert.equal(closed.code, 1);
      assert.match(closed.stderr, /error trying to reach service: connect ECONNREFUSED/);
    });
  }
}
