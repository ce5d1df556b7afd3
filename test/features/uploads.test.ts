/** Uploads as `virtctl image-upload` makes them: its requests in its order, with real bytes, to a real pool. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { ClientRequest } from 'node:http';
import { request as https } from 'node:https';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createUploadTokens } from '../../packages/coracle/src/upload-proxy/upload-tokens.ts';
import { NEVER } from '../../packages/runtime/src/http/seam.ts';
import { run } from '../../packages/runtime/src/process/run.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FillPlane, startFillPlane } from '../testkit/fill-plane.ts';
import type { Row } from '../testkit/storage-plane.ts';

const MIB = 1024 * 1024;
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const TOKENS = '/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/default/uploadtokenrequests';
const SIZE = { resources: { requests: { storage: '16Mi' } } };
const image = Buffer.concat([randomBytes(3 * MIB), Buffer.alloc(2 * MIB), randomBytes(MIB)]);

let plane: FillPlane;
before(async () => {
  plane = await startFillPlane();
});
after(() => plane?.stop());

const ready = ({ status }: Row): boolean => status?.phase === 'UploadReady';
const succeeded = ({ status }: Row): boolean => status?.phase === 'Succeeded';
const isImage = (content: Buffer): boolean =>
  content.length === 16 * MIB && content.subarray(0, image.length).equals(image);
const annotation = (name: string) => (claim: Row) =>
  claim['metadata']?.annotations?.[`cdi.kubevirt.io/storage.pod.${name}`];
const phaseOf = annotation('phase');

const tokenFor = async (pvcName: string): Promise<string> =>
  (
    await plane.admin(`POST ${TOKENS}`, {
      apiVersion: 'upload.cdi.kubevirt.io/v1beta1',
      kind: 'UploadTokenRequest',
      metadata: { name: 'token-for-virtctl' },
      spec: { pvcName },
    })
  ).status.token;

interface Sending {
  readonly method?: string;
  readonly path?: string;
  readonly token?: string;
  readonly headers?: Record<string, string | number>;
}

/** Opens a request; its answer, or why there is none, comes with the promise. */
function open({ method = 'POST', path = '/v1beta1/upload-async', token, headers = {} }: Sending): {
  readonly request: ClientRequest;
  readonly answer: Promise<{ readonly status: number; readonly text: string }>;
} {
  const { port, ca } = plane.uploads;
  const request = https({
    host: '127.0.0.1',
    port,
    ca,
    method,
    path,
    agent: false,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      'content-type': 'application/octet-stream',
      ...headers,
    },
  });
  const answer = new Promise<{ status: number; text: string }>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
  });
  answer.catch(() => {});
  return { request, answer };
}

async function send(bytes: Uint8Array, sending: Sending): Promise<{ status: number; text: string }> {
  const { request, answer } = open({ ...sending, headers: { 'content-length': bytes.length, ...sending.headers } });
  request.end(bytes);
  return answer;
}

/** What virtctl does once it has made the DataVolume or the claim. */
async function uploadAs(name: string, bytes: Uint8Array): Promise<{ status: number; text: string }> {
  const config = await plane.settled('/apis/cdi.kubevirt.io/v1beta1/cdiconfigs/config', ({ status }) => status);
  assert.equal(config.status.uploadProxyURL, `https://127.0.0.1:${plane.uploads.port}`);
  assert.equal(config.status.uploadProxyCA, plane.uploads.ca);
  const token = await tokenFor(name);
  const probe = open({ method: 'HEAD', token });
  probe.request.end();
  assert.equal((await probe.answer).status, 200, 'the asynchronous path is served');
  return send(bytes, { token });
}

const awaited = async (name: string): Promise<Row> => {
  await plane.dataVolume(name, { source: { upload: {} } });
  return plane.dataVolumeSettled(name, ready);
};

const isPart = (names: readonly string[]): boolean => names.join() === 'part';
const isNothing = (names: readonly string[]): boolean => names.length === 0;
/** Files of the pool that belong to a claim whose upload did not end well. */
const leftOf = async (name: string): Promise<string[]> =>
  readdir(join(plane.directory, 'claims', await plane.handleOf(name), 'fill')).catch(() => []);

