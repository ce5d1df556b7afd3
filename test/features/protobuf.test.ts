import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { encodeProtobuf, PROTOBUF } from '../../packages/apiserver/src/kinds/protobuf/documents.ts';
import { protobufBody } from '../../packages/apiserver/src/kinds/protobuf/request-body.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type ApiResponse, type ByteSink, NEVER, NO_BYTES } from '../../packages/runtime/src/http/seam.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ resources: kubevirtResources(), bodyDecoders: new Map([[PROTOBUF, protobufBody]]) });
});
after(() => server.stop());

async function call(
  method: string,
  pathAndQuery: string,
  { body = NO_BYTES, headers = {} }: { body?: Uint8Array; headers?: Record<string, string> } = {},
): Promise<{ status: number; type: string; bytes: Uint8Array; body: ApiResponse['body'] }> {
  const [path = '', query = ''] = pathAndQuery.split('?');
  const answer = await server.handler({
    method,
    path,
    query,
    headers,
    body,
    peer: { address: '' },
    signal: NEVER,
  });
  const chunks =
    typeof answer.body === 'function' ? [] : answer.body instanceof Uint8Array ? [answer.body] : answer.body;
  return {
    status: answer.status,
    type: answer.headers['content-type'] ?? '',
    bytes: Uint8Array.from((chunks ?? []).flatMap((chunk) => [...chunk])),
    body: answer.body,
  };
}

type Document = Answer['json'];
const decode = (bytes: Uint8Array): Document => protobufBody(bytes, undefined).value;
const POST = { 'content-type': PROTOBUF, accept: `${PROTOBUF},application/json` };
const ONLY = { accept: PROTOBUF };
const MAPS = '/api/v1/namespaces/default/configmaps';

const configMap = (name: string): Uint8Array =>
  encodeProtobuf({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: 'b' } })!;

// S-126: Built-in kinds are read and written as protobuf, watches included, as Go clients write them; custom resources
//   are not.
// Compat What is easily got wrong, P0, yes: 1, protobuf bodies
test('an object sent in protobuf is answered in JSON when that is welcome, in protobuf when nothing else is', async () => {
  const created = await call('POST', MAPS, { body: configMap('one'), headers: POST });
  assert.equal(created.status, 201);
  assert.equal(created.type, 'application/json');
  assert.deepEqual(JSON.parse(new TextDecoder().decode(created.bytes)).data, { a: 'b' });

  const read = await call('GET', `${MAPS}/one`, { headers: ONLY });
  assert.equal(read.type, PROTOBUF);
  assert.deepEqual(decode(read.bytes), (await server.request('GET', `${MAPS}/one`)).json);

  const list = decode((await call('GET', MAPS, { headers: ONLY })).bytes);
  assert.equal(list['kind'], 'ConfigMapList');
  assert.match(list['metadata'].resourceVersion, /^[0-9]+$/);
  assert.deepEqual(
    list['items'].map((item: Document) => item.metadata.name),
    (await server.request('GET', MAPS)).json.items.map((item: Document) => item.metadata.name),
  );
});

test('bodies that are no message are refused, and nothing is stored', async () => {
  const body = configMap('broken');
  const cut = await call('POST', MAPS, { body: body.subarray(0, body.length - 8), headers: POST });
  assert.equal(cut.status, 400);
  assert.equal(JSON.parse(new TextDecoder().decode(cut.bytes)).reason, 'BadRequest');
  assert.equal((await server.request('GET', `${MAPS}/broken`)).status, 404);
  const pod = encodeProtobuf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } })!;
  assert.equal((await call('POST', MAPS, { body: pod, headers: POST })).status, 400);
});

test('ownership that is no JSON is left out of account, as any that cannot be read', async () => {
  const entry = { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1' };
  const metadata = { name: 'trailing', managedFields: [{ ...entry, fieldsV1: { 'f:data': {}, 'f:mark': {} } }] };
  const body = encodeProtobuf({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: 'b' } })!;
  // `{"f:data":{},"f:mark":{}}` becomes a document of the same length with something behind it.
  const at = Buffer.from(body).indexOf('{"f:data"');
  body.set(new TextEncoder().encode('{"f:data":{}} {"mark":{}}'), at);
  const created = await call('POST', MAPS, { body, headers: POST });
  assert.equal(created.status, 201, new TextDecoder().decode(created.bytes));
  const { managedFields } = JSON.parse(new TextDecoder().decode(created.bytes)).metadata;
  assert.deepEqual(
    managedFields.map(({ manager, fieldsV1 }: Document) => [manager, fieldsV1]),
    [['unknown', { 'f:data': { '.': {}, 'f:a': {} } }]],
  );
});

