import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ApiRequest, type ApiResponse, NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

/** A node that answers for one Pod; what it was asked is kept. */
const asked: ApiRequest[] = [];
const node = async (request: ApiRequest): Promise<ApiResponse> => {
  asked.push(request);
  if (!request.path.includes('/here')) return { status: 404, headers: {} };
  if (request.upgradable) return { status: 101, headers: {}, upgrade: { protocol: 'own', accept: () => {} } };
  const type = request.query.includes('sinceSeconds') ? 'text/html' : 'text/plain';
  return {
    status: 200,
    headers: { 'content-type': type, 'set-cookie': 'a=b' },
    body: Buffer.from(`log of ${request.path}`),
  };
};

let server: InProcessServer;
before(async () => {
  server = await startServer({
    connectNode: async (name) => {
      if (name === 'silent') throw new Error('connection refused');
      return node;
    },
  });
  for (const [name, nodeName] of [
    ['here', 'node1'],
    ['elsewhere', 'node1'],
    ['lost', 'silent'],
  ]) {
    await server.create('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { nodeName, containers: [{ name: 'c', image: 'i' }] },
    });
  }
});
after(() => server.stop());

const PODS = '/api/v1/namespaces/default/pods';
const log = (pod: string, query = '') =>
  server.request('GET', `${PODS}/${pod}/log${query}`, { headers: { authorization: 'Bearer secret', cookie: 'a=b' } });

// S-171: Logs come from the node of the Pod, and ports of a guest are forwarded by `kubectl`.
test('a log comes from the node of the Pod, which sees the options and no credentials', async () => {
  const { status, text } = await log('here', '?tailLines=5&follow=false');
  assert.deepEqual([status, text], [200, 'log of /containerLogs/default/here/c']);
  const last = asked.at(-1)!;
  assert.equal(last.query, 'tailLines=5&follow=false');
  assert.deepEqual([last.headers['authorization'], last.headers['cookie']], [undefined, undefined]);
});

// S-827: A log that is asked of the API server is text, whatever its node calls it: a guest's words, or a node's, are
//   no page of the server's origin.
test('a log is text of nobody’s page, whatever the node calls it', async () => {
  for (const query of ['', '?sinceSeconds=5', '?sinceSeconds=5&container=unknown']) {
    const { status, headers } = await log('here', query);
    assert.deepEqual(
      [status, headers['content-type'], headers['x-content-type-options'], headers['set-cookie']],
      [200, 'text/plain', 'nosniff', undefined],
    );
  }
});

test('a log that no container stands for may be asked of the node; a container nobody knows is refused', async () => {
  assert.equal(
    (await log('here', '?container=guest-console-log')).text,
    'log of /containerLogs/default/here/guest-console-log',
  );
  const { status, json } = await log('elsewhere', '?container=nothing');
  assert.deepEqual([status, json.message], [400, 'container nothing is not valid for pod elsewhere']);
  const lost = await log('lost', '?container=nothing');
  assert.deepEqual([lost.status, lost.json.message], [400, 'container nothing is not valid for pod lost']);
});

test('a Pod the node does not know has not started; a node that is out of reach is a failure', async () => {
  const waiting = await log('elsewhere');
  assert.equal(waiting.status, 400);
  assert.match(waiting.json.message, /container "c" in pod "elsewhere" is waiting to start: ContainerCreating/);
  const lost = await log('lost');
  assert.equal(lost.status, 500);
  assert.match(lost.json.message, /error dialing backend: connection refused/);
});

test('ports of a Pod that does not run, or without an upgrade, are not forwarded', async () => {
  const forward = () => server.request('POST', `${PODS}/here/portforward`);
  assert.match(
    (await forward()).json.message,
    /unable to forward port because pod is not running. Current status=Pending/,
  );
  await server.request('PATCH', `${PODS}/here/status`, { body: { status: { phase: 'Running' } } });
  const { status, json } = await forward();
  assert.deepEqual([status, json.message], [400, 'Upgrade request required']);
});

