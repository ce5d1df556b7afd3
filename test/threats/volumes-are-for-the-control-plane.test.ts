/**
 * Who reaches an agent's port asks for volumes only as the control plane: not an external API server that may do
 * everything else with the node, not who may use `nodes/proxy`, and nobody by a handle that is a path.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createNodeHandler } from '../../packages/node-agent/src/agent/requests/handler.ts';
import { PROXY_PATH_HEADER } from '../../packages/node-agent/src/agent/requests/pod-proxy.ts';
import { createVolumeReader } from '../../packages/node-agent/src/export/volume-content.ts';
import { createFills } from '../../packages/node-agent/src/fill/fills.ts';
import { openImageStore } from '../../packages/node-agent/src/image/image-store.ts';
import { openPool, type Pool } from '../../packages/node-agent/src/storage/pool.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { type ApiHandler, type ApiRequest, NEVER } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';

const VOLUME = '00000000-0000-4000-8000-000000000001';
const RAW = { handle: VOLUME, bytes: 1024 * 1024, mode: 'Filesystem', format: 'raw' };

let directory: string;
let pool: Pool;
let handler: ApiHandler;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-calls-'));
  pool = await openPool({ directory: join(directory, 'claims'), clock: systemClock, log: silentLogger, signal: NEVER });
  const images = await openImageStore(join(directory, 'images'), { clock: systemClock, log: silentLogger });
  const fills = createFills({ pool, images, clock: systemClock, log: silentLogger, signal: NEVER });
  const volumes = createVolumeReader(pool, systemClock);
  handler = createNodeHandler({
    find: () => undefined,
    findPod: () => undefined,
    directoryOf: () => '',
    memoryDirectory: directory,
    metrics: async () => [],
    node: { nodeName: 'n', dataDir: directory, pods: () => [] },
    pool: () => pool,
    fills: () => fills,
    volumes: () => volumes,
    // As on an external cluster: its API server may do everything that a kubelet lets it.
    authorize: ({ peer }) => peer.certificate?.verified === true,
    isControlPlane: ({ peer }) => peer.certificate?.verified === true && peer.certificate.commonName === 'virt-api',
    clock: systemClock,
    log: silentLogger,
  });
});
after(async () => {
  await pool.close();
  await rm(directory, { recursive: true });
});

async function ask(call: string, body: unknown, more: Partial<ApiRequest> & { readonly as?: string } = {}) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const certificate = { verified: true, commonName: more.as ?? 'virt-api', organizations: [], fingerprint: '' };
  const { status, body: answer } = await handler({
    method: 'POST',
    path: `/storage/v1/${call}`,
    query: '',
    headers: {},
    body: new TextEncoder().encode(text),
    peer: { address: '192.0.2.1', certificate },
    signal: NEVER,
    ...more,
  });
  const said = new TextDecoder().decode(answer as Uint8Array);
  return { status, said, reason: said.startsWith('{') ? (JSON.parse(said) as { reason?: string }).reason : undefined };
}

// S-547: Only the control plane asks an agent for volumes; handles are no paths, and calls have a bound.
test('volumes are made and inspected for the control plane, and for nobody else', async () => {
  for (const call of ['createVolume', 'deleteVolume', 'inspect', 'nothing']) {
    assert.equal((await ask(call, RAW, { as: 'kube-apiserver' })).status, 403, call);
    assert.equal((await ask(call, RAW, { peer: { address: '127.0.0.1' } })).status, 403, call);
  }
  const proxied = { path: '/nodeProxy', method: 'GET', headers: { [PROXY_PATH_HEADER]: '/storage/v1/inspect' } };
  assert.equal((await ask('', '', proxied)).status, 404);
  assert.deepEqual(await readdir(pool.directory), ['pool.json']);

  assert.equal((await ask('createVolume', RAW)).said, `{"handle":"${VOLUME}","bytes":1048576,"format":"raw"}\n`);
  const held = JSON.parse((await ask('inspect', '')).said) as { pool: string; volumes: { handle: string }[] };
  assert.deepEqual([held.pool, held.volumes.map(({ handle }) => handle)], [pool.id, [VOLUME]]);
  assert.equal((await ask('expandVolume', { handle: VOLUME, bytes: 2 ** 21 })).status, 200);
  assert.equal((await ask('deleteVolume', { handle: VOLUME })).said, '{}\n');
});

// S-547
test('what is no call, too large, or a path in place of a handle is refused with its reason', async () => {
  const cases: [call: string, body: unknown, status: number, reason?: string][] = [
    ['nothing', {}, 404, 'NotFound'],
    ['constructor', {}, 404, 'NotFound'],
    ['createVolume', '[]', 400],
    ['createVolume', '{', 400],
    ['createVolume', `"${'x'.repeat(64 * 1024)}"`, 413],
    ['createVolume', { ...RAW, handle: '../../etc' }, 422, 'Invalid'],
    ['createVolume', { ...RAW, handle: `${VOLUME}/x` }, 422, 'Invalid'],
    ['createVolume', { ...RAW, format: 'vmdk' }, 422, 'Invalid'],
    ['createVolume', { ...RAW, bytes: -1 }, 422, 'Invalid'],
    ['createVolume', { ...RAW, bytes: '1' }, 422, 'Invalid'],
    ['createVolume', { ...RAW, source: { kind: 'snapshot', handle: '..' } }, 422, 'Invalid'],
    ['createVolume', { ...RAW, source: { kind: 'file', handle: VOLUME } }, 404, 'NotFound'],
    ['createSnapshots', { snapshots: 'all' }, 422, 'Invalid'],
    ['createSnapshots', { snapshots: [null] }, 422, 'Invalid'],
    ['createSnapshots', { snapshots: [{ handle: VOLUME, volume: '__proto__' }] }, 422, 'Invalid'],
    ['deleteVolume', {}, 422, 'Invalid'],
    ['expandVolume', { handle: VOLUME, bytes: 1 }, 404, 'NotFound'],
  ];
  for (const [call, body, status, reason] of cases) {
    const answer = await ask(call, body);
    const text = `${call} ${JSON.stringify(body).slice(0, 80)}: ${answer.said}`;
    assert.equal(answer.status, status, text);
    if (reason) assert.equal(answer.reason, reason, text);
  }
  assert.equal((await ask('inspect', '', { method: 'GET' })).status, 405);
  const content = { method: 'GET', query: 'file=../pool.json' };
  for (const handle of ['../../etc/passwd', `${VOLUME}/..`, '__proto__', '', VOLUME]) {
    const answer = await ask(`content/${handle}`, '', content);
    assert.ok([404, 422].includes(answer.status), `${handle}: ${answer.status}`);
    assert.equal((await ask(`content/${handle}`, '', { ...content, as: 'kube-apiserver' })).status, 403);
  }
  assert.deepEqual(await readdir(pool.directory), ['pool.json']);
});