test('options in protobuf steer a delete; its answer may be protobuf too', async () => {
  await call('POST', MAPS, { body: configMap('gone'), headers: POST });
  const options = (uid: string): Uint8Array =>
    encodeProtobuf({ kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid } })!;
  const refused = await call('DELETE', `${MAPS}/gone`, { body: options('other'), headers: { ...POST } });
  assert.equal(refused.status, 409);
  const { uid } = (await server.request('GET', `${MAPS}/gone`)).json.metadata;
  const deleted = await call('DELETE', `${MAPS}/gone`, { body: options(uid), headers: { ...POST, ...ONLY } });
  assert.equal(deleted.status, 200);
  assert.deepEqual(decode(deleted.bytes)['status'], 'Success');
});

// S-126
// Compat HTTP, P0, yes: custom resources: JSON and YAML; protobuf for metadata and Status only
test('custom resources: metadata alone has a protobuf form, the rest is 415 and 406', async () => {
  const path = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
  await server.create(path, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'w', labels: { a: 'b' } },
    spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} } } } },
  });
  assert.equal((await call('POST', path, { body: configMap('x'), headers: POST })).status, 415);
  assert.equal((await call('GET', `${path}/w`, { headers: ONLY })).status, 406);
  const partial = { accept: `${PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1` };
  const one = decode((await call('GET', `${path}/w`, { headers: partial })).bytes);
  assert.equal(one['kind'], 'PartialObjectMetadata');
  assert.deepEqual(one['metadata'].labels, { a: 'b' });
  const lists = { accept: `${PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1` };
  const list = decode((await call('GET', path, { headers: lists })).bytes);
  assert.equal(list['kind'], 'PartialObjectMetadataList');
  assert.equal(list['items'][0].metadata.name, 'w');
});

// S-355: Metadata alone comes in protobuf where that is preferred; a WatchList is never a Table.
test('metadata is protobuf where that is preferred to JSON: of one object, after a patch, in a watch', async () => {
  await call('POST', MAPS, { body: configMap('metadata'), headers: POST });
  const shape = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
  const accept = `${PROTOBUF};${shape},application/json;${shape},application/json`;
  const one = await call('GET', `${MAPS}/metadata`, { headers: { accept } });
  assert.equal(one.type, PROTOBUF);
  assert.equal(decode(one.bytes)['metadata'].name, 'metadata');
  const patched = await call('PATCH', `${MAPS}/metadata`, {
    body: new TextEncoder().encode('{"metadata":{"labels":{"a":"b"}}}'),
    headers: { accept, 'content-type': 'application/merge-patch+json' },
  });
  assert.deepEqual([patched.type, decode(patched.bytes)['metadata'].labels], [PROTOBUF, { a: 'b' }]);
  const watch = await call('GET', `${MAPS}?watch=true`, { headers: { accept } });
  assert.equal(watch.type, `${PROTOBUF};stream=watch`);
});

// S-126
// Compat Watch, P0, yes: framing in protobuf; no YAML
test('a watch in protobuf: length, event, enveloped object', async () => {
  const answer = await call('GET', `${MAPS}?watch=true&timeoutSeconds=5&fieldSelector=metadata.name%3Dwatched`, {
    headers: { accept: `${PROTOBUF};stream=watch` },
  });
  assert.equal(answer.type, `${PROTOBUF};stream=watch`);
  assert.ok(typeof answer.body === 'function');
  const gone = new AbortController();
  const frames: Uint8Array[] = [];
  let arrived = (): void => {};
  const sink: ByteSink = {
    buffered: 0,
    signal: gone.signal,
    drained: () => Promise.resolve(),
    end() {},
    write(chunk) {
      frames.push(chunk);
      arrived();
      return true;
    },
  };
  answer.body(sink);
  const next = async (): Promise<{ type: string; object: Document }> => {
    if (frames.length === 0) await new Promise<void>((done) => (arrived = done));
    const frame = frames.shift()!;
    assert.equal(new DataView(frame.buffer, frame.byteOffset).getUint32(0), frame.length - 4);
    // WatchEvent{type=1, object=2{raw=1}}: the object within is an envelope of its own.
    const start = frame.findIndex(
      (_, i) => frame[i] === 0x6b && frame[i + 1] === 0x38 && frame[i + 2] === 0x73 && frame[i + 3] === 0,
    );
    const typeLength = frame[5]!;
    return { type: new TextDecoder().decode(frame.subarray(6, 6 + typeLength)), object: decode(frame.subarray(start)) };
  };
  await call('POST', MAPS, { body: configMap('watched'), headers: POST });
  const added = await next();
  assert.equal(added.type, 'ADDED');
  assert.deepEqual(added.object, (await server.request('GET', `${MAPS}/watched`)).json);
  await server.request('DELETE', `${MAPS}/watched`);
  assert.equal((await next()).type, 'DELETED');
  gone.abort();
});
