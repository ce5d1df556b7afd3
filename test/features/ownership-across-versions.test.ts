/** Who owns which field of a custom resource, when a webhook on a real port converts between its versions. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { ObjectStore } from '../../packages/apiserver/src/cache/object-store.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { DEFINITIONS, definition, establish, settled, version } from '../testkit/custom-definitions.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';
import { type Review, startWebhookServer, type WebhookServer } from '../testkit/webhook-server.ts';

let server: InProcessServer;
let hooks: WebhookServer;
let outbound: ReturnType<typeof createOutbound>;
let broken = false;

/** `v1` keeps host and port apart, `v2` joins them. */
function converted(object: Review, apiVersion: string): Review {
  const { address, host, port, ...rest } = object.spec ?? {};
  const [left, right] = String(address ?? '').split(':');
  const v1 = { ...rest, ...(left && { host: left }), ...(right && { port: right }) };
  const v2 = { ...rest, ...((host || port) && { address: `${host ?? ''}:${port ?? ''}` }) };
  return { ...object, apiVersion, spec: apiVersion.endsWith('/v1') ? v1 : v2 };
}

before(async () => {
  hooks = await startWebhookServer({
    '/convert': ({ request }: Review) =>
      broken
        ? { code: 503, text: 'out to lunch' }
        : {
            code: 200,
            text: JSON.stringify({
              apiVersion: 'apiextensions.k8s.io/v1',
              kind: 'ConversionReview',
              response: {
                uid: request.uid,
                result: { status: 'Success' },
                convertedObjects: request.objects.map((one: Review) => converted(one, request.desiredAPIVersion)),
              },
            }),
          },
  });
  let store: ObjectStore | undefined;
  outbound = createOutbound({ store: { get: (key) => store!.get(key), list: (...args) => store!.list(...args) } });
  server = await startServer({ connectOutbound: outbound.connect });
  store = server.store;
  await establish(server, DEFINITION());
});
after(async () => {
  await server.stop();
  outbound.close();
  await hooks.close();
});
beforeEach(() => {
  broken = false;
  hooks.calls.length = 0;
});

const text = { type: 'string' };
const spec = (properties: object) => ({ spec: { type: 'object', properties: { note: text, ...properties } } });
const DEFINITION = () =>
  definition({
    name: 'host',
    versions: [
      version('v1', spec({ host: text, port: text }), { storage: true }),
      version('v2', spec({ address: text })),
    ],
    conversion: {
      strategy: 'Webhook',
      webhook: {
        conversionReviewVersions: ['v1'],
        clientConfig: { url: hooks.url('/convert'), caBundle: hooks.caBundle },
      },
    },
  });
const at = (v: string, name: string): string => `/apis/example.com/${v}/namespaces/default/hosts/${name}`;
const apply = (v: string, name: string, manager: string, body: object, query = ''): Promise<Answer> =>
  server.request('PATCH', `${at(v, name)}?fieldManager=${manager}${query}`, {
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: { apiVersion: `example.com/${v}`, kind: 'Host', metadata: { name }, spec: body },
  });
const merge = (v: string, name: string, manager: string, body: object): Promise<Answer> =>
  server.request('PATCH', `${at(v, name)}?fieldManager=${manager}`, { body });

/** The fields of spec that each manager owns: `one v1: host port`. */
const owned = ({ json }: Answer): string[] =>
  (json.metadata.managedFields ?? []).map(
    ({ manager, apiVersion, fieldsV1 }: Review) =>
      `${manager} ${apiVersion.split('/')[1]}: ${Object.keys(fieldsV1['f:spec'] ?? {})
        .map((key) => key.slice(2))
        .sort()
        .join(' ')}`,
  );
const asked = (): string[] =>
  hooks.calls.map(({ body }) => `${body.request.objects.length} to ${body.request.desiredAPIVersion}`);

// S-226: Ownership written down in a version that only a webhook can convert is read there: conflicts name fields as
//   their owner wrote them.
// Compat Server-side apply, P0, yes: entries are validated in their own version, also where only a webhook converts
test('a conflict names the fields as their owner wrote them down', async () => {
  assert.equal((await apply('v1', 'a', 'one', { host: 'here', port: '80' })).status, 201);
  const shared = await apply('v2', 'a', 'two', { address: 'here:80' });
  assert.equal(shared.status, 200, 'the same, in other words');
  assert.deepEqual(owned(shared), ['two v2: address', 'one v1: host port']);
  const refused = await apply('v2', 'a', 'two', { address: 'there:80' });
  assert.equal(refused.status, 409, refused.text);
  assert.equal(refused.json.message, 'Apply failed with 1 conflict: conflict with "one": .spec.host');
  const forced = await apply('v2', 'a', 'two', { address: 'there:80' }, '&force=true');
  assert.deepEqual(owned(forced), ['one v1: port', 'two v2: address']);
  assert.deepEqual((await server.request('GET', at('v1', 'a'))).json.spec, { host: 'there', port: '80' });
});