test('SPDY is agreed on as httpstream does, and the node is asked over a WebSocket', async () => {
  await server.request('PATCH', `${PODS}/here/status`, { body: { status: { phase: 'Running' } } });
  const ask = (upgradeTo: string, headers: Record<string, string>): Promise<ApiResponse> =>
    server.handler({
      method: 'POST',
      path: `${PODS}/here/portforward`,
      query: '',
      headers: { connection: 'Upgrade', upgrade: upgradeTo, authorization: 'Bearer secret', ...headers },
      body: NO_BYTES,
      peer: { address: '' },
      signal: NEVER,
      upgradeTo,
    });
  const textOf = ({ body }: ApiResponse): string => Buffer.concat([body as Uint8Array].flat()).toString();
  const version = (value: string) => ({ 'x-stream-protocol-version': value });
  const before = asked.length;
  const odd = await ask('h2c', version('portforward.k8s.io'));
  assert.deepEqual([odd.status, odd.upgrade], [400, undefined]);
  const silent = await ask('SPDY/3.1', {});
  assert.equal(silent.status, 400);
  assert.match(textOf(silent), /X-Stream-Protocol-Version is required/);
  const strange = await ask('SPDY/3.1', version('v9.other, v8.other'));
  assert.equal(strange.status, 403);
  assert.equal(strange.headers['x-accept-stream-protocol-versions'], 'portforward.k8s.io');
  assert.match(textOf(strange), /client supports \[v9\.other v8\.other\], server accepts \[portforward\.k8s\.io\]/);
  assert.equal(asked.length, before, 'the node is not asked before');

  const agreed = await ask('spdy/3.1', version('v9.other, portforward.k8s.io'));
  assert.equal(agreed.status, 101);
  assert.equal(agreed.headers['x-stream-protocol-version'], 'portforward.k8s.io');
  assert.deepEqual([agreed.upgrade?.protocol, agreed.upgrade?.raw], ['SPDY/3.1', true]);
  const last = asked.at(-1)!;
  assert.deepEqual(
    [last.method, last.path, last.upgradable, last.upgradeTo, last.headers['sec-websocket-protocol']],
    ['GET', '/portForward/default/here', true, undefined, 'spdy-3.1.portforward.k8s.io'],
  );
  assert.equal(last.headers['authorization'], undefined);
});

/** A log over a WebSocket: the sub-protocol agreed on, and the messages until it is closed; or the refusal's status. */
async function overSocket(pod: string, protocols: string, query = '') {
  const answer = await server.handler({
    method: 'GET',
    path: `${PODS}/${pod}/log`,
    query,
    headers: { 'sec-websocket-protocol': protocols, 'sec-websocket-key': 'k' },
    body: NO_BYTES,
    peer: { address: '' },
    signal: NEVER,
    upgradable: true,
  });
  if (!answer.upgrade) return { status: answer.status };
  const messages: (Uint8Array | string)[] = [];
  const { accept, protocol } = answer.upgrade;
  const code = await new Promise<number | undefined>((close) => {
    accept({
      protocol,
      buffered: 0,
      send: (data) => messages.push(data),
      close,
      onMessage: () => {},
      onClose: () => {},
    });
  });
  return { status: answer.status, protocol, messages: messages.map((one) => one.toString()), code };
}

for (const { name, protocols, expected } of [
  {
    name: 'in bytes',
    protocols: 'binary.k8s.io',
    expected: ['', 'log of /containerLogs/default/here/c'],
  },
  { name: 'without a sub-protocol', protocols: '', expected: ['', 'log of /containerLogs/default/here/c'] },
  {
    name: 'in base64',
    protocols: 'nobody.knows, base64.binary.k8s.io',
    expected: ['', Buffer.from('log of /containerLogs/default/here/c').toString('base64')],
  },
]) {
  // Compat Pods, nodes, drain, P2, yes: log over a WebSocket, `binary.k8s.io` and `base64.binary.k8s.io`
  test(`a log over a WebSocket ${name} ends with the log`, async () => {
    const { status, protocol, messages, code } = await overSocket('here', protocols);
    assert.deepEqual([status, code], [101, 1000]);
    assert.equal(protocol, protocols.split(', ').at(-1));
    assert.deepEqual(
      messages?.map((one) => Buffer.from(one).toString()),
      expected,
    );
    assert.equal(asked.at(-1)!.upgradable, false);
  });
}

test('a log over a WebSocket that is refused, or whose protocols nobody speaks, is answered plainly', async () => {
  assert.equal((await overSocket('here', 'nobody.knows')).status, 403);
  assert.equal((await overSocket('here', '', 'container=nothing&tailLines=-1')).status, 422);
  assert.equal((await overSocket('nobody', '')).status, 404);
});
