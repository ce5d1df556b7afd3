import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { test } from 'node:test';

/** Every module of the program that was loaded since. */
const loaded = new Set<string>();
registerHooks({
  load(url, context, next) {
    loaded.add(url);
    return next(url, context);
  },
});
const { startServer } = await import('../testkit/in-process-server.ts');
const textsLoaded = (): boolean => [...loaded].some((url) => url.includes('/kinds/openapi/texts/'));

const V2_PROTO = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
const V3_PROTO = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf';

// S-249
// Compat Discovery, version, OpenAPI, P1, yes: descriptions of every built-in type and field, for `kubectl explain`
test('fields of built-in types say what they are for, and no text is loaded before somebody asks', async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  assert.equal((await server.request('GET', '/api/v1/namespaces')).status, 200);
  assert.ok(loaded.size > 0);
  assert.equal(textsLoaded(), false);

  const v3 = (await server.request('GET', '/openapi/v3/api/v1')).json.components.schemas;
  assert.equal(textsLoaded(), true);
  const v2 = (await server.request('GET', '/openapi/v2')).json.definitions;
  for (const types of [v3, v2]) {
    const pod = types['io.k8s.api.core.v1.PodSpec'];
    assert.equal(pod.description, 'What a Pod is to run, where and how.');
    assert.equal(pod.properties.nodeName.description, 'The node that the Pod runs on; the scheduler fills it.');
    // This one refers to a type.
    assert.match(pod.properties.affinity.description, /^Rules about the nodes/);
    assert.equal(types['io.k8s.api.core.v1.ConfigMap'].properties.data.description, 'The values, by key.');
  }
  // What says the same wherever it stands.
  assert.match(v2['io.k8s.api.core.v1.PodCondition'].properties.lastTransitionTime.description, /^When status last/);

  const words = 'The node that the Pod runs on';
  const v2Proto = await server.request('GET', '/openapi/v2', { headers: { accept: V2_PROTO } });
  assert.ok(v2Proto.text.includes(words));
  const v3Proto = await server.request('GET', '/openapi/v3/api/v1', { headers: { accept: V3_PROTO } });
  assert.ok(v3Proto.text.includes(words));
});

test('two servers name a document by the same hash', async (t) => {
  const paths: string[] = [];
  for (let n = 0; n < 2; n++) {
    const server = await startServer();
    t.after(() => server.stop());
    paths.push(JSON.stringify((await server.request('GET', '/openapi/v3')).json.paths['api/v1']));
    const { headers } = await server.request('GET', '/openapi/v2');
    paths.push(headers['etag'] ?? 'none');
  }
  assert.deepEqual(paths.slice(0, 2), paths.slice(2));
});