// S-226
test('an update takes fields from owners in other versions', async () => {
  await apply('v1', 'b', 'one', { host: 'here', port: '80', note: 'n' });
  const patched = await merge('v2', 'b', 'editor', { spec: { address: 'here:81' } });
  assert.deepEqual(owned(patched), ['one v1: host note', 'editor v2: address']);
  const cleared = await merge('v1', 'b', 'other', { spec: { host: null } });
  assert.deepEqual(owned(cleared), ['one v1: note'], 'the address is another one now');
});

// S-226
test('an apply in another version takes away what the manager applied in the version before', async () => {
  await apply('v1', 'c', 'one', { host: 'here', port: '80', note: 'n' });
  const moved = await apply('v2', 'c', 'one', { note: 'n' });
  assert.equal(moved.status, 200, moved.text);
  assert.deepEqual(moved.json.spec, { note: 'n' });
  assert.deepEqual(owned(moved), ['one v2: note']);
});

test('what somebody owns in another version stays', async () => {
  await apply('v1', 'd', 'one', { host: 'here', port: '80', note: 'n' });
  await apply('v2', 'd', 'two', { address: 'here:80' });
  const moved = await apply('v2', 'd', 'one', { note: 'n' });
  assert.deepEqual(moved.json.spec, { address: 'here:80', note: 'n' });
  const alone = await apply('v1', 'd', 'one', {});
  assert.deepEqual(alone.json.spec, { host: 'here', port: '80' });
  assert.deepEqual(owned(alone), ['two v2: address', 'one v1: ']);
});

// S-226
test('both states are converted in one call, and not at all when nothing changed', async () => {
  await apply('v1', 'e', 'one', { host: 'here', port: '80' });
  await merge('v1', 'e', 'editor', { spec: { note: 'x' } });
  assert.deepEqual(asked(), [], 'everybody speaks the stored version');
  await apply('v2', 'e', 'two', { address: 'here:80' });
  hooks.calls.length = 0;
  await merge('v1', 'e', 'editor', { spec: { note: 'y' } });
  assert.deepEqual(asked(), ['2 to example.com/v2']);
  hooks.calls.length = 0;
  await merge('v1', 'e', 'editor', { spec: { note: 'y' } });
  assert.deepEqual(asked(), []);
});

// S-226
test('while the webhook is away an apply fails and an update forgets who owned what', async () => {
  await apply('v1', 'f', 'one', { host: 'here', port: '80' });
  await apply('v2', 'f', 'two', { note: 'x' });
  broken = true;
  const refused = await apply('v1', 'f', 'one', { host: 'there', port: '80' });
  assert.equal(refused.status, 500, refused.text);
  assert.match(
    refused.json.message,
    /conversion webhook for example.com\/v1, Kind=Host failed: the server is currently unable/,
  );
  const patched = await merge('v1', 'f', 'editor', { spec: { note: 'y' } });
  assert.equal(patched.status, 200, patched.text);
  assert.deepEqual([patched.json.spec.note, patched.json.metadata.managedFields], ['y', undefined]);
});

test('entries of a version that is no longer served are dropped, another kind of the group or not', async () => {
  await establish(server, definition({ name: 'neighbour', versions: [version('v2', {}, { storage: true })] }));
  await apply('v1', 'g', 'one', { host: 'here' });
  assert.deepEqual(owned(await apply('v2', 'g', 'two', { note: 'x' })), ['one v1: host', 'two v2: note']);
  const [v1, v2] = DEFINITION().spec.versions;
  const without = [v1, { ...v2, served: false }];
  const path = `${DEFINITIONS}/hosts.example.com`;
  assert.equal((await server.request('PATCH', path, { body: { spec: { versions: without } } })).status, 200);
  await settled(server, 'hosts.example.com');
  hooks.calls.length = 0;
  assert.deepEqual(owned(await apply('v1', 'g', 'one', { host: 'here', note: 'y' })), ['one v1: host note']);
  assert.deepEqual(asked(), []);
});