// S-1240: An image is uploaded to a DataVolume with source `upload` by the requests of `virtctl image-upload`: the DataVolume
//   is UploadReady, an UploadTokenRequest gives a token, the proxy that CDIConfig names takes the bytes, and the claim is bound
//   once its content is whole.
test('virtctl image-upload dv', async () => {
  await plane.dataVolume('dv', { source: { upload: {} } });
  const waiting = await plane.dataVolumeSettled('dv', ready);
  assert.equal(waiting['status'].conditions.find(({ type }: Row) => type === 'Running').status, 'True');
  const claim = await plane.admin(`GET ${CLAIMS}/dv`);
  assert.equal(claim.metadata.annotations['cdi.kubevirt.io/storage.upload.target'], '');
  assert.equal(claim.status.phase, 'Pending');
  const answer = await uploadAs('dv', image);
  assert.deepEqual(answer, { status: 200, text: '' });
  await plane.settled(`${CLAIMS}/dv`, (row) => phaseOf(row) === 'Succeeded' && annotation('ready')(row) === 'false');
  const done = await plane.dataVolumeSettled('dv', succeeded);
  assert.equal(done['status'].progress, '100.0%');
  assert.ok(isImage(await plane.contentOf('dv')), 'the guest reads what was sent');
  for (const [reason, message] of [
    ['UploadReady', /^Upload into dv ready$/],
    ['UploadSucceeded', /^Successfully uploaded into dv$/],
  ] as const)
    await plane.reported('dv', reason, message);
});

// S-1240
test('virtctl image-upload pvc, without a DataVolume', async () => {
  await plane.admin(`POST ${CLAIMS}`, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'pvc',
      annotations: { 'cdi.kubevirt.io/storage.upload.target': '', 'cdi.kubevirt.io/storage.contentType': 'kubevirt' },
    },
    spec: { accessModes: ['ReadWriteOnce'], ...SIZE },
  });
  await plane.settled(`${CLAIMS}/pvc`, (row) => annotation('ready')(row) === 'true' && phaseOf(row) === 'Running');
  assert.equal((await uploadAs('pvc', gzipSync(image))).status, 200);
  await plane.settled(`${CLAIMS}/pvc`, (row) => phaseOf(row) === 'Succeeded' && row['status'].phase === 'Bound');
  assert.ok(isImage(await plane.contentOf('pvc')), 'it was unpacked');
});

// S-1240
test('a claim that is bound already says why no upload can go there', async () => {
  await plane.claim('bound', SIZE);
  await plane.settled(`${CLAIMS}/bound`, ({ status }) => status?.phase === 'Bound');
  // virtctl image-upload pvc bound --no-create
  await plane.admin(`PATCH ${CLAIMS}/bound`, {
    metadata: { annotations: { 'cdi.kubevirt.io/storage.upload.target': '' } },
  });
  await plane.reported('bound', 'ProvisioningFailed', /bound already/);
});

// S-1240
test('the older, synchronous path answers when the claim is full', async () => {
  await awaited('sync');
  const file = join(plane.directory, 'sync.qcow2');
  await writeFile(join(plane.directory, 'sync.img'), image);
  const made = await run(['qemu-img', 'convert', '-O', 'qcow2', join(plane.directory, 'sync.img'), file], {
    signal: NEVER,
    timeoutMs: 60_000,
  });
  assert.ok(made.ok);
  const token = await tokenFor('sync');
  assert.equal((await send(await readFile(file), { token, path: '/v1beta1/upload' })).status, 200);
  assert.ok(plane.realPool.has(await plane.handleOf('sync')));
  await plane.dataVolumeSettled('sync', succeeded);
  assert.ok(isImage(await plane.contentOf('sync')));
  const late = await send(image, { token });
  assert.equal(late.status, 503, 'a claim that is full takes no second upload');
});

