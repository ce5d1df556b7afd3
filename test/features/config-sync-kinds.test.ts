/** The kinds of Config Sync on a fresh server: what discovery, schemas and tables say of them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const GROUP = '/apis/configsync.gke.io';
const ROOT_SYNCS = `${GROUP}/v1beta1/namespaces/config-management-system/rootsyncs`;

let plane: InProcessControlPlane;
before(async () => {
  plane = await startInProcess();
});
after(() => plane.stop());

const rootSync = (name: string, spec: object, version = 'v1beta1') => ({
  apiVersion: `configsync.gke.io/${version}`,
  kind: 'RootSync',
  metadata: { name },
  spec,
});
const git = { repo: 'https://git.example/fleet', auth: 'none' };

// S-900: RootSync and RepoSync (configsync.gke.io/v1beta1 and v1alpha1) and ResourceGroup (kpt.dev/v1alpha1) are served
//   by a new server and printed by `coracle crds`, with upstream's fields, columns and the namespace
//   `config-management-system`.
test('discovery names RootSync and RepoSync in both versions, and ResourceGroup', async () => {
  for (const path of [`${GROUP}/v1beta1`, `${GROUP}/v1alpha1`, '/apis/kpt.dev/v1alpha1']) {
    const { json } = await plane.send('GET', path);
    const names = json.resources.map(({ name, namespaced }: { name: string; namespaced: boolean }) => [
      name,
      namespaced,
    ]);
    const plurals = path.includes('kpt') ? ['resourcegroups'] : ['reposyncs', 'rootsyncs'];
    assert.deepEqual(
      names.sort(),
      plurals
        .flatMap((name) => [
          [name, true],
          [`${name}/status`, true],
        ])
        .sort(),
      path,
    );
  }
});

test('a sync is shown in both versions, with the default of sourceType and of observedGeneration', async () => {
  const made = await plane.send('POST', ROOT_SYNCS, rootSync('both', { git, override: null }));
  assert.equal(made.status, 201, JSON.stringify(made.json));
  assert.equal(made.json.spec.sourceType, 'git');
  const old = await plane.send('GET', `${ROOT_SYNCS.replace('v1beta1', 'v1alpha1')}/both`);
  assert.equal(old.json.apiVersion, 'configsync.gke.io/v1alpha1');
  const status = { source: { commit: 'c1', errorSummary: { totalCount: 2, truncated: false } } };
  const written = await plane.send('PATCH', `${ROOT_SYNCS}/both/status`, { status }, 'application/merge-patch+json');
  assert.equal(written.json.status.observedGeneration, 0);
});

// S-900
test('its columns are upstream’s', async () => {
  await plane.send('POST', ROOT_SYNCS, rootSync('shown', { git }));
  const errorSummary = { totalCount: 2, truncated: false, errorCountAfterTruncation: 2 };
  const status = { source: { commit: 'c1', errorSummary }, sync: { commit: 'c0' } };
  await plane.send('PATCH', `${ROOT_SYNCS}/shown/status`, { status }, 'application/merge-patch+json');
  const { handler } = plane.plane;
  const response = await handler({
    method: 'GET',
    path: `${ROOT_SYNCS}/shown`,
    query: '',
    headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    body: new Uint8Array(0),
    peer: {
      address: '',
      certificate: { verified: true, commonName: 'a', organizations: ['system:masters'], fingerprint: 'a' },
    },
    signal: new AbortController().signal,
  });
  const table = JSON.parse(Buffer.concat([response.body as Uint8Array].flat()).toString());
  const cells = Object.fromEntries(
    table.columnDefinitions.map(({ name }: { name: string }, at: number) => [name, table.rows[0].cells[at]]),
  );
  const { Name, SourceCommit, SourceErrorCount, SyncCommit, SyncErrorCount, RenderingCommit } = cells;
  assert.deepEqual(
    [Name, RenderingCommit, SourceCommit, SourceErrorCount, SyncCommit, SyncErrorCount],
    ['shown', null, 'c1', 2, 'c0', null],
  );
});

const REFUSED: readonly [what: string, spec: object, message: RegExp][] = [
  ['an unknown source type', { sourceType: 'svn', git }, /spec\.sourceType/],
  ['an unknown auth', { git: { ...git, auth: 'password' } }, /spec\.git\.auth/],
  ['no repository', { git: { auth: 'none' } }, /spec\.git\.repo/],
  ['a negative depth', { git, override: { gitSyncDepth: -1 } }, /spec\.override\.gitSyncDepth/],
  ['an unknown strategy', { git, override: { namespaceStrategy: 'maybe' } }, /namespaceStrategy/],
  [
    'a log level that is none',
    { git, override: { logLevels: [{ containerName: 'git-sync', logLevel: 11 }] } },
    /logLevel/,
  ],
];
for (const [what, spec, message] of REFUSED) {
  // S-900
  test(`refused by the schema: ${what}`, async () => {
    const { status, json } = await plane.send('POST', ROOT_SYNCS, rootSync('bad', spec));
    assert.equal(status, 422);
    assert.match(json.message, message);
  });
}
