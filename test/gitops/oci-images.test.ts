/** OCI images as the source of syncs, from a registry on loopback. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ROLE_BINDINGS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { openPki } from '../../packages/coracle/src/config/pki.ts';
import type { SecretData, Source } from '../../packages/gitops/src/git/source.ts';
import { CONFIG_SYNC_NAMESPACE, type OciSpec } from '../../packages/gitops/src/kinds/kinds.ts';
import { createOciSource } from '../../packages/gitops/src/oci/oci-source.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { type RegistryServer, startRegistry, tarOf } from '../../packages/runtime/src/oci/registry-server.fixture.ts';
import {
  condition,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';

const NEVER = new AbortController().signal;
let at: GitOpsCluster;
let registry: RegistryServer;
before(async () => {
  [at, registry] = await Promise.all([startGitOpsCluster(), startRegistry()]);
});
after(async () => {
  await at.stop();
  await registry.close();
  assert.deepEqual(at.cluster.errors, []);
});

/** Puts an image of these files under a tag; its digest without `sha256:`. */
const push = async (repository: string, tag: string, files: Readonly<Record<string, string>>): Promise<string> => {
  const layer = await tarOf(Object.entries(files).map(([name, content]) => ({ name, content })));
  return registry.addImage(repository, tag, [layer]).slice('sha256:'.length);
};
const ociSync = (spec: Partial<OciSpec>) => ({
  spec: { sourceType: 'oci', git: null, oci: { auth: 'none', period: '100ms', ...spec } },
});

// S-920: A RootSync or RepoSync takes its objects from an OCI image: a tag is followed, a digest pins, and the digest
//   is the commit in status and metadata; an authority of its own is believed with that alone, and content that does
//   not fit its digest is not used.
test('an image is applied, followed by its tag, and named by its digest in status and metadata', async () => {
  const first = await push('fleet/app', 'v1', {
    'app/a.yaml': configMapYaml('oci-a', { k: '1' }),
    'app/b.yaml': configMapYaml('oci-b', {}),
    'other/c.yaml': configMapYaml('oci-c', {}),
  });
  const image = `${registry.host}/fleet/app:v1`;
  await at.rootSync('oci', '', ociSync({ image, dir: 'app' }));
  const { status } = await at.synced('oci', first);
  assert.deepEqual(status?.source?.ociStatus, { image, dir: 'app' });
  assert.deepEqual(status?.sync?.ociStatus, { image, dir: 'app' });
  assert.equal(status?.source?.gitStatus, undefined);
  const annotations = (await at.configMap('oci-a'))?.metadata.annotations;
  assert.deepEqual(
    ['configmanagement.gke.io/token', 'configsync.gke.io/git-context', 'configmanagement.gke.io/source-path'].map(
      (key) => annotations?.[key],
    ),
    [first, JSON.stringify({ repo: image }), 'app/a.yaml'],
  );
  assert.equal(await at.configMap('oci-c'), undefined);

  const second = await push('fleet/app', 'v1', { 'app/a.yaml': configMapYaml('oci-a', { k: '2' }) });
  await at.synced('oci', second);
  assert.deepEqual((await at.configMap('oci-a'))?.data, { k: '2' });
  assert.equal(await at.configMap('oci-b'), undefined);
});

// S-920
test('a RepoSync takes an image; what cannot be had changes nothing and says why', async () => {
  await createNamespace(at.client, 'oci-team');
  await at.client.create(ROLE_BINDINGS, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: 'oci-team', name: 'sync' },
    subjects: [{ kind: 'ServiceAccount', name: 'ns-reconciler-oci-team', namespace: CONFIG_SYNC_NAMESPACE }],
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
  });
  const commit = await push('team/app', 'latest', { 'a.yaml': configMapYaml('oci-own', {}) });
  await at.repoSync('oci-team', 'repo-sync', '', ociSync({ image: `${registry.host}/team/app` }));
  await at.synced(['oci-team', 'repo-sync'], commit);
  assert.ok(await at.configMap('oci-own', 'oci-team'));
  registry.auth = { token: 'secret', basic: 'user:password' };
  const failing = await at.failing(['oci-team', 'repo-sync'], ['2004']);
  assert.match(failing.status?.source?.errors?.[0]?.errorMessage ?? '', /asks for credentials/);
  assert.ok(await at.configMap('oci-own', 'oci-team'));
  registry.auth = undefined;
  await at.synced(['oci-team', 'repo-sync'], commit);
});