// S-1241: A token is for one claim and five minutes: without one the upload proxy answers 400, with one that is over, another's
//   or for an earlier claim of the name 401; who may not create uploadtokenrequests gets none.
test('tokens', async () => {
  await awaited('guarded');
  await awaited('other');
  const { signingKey } = plane.uploads;
  const uid = await plane.handleOf('guarded');
  const earlier = await createUploadTokens(signingKey, () => Date.now() - 301_000);
  const foreign = await createUploadTokens('another key', () => Date.now());
  const claim = { namespace: 'default', name: 'guarded', uid };
  const own = await tokenFor('guarded');
  const rows: readonly (readonly [string, string | undefined, number])[] = [
    ['none', undefined, 400],
    ['no token', 'a b', 400],
    ['one that is over', await earlier.sign(claim), 401],
    ['one of another key', await foreign.sign(claim), 401],
    ['a changed one', `${own.slice(0, -4)}AAAA`, 401],
    [
      'one of an earlier claim',
      await (await createUploadTokens(signingKey, () => Date.now())).sign({ ...claim, uid: 'u' }),
      401,
    ],
  ];
  for (const [what, token, status] of rows)
    assert.equal((await send(image, { ...(token !== undefined && { token }) })).status, status, what);
  // The token says which claim is meant, whatever else a request says.
  assert.equal((await send(image, { token: own })).status, 200);
  await plane.dataVolumeSettled('guarded', succeeded);
  assert.equal((await plane.admin(`GET ${CLAIMS}/other`)).status.phase, 'Pending');

  const asked = { as: ['jane'], body: { spec: { pvcName: 'other' } } } as const;
  assert.equal((await plane.ask(`POST ${TOKENS}`, asked)).status, 403);
  const missing = await plane.ask(`POST ${TOKENS}`, {
    as: ['a', 'system:masters'],
    body: { spec: { pvcName: 'none' } },
  });
  assert.equal(missing.status, 404);
  const asApi = await plane.ask('GET /api/v1/pods', { headers: { authorization: `Bearer ${own}` } });
  assert.equal(asApi.status, 401, 'it opens nothing but the upload');
});

// S-1242: An upload that breaks off, is too large, is no image or comes beside another one is refused with its reason, leaves
//   nothing in the pool, and the claim takes the next one.
test('an upload that breaks off leaves nothing, and the next one is taken', async () => {
  await awaited('broken');
  const token = await tokenFor('broken');
  const { request } = open({ token, headers: { 'content-length': image.length } });
  request.write(image.subarray(0, 2 * MIB));
  await eventually(() => leftOf('broken'), isPart);
  // Another one beside it.
  const beside = await send(image, { token });
  assert.equal(beside.status, 503);
  assert.match(beside.text, /another upload/);
  request.destroy();
  await plane.reported('broken', 'UploadFailed');
  await plane.reported('broken', 'Error', /broke off after \d+ of \d+ bytes/);
  await eventually(() => leftOf('broken'), isNothing);
  const dv = await plane.dataVolumeSettled('broken', ({ status }) => status.restartCount === 1);
  assert.equal(dv['status'].phase, 'UploadReady');
  assert.equal((await send(image, { token })).status, 200);
  await plane.dataVolumeSettled('broken', succeeded);
  assert.ok(isImage(await plane.contentOf('broken')));
});

// S-1242
test('what is no image for the claim', async () => {
  await awaited('refused');
  const token = await tokenFor('refused');
  const tar = Buffer.alloc(MIB);
  tar.write('ustar', 257);
  const large = Buffer.alloc(17 * MIB, 1);
  const rows: readonly (readonly [Uint8Array, Sending, number, RegExp])[] = [
    [tar, {}, 400, /OVA or tar archive/],
    [Buffer.from('<html>'.repeat(900)), {}, 400, /text file/],
    [large, {}, 400, /larger than the reported available storage/],
    [image, { headers: { 'content-length': 200 * MIB } }, 413, /room for an image/],
    [image, { path: '/v1beta1/upload-form' }, 404, /upload/],
    [image, { method: 'PUT' }, 404, /POST/],
  ];
  for (const [bytes, sending, status, words] of rows) {
    const answer = await send(bytes, { token, ...sending });
    assert.equal(answer.status, status, String(words));
    assert.match(answer.text, words);
    assert.deepEqual(await leftOf('refused'), [], String(words));
  }
  const { request, answer } = open({ token, headers: { 'transfer-encoding': 'chunked' } });
  request.end(image);
  assert.equal((await answer).status, 411);
  await plane.dataVolumeSettled('refused', ({ status }) => status.restartCount >= 1);
  // After all that the claim still takes an image.
  assert.equal((await send(image, { token, path: '/v1beta1/upload' })).status, 200);
});

// S-1242
test('a DataVolume that is deleted in the middle of its upload', async () => {
  await awaited('deleted');
  const uid = await plane.handleOf('deleted');
  const { request, answer } = open({ token: await tokenFor('deleted'), headers: { 'content-length': image.length } });
  request.write(image.subarray(0, 2 * MIB));
  await eventually(() => leftOf('deleted'), isPart);
  await plane.admin('DELETE /apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes/deleted');
  request.write(image.subarray(2 * MIB, 3 * MIB));
  await answer.then(
    ({ status }) => assert.ok(status >= 400),
    () => {},
  );
  await eventually(
    () => readdir(join(plane.directory, 'claims')),
    (handles) => !handles.includes(uid),
  );
  request.destroy();
});
