/**
 * What typed Go clients do: objects as protobuf over HTTP/2 with TLS. The messages are written here by field number, with
 * nothing of the server's own encoder, and read back the same way.
 */
import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect } from 'node:http2';
import { after, before, test } from 'node:test';
import protobuf from 'protobufjs/minimal.js';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const MAPS = '/api/v1/namespaces/default/configmaps';
let plane: TestPlane;
let tls: TlsServer;
let session: ClientHttp2Session;
before(async () => {
  const authority = await newAuthority();
  plane = await startPlane({ clientCa: authority.certificate });
  const admin = await authority.issue({
    commonName: 'admin',
    organizations: ['system:masters'],
    usage: 'client',
    days: 1,
  });
  tls = await listenTls(plane.plane.handler, authority);
  session = connect(`https://127.0.0.1:${tls.port}`, {
    ca: authority.certificate,
    cert: admin.certificate,
    key: admin.key,
  });
});
after(async () => {
  session.close();
  await tls.close(100);
  await plane.stop();
});

type Fields = Map<number, Uint8Array[]>;

/** The length-delimited fields of a message, by number. */
function fieldsOf(bytes: Uint8Array): Fields {
  const reader = protobuf.Reader.create(bytes);
  const fields: Fields = new Map();
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if ((tag & 7) === 2) fields.set(tag >>> 3, [...(fields.get(tag >>> 3) ?? []), reader.bytes()]);
    else reader.skipType(tag & 7);
  }
  return fields;
}
const textOf = (fields: Fields, number: number): string => new TextDecoder().decode(fields.get(number)?.[0]);

/** runtime.Unknown behind the four magic bytes. */
function envelope(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const type = protobuf.Writer.create().uint32(10).string(apiVersion).uint32(18).string(kind).finish();
  const unknown = protobuf.Writer.create().uint32(10).bytes(type).uint32(18).bytes(raw).finish();
  return new Uint8Array([0x6b, 0x38, 0x73, 0, ...unknown]);
}
function opened(bytes: Uint8Array): { kind: string; raw: Fields } {
  assert.deepEqual([...bytes.subarray(0, 4)], [0x6b, 0x38, 0x73, 0]);
  const unknown = fieldsOf(bytes.subarray(4));
  return { kind: textOf(fieldsOf(unknown.get(1)![0]!), 2), raw: fieldsOf(unknown.get(2)![0]!) };
}

/** ConfigMap: metadata = 1 (name = 1, namespace = 3, resourceVersion = 6, labels = 11), data = 2. */
function configMap(name: string, data: Record<string, string>, resourceVersion = ''): Uint8Array {
  const entry = (key: string, value: string): Uint8Array =>
    protobuf.Writer.create().uint32(10).string(key).uint32(18).string(value).finish();
  const meta = protobuf.Writer.create().uint32(10).string(name).uint32(26).string('default');
  if (resourceVersion) meta.uint32(50).string(resourceVersion);
  meta.uint32(90).bytes(entry('wire', 'protobuf'));
  const message = protobuf.Writer.create().uint32(10).bytes(meta.finish());
  for (const [key, value] of Object.entries(data)) message.uint32(18).bytes(entry(key, value));
  return envelope('v1', 'ConfigMap', message.finish());
}
const dataOf = (raw: Fields): Record<string, string> =>
  Object.fromEntries(
    (raw.get(2) ?? []).map((entry) => [textOf(fieldsOf(entry), 1), textOf(fieldsOf(entry), 2)] as const),
  );

function call(
  method: string,
  path: string,
  body?: Uint8Array,
): Promise<{ status: number; type: string; bytes: Buffer }> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': method,
      ':path': path,
      accept: PROTOBUF,
      ...(body && { 'content-type': PROTOBUF }),
    });
    const chunks: Buffer[] = [];
    let status = 0;
    let type = '';
    stream.on('response', (headers) => {
      status = headers[':status']!;
      type = headers['content-type'] ?? '';
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => resolve({ status, type, bytes: Buffer.concat(chunks) }));
    stream.on('error', reject);
    stream.end(body);
  });
}

test('create, get, update, list and delete', async () => {
  const made = await call('POST', MAPS, configMap('p', { a: '1', 'b.c': 'ü€' }));
  assert.deepEqual([made.status, made.type], [201, PROTOBUF]);
  const object = opened(made.bytes);
  assert.equal(object.kind, 'ConfigMap');
  assert.deepEqual(dataOf(object.raw), { a: '1', 'b.c': 'ü€' });
  const meta = fieldsOf(object.raw.get(1)![0]!);
  assert.deepEqual([textOf(meta, 1), textOf(meta, 3)], ['p', 'default']);
  const version = textOf(meta, 6);
  assert.match(version, /^\d+$/);
  const seen = await plane.admin(`GET ${MAPS}/p`);
  assert.deepEqual([seen.data, seen.metadata.labels], [{ a: '1', 'b.c': 'ü€' }, { wire: 'protobuf' }]);

  const updated = await call('PUT', `${MAPS}/p`, configMap('p', { a: '2' }, version));
  assert.equal(updated.status, 200);
  assert.deepEqual(dataOf(opened(updated.bytes).raw), { a: '2' });
  const stale = await call('PUT', `${MAPS}/p`, configMap('p', { a: '3' }, version));
  assert.equal(stale.status, 409);
  const status = opened(stale.bytes);
  assert.deepEqual([status.kind, textOf(status.raw, 2), textOf(status.raw, 4)], ['Status', 'Failure', 'Conflict']);

  const list = opened((await call('GET', `${MAPS}?labelSelector=wire=protobuf`)).bytes);
  assert.equal(list.kind, 'ConfigMapList');
  assert.deepEqual(
    list.raw.get(2)!.map((item) => dataOf(fieldsOf(item))),
    [{ a: '2' }],
  );
  assert.equal((await call('DELETE', `${MAPS}/p`)).status, 200);
  assert.equal((await call('GET', `${MAPS}/p`)).status, 404);
});

test('a watch tells frames of length and event', { timeout: 600_000 }, async () => {
  const stream = session.request({
    ':path': `${MAPS}?watch=true&labelSelector=wire%3Dprotobuf`,
    accept: `${PROTOBUF};stream=watch`,
  });
  let rest = Buffer.alloc(0);
  const events: { type: string; name: string }[] = [];
  let wake = (): void => {};
  stream.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32BE(0)) {
      const end = 4 + rest.readUInt32BE(0);
      const event = fieldsOf(rest.subarray(4, end));
      rest = rest.subarray(end);
      const { raw } = opened(fieldsOf(event.get(2)![0]!).get(1)![0]!);
      events.push({ type: textOf(event, 1), name: textOf(fieldsOf(raw.get(1)![0]!), 1) });
      wake();
    }
  });
  await new Promise((begun) => stream.once('response', begun));
  await call('POST', MAPS, configMap('w', { a: '1' }));
  await call('PUT', `${MAPS}/w`, configMap('w', { a: '2' }));
  await call('DELETE', `${MAPS}/w`);
  while (events.length < 3) {
    await new Promise<void>((done) => {
      wake = done;
    });
  }
  assert.deepEqual(events, [
    { type: 'ADDED', name: 'w' },
    { type: 'MODIFIED', name: 'w' },
    { type: 'DELETED', name: 'w' },
  ]);
  stream.close();
});
