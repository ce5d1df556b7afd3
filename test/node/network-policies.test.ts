/** NetworkPolicies hold for real guests: between them, and on their way out. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { NETWORK_POLICIES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, kernelSpec, NAMESPACE, startBoard } from './board.ts';
import { type Shell, shell } from './shell.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

/** A guest that others reach at its port 8080 alone, as its interface lists it. */
async function guest(name: string): Promise<{ sh: Shell; address: string }> {
  await board.createVmi(name, kernelSpec({ terminationGracePeriodSeconds: 0 }));
  const vmi = await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  return { sh: await shell(board, name, true), address: vmi.status?.interfaces?.[0]?.ipAddress ?? '' };
}

const policy = (name: string, spec: object): Promise<KubeObject> =>
  board.client.create(NETWORK_POLICIES, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace: NAMESPACE },
    spec,
  } as KubeObject);

// S-1184
test('a NetworkPolicy closes a guest to others, and its way out, while it stands', async (t) => {
  const [a, b] = await Promise.all([guest('a'), guest('b')]);
  const pods = await board.pods();
  const labelOf = (name: string): Record<string, string> => {
    const labels = pods.find((pod) => pod.metadata.ownerReferences?.[0]?.name === name)?.metadata.labels ?? {};
    return { 'kubevirt.io/created-by': labels['kubevirt.io/created-by'] ?? '' };
  };
  const page = async (from: Shell, at: string): Promise<boolean> =>
    (await from.run(`printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 3 nc ${at}`)).includes('200 OK');
  await eventually('b answers', () => page(a.sh, `${b.address} 8080`));
  await policy('closed', { podSelector: { matchLabels: labelOf('b') } });
  await eventually('b is closed', async () => !(await page(a.sh, `${b.address} 8080`)));
  assert.match(await a.sh.run(`ping -c 1 -W 2 ${b.address}`), /100% packet loss/);
  assert.ok(await page(b.sh, `${a.address} 8080`), 'it may speak, and is answered');
  await policy('open', {
    podSelector: { matchLabels: labelOf('b') },
    ingress: [{ from: [{ podSelector: { matchLabels: labelOf('a') } }], ports: [{ port: 8080 }] }],
  });
  await eventually('a is let in', () => page(a.sh, `${b.address} 8080`));
  assert.match(await a.sh.run(`ping -c 1 -W 2 ${b.address}`), /100% packet loss/, 'to that port alone');

  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  if (outside === undefined) return;
  const server = createServer((socket) => void socket.on('error', () => {}).end('HTTP/1.0 200 OK\r\n\r\n'));
  await new Promise<void>((done) => server.listen(0, outside, done));
  t.after(() => server.close());
  const at = `${outside} ${(server.address() as { port: number }).port}`;
  await eventually('the world', () => page(a.sh, at));
  await policy('in', { podSelector: { matchLabels: labelOf('a') }, policyTypes: ['Egress'] });
  await eventually('no way out', async () => !(await page(a.sh, at)));
  for (const name of ['in', 'closed', 'open'])
    await board.client.delete(NETWORK_POLICIES, { namespace: NAMESPACE, name });
  await eventually('the way out is open again', () => page(a.sh, at));
});
