/** Threat 4: a name is only a name. It never becomes a path, another object's key or another namespace. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const ROLES = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles';
const role = (metadata: object) => ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata, rules: [] });
const map = (metadata: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata });

const BAD = ['.', '..', '/', 'a/b', '../x', '%', 'a%2fb', '..%2f..%2fetc', '/etc/passwd', 'default/configmaps/x'];

for (const name of BAD) {
  test(`a role called ${JSON.stringify(name)} is refused, although roles may be called nearly anything`, async () => {
    const { status, json } = await server.request('POST', ROLES, { body: role({ name }) });
    assert.equal(status, 422, JSON.stringify(json));
    assert.equal(json.details.causes[0].field, 'metadata.name');
    const generated = await server.request('POST', ROLES, { body: role({ generateName: name }) });
    if (name !== '.' && name !== '..') assert.equal(generated.status, 422, generated.text);
    else assert.notEqual(generated.json.metadata.name, name);
  });
}

const hostile = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
  fc.stringMatching(/^[a-z0-9./%:_-]{1,30}$/),
  fc.constantFrom('__proto__', 'constructor', 'a\0b', 'kube-system/x', '..\\x', 'a\nb', 'A', 'é', '-', 'x'.repeat(254)),
);

test('whatever the name is: refused, or stored under exactly that name and found nowhere else', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, fc.constantFrom('map', 'role'), async (name, kind) => {
      if (!name.isWellFormed()) return;
      const [path, body] = kind === 'map' ? [CONFIG_MAPS, map({ name })] : [ROLES, role({ name })];
      const before = (await server.request('GET', path)).json.items.length;
      const made = await server.request('POST', path, { body });
      const after = (await server.request('GET', path)).json.items;
      if (made.status !== 201) {
        assert.ok(made.status === 422 || made.status === 400 || made.status === 409, made.text);
        if (made.status !== 409) assert.equal(after.length, before);
        return;
      }
      assert.equal(made.json.metadata.name, name);
      assert.equal(after.length, before + 1);
      const found = await server.request('GET', `${path}/${encodeURIComponent(name)}`);
      assert.deepEqual([found.status, found.json.metadata?.uid], [200, made.json.metadata.uid]);
      const gone = await server.request('DELETE', `${path}/${encodeURIComponent(name)}`);
      assert.equal(gone.status, 200, gone.text);
    }),
    { numRuns: 300 },
  );
});

test('a path of dots and escapes leads to no other namespace', async () => {
  await server.create('/api/v1/namespaces/kube-system/configmaps', map({ name: 'hidden' }));
  for (const path of [
    `${CONFIG_MAPS}/..%2f..%2fkube-system%2fconfigmaps%2fhidden`,
    `${CONFIG_MAPS}/../../kube-system/configmaps/hidden`,
    '/api/v1/namespaces/default%2fconfigmaps/../kube-system/configmaps/hidden',
    '/api/v1/namespaces/kube-system%00/configmaps/hidden',
    '/api/v1/namespaces//configmaps/hidden',
    `${CONFIG_MAPS}/%2e%2e/hidden`,
  ]) {
    const { status, text } = await server.request('GET', path);
    assert.ok(status >= 300 && status < 500, `${path}: ${status} ${text}`);
  }
});