const REFUSED: readonly [what: string, oci: Partial<OciSpec>, text: RegExp][] = [
  ['credentials of Google Cloud', { auth: 'gcenode' }, /oci auth gcenode is not supported/],
  ['a service account of Google Cloud', { auth: 'gcpserviceaccount' }, /oci auth gcpserviceaccount is not supported/],
  ['those of a service account', { auth: 'k8sserviceaccount' }, /oci auth k8sserviceaccount is not supported/],
  ['an image that is none', { image: 'UPPER/../x' }, /spec\.oci\.image/],
  ['a directory that leads out', { dir: '../x' }, /leads out/],
  ['a period that is none', { period: 'soon' }, /spec\.oci\.period/],
];
test('specs of images that cannot be meant are KNV1061', async () => {
  for (const [number, [what, more, text]] of REFUSED.entries()) {
    const name = `oci-refused-${number}`;
    await at.rootSync(name, '', ociSync({ image: `${registry.host}/x`, ...more }));
    const stalled = await at.until(name, what, (one) => condition(one, 'Stalled')?.status === 'True');
    assert.match(condition(stalled, 'Stalled')?.message ?? '', text, what);
  }
});

const sourceOf = (spec: Omit<OciSpec, 'auth'>, secrets: Readonly<Record<string, SecretData>> = {}): Source =>
  createOciSource({ spec: { auth: 'none', ...spec }, clock: systemClock, secret: async (name) => secrets[name] ?? {} });

// S-920
test('a digest pins: the registry is asked for it once, and its content is believed only when it fits', async () => {
  const digest = await push('pinned', 'v1', { 'a.yaml': 'a: 1' });
  const source = sourceOf({ image: `${registry.host}/pinned@sha256:${digest}` });
  assert.equal(await source.resolve(NEVER), digest);
  const asked = registry.requests.length;
  assert.equal(await source.resolve(NEVER), digest);
  assert.equal(registry.requests.length, asked);
  assert.equal((await source.read(digest, NEVER)).files.length, 1);
  const layer =
    registry.requests
      .find((one) => one.includes('/pinned/blobs/'))
      ?.split('/')
      .at(-1) ?? '';
  registry.lies.set(layer, await tarOf([{ name: 'a.yaml', content: 'a: 2' }]));
  await assert.rejects(source.read(digest, NEVER), { name: 'SourceError', message: /does not match its digest/ });
  registry.lies.clear();
  registry.cutBlobs = [10];
  await assert.rejects(source.read(digest, NEVER), { name: 'SourceError' });
  assert.equal((await source.read(digest, NEVER)).files.length, 1);
});

// S-921
test('an image whose layers are larger than the bound is not pulled', async () => {
  const layers = [{ mediaType: '', digest: `sha256:${'a'.repeat(64)}`, size: 65 * 1024 ** 2 }];
  const digest = registry.addManifest(
    'vast',
    'v1',
    { schemaVersion: 2, layers },
    'application/vnd.oci.image.manifest.v1+json',
  );
  const source = sourceOf({ image: `${registry.host}/vast:v1` });
  await source.resolve(NEVER);
  const asked = registry.requests.length;
  await assert.rejects(source.read(digest.slice('sha256:'.length), NEVER), /bytes; \d+ are pulled/);
  assert.deepEqual(
    registry.requests.slice(asked).filter((one) => one.includes('/blobs/')),
    [],
  );
});

// S-920
test('a registry whose authority is in a Secret is spoken to by TLS, and is believed with that alone', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'coracle-oci-'));
  const pki = await openPki(join(place, 'pki'), systemClock);
  const pair = await pki.pair('registry', { commonName: 'r', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  const secure = await startRegistry({ cert: pair.certificate, key: pair.key });
  t.after(async () => {
    await secure.close();
    rmSync(place, { recursive: true, force: true });
  });
  const layer = await tarOf([{ name: 'a.yaml', content: 'a: 1' }]);
  const digest = secure.addImage('own', 'v1', [layer]).slice('sha256:'.length);
  const other = await openPki(join(place, 'other'), systemClock);
  const secrets = { authority: { cert: pki.ca }, other: { cert: other.ca } };
  const of = (name: string): Source => sourceOf({ image: `${secure.host}/own:v1`, caCertSecretRef: { name } }, secrets);
  assert.equal(await of('authority').resolve(NEVER), digest);
  assert.equal((await of('authority').read(digest, NEVER)).files.length, 1);
  await assert.rejects(of('other').resolve(NEVER), { name: 'SourceError', message: /certificate/i });
  await assert.rejects(of('empty').resolve(NEVER), { name: 'SourceError', message: /has no key cert/ });
});
