/** Helm charts as the source of syncs, rendered by the real helm, 4 and 3, from repositories on loopback. */
// test:full: each source of charts, for minutes.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { CONFIG_MAPS, SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { openPki } from '../../packages/coracle/src/config/pki.ts';
import type { Source } from '../../packages/gitops/src/git/source.ts';
import { createHelmSource, type HelmSourceOptions } from '../../packages/gitops/src/helm/helm-source.ts';
import { CONFIG_SYNC_NAMESPACE, type HelmSpec, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import {
  type RegistryServer,
  sha256,
  startRegistry,
  tarOf,
} from '../../packages/runtime/src/oci/registry-server.fixture.ts';
import { programPath } from '../../packages/runtime/src/process/program.ts';
import { condition, createNamespace, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';
import { findHelms } from './helm-programs.ts';

const NEVER = new AbortController().signal;
const helms = findHelms();
const hostPath = process.env['PATH'] ?? '';

type Files = Readonly<Record<string, string>>;

/** A chart as it is published. */
const packed = async (name: string, version: string, files: Files): Promise<Uint8Array> => {
  const all = { 'Chart.yaml': `apiVersion: v2\nname: ${name}\nversion: ${version}\n`, ...files };
  return gzipSync(await tarOf(Object.entries(all).map(([path, content]) => ({ name: `${name}/${path}`, content }))));
};

interface ChartServer {
  readonly url: string;
  readonly requests: string[];
  /** `user:password` that is asked for. */
  basic: string | undefined;
  publish(name: string, version: string, chart: Uint8Array): void;
  stop(): Promise<void>;
}

async function serveCharts(tls?: { readonly cert: string; readonly key: string }): Promise<ChartServer> {
  const charts = new Map<string, { name: string; version: string; bytes: Uint8Array }>();
  const requests: string[] = [];
  const state = { basic: undefined as string | undefined };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(request.url ?? '');
    const { basic } = state;
    if (basic && request.headers.authorization !== `Basic ${btoa(basic)}`)
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
    if (request.url === '/index.yaml') {
      const entries: Record<string, object[]> = {};
      for (const [file, { name, version, bytes }] of charts) {
        entries[name] ??= [];
        entries[name].push({ apiVersion: 'v2', name, version, urls: [file], digest: sha256(bytes).slice(7) });
      }
      return void response.end(JSON.stringify({ apiVersion: 'v1', entries }));
    }
    const found = charts.get((request.url ?? '').slice(1));
    if (found) response.end(found.bytes);
    else response.writeHead(404).end();
  };
  const server: Server = tls ? createSecureServer(tls, answer) : createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(state, {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    publish: (name: string, version: string, bytes: Uint8Array) =>
      void charts.set(`${name}-${version}.tgz`, { name, version, bytes }),
    stop: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}

const MAP = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map}
data:
  namespace: {{ .Release.Namespace }}
  version: {{ .Chart.Version | quote }}
  color: {{ .Values.color | quote }}
  size: {{ .Values.size | quote }}
`;
const APP: Files = {
  'values.yaml': 'color: blue\nsize: 1\n',
  'templates/map.yaml': MAP,
  'templates/test.yaml':
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-a-test, annotations: {helm.sh/hook: test}}\n',
  'crds/flavour.yaml': `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flavours.chart.example.com}
spec:
  group: chart.example.com
  scope: Namespaced
  names: {plural: flavours, singular: flavour, kind: Flavour}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
};

for (const helm of helms.length === 0 ? [{ path: '', major: 4 }] : helms) {
  suite(`helm ${helm.major}`, {
    skip: helms.length === 0 && 'there is no helm on PATH, and set-up could fetch none',
  }, () => {
    let at: GitOpsCluster;
    let charts: ChartServer;
    let registry: RegistryServer;
    let place: string;
    before(async () => {
      place = mkdtempSync(join(tmpdir(), 'coracle-helm-syncs-'));
      mkdirSync(join(place, 'bin'));
      symlinkSync(helm.path, join(place, 'bin', 'helm'));
      process.env['PATH'] = `${join(place, 'bin')}${delimiter}${hostPath}`;
      [at, charts, registry] = await Promise.all([
        startGitOpsCluster({ directory: join(place, 'gitops') }),
        serveCharts(),
        startRegistry(),
      ]);
    });
    after(async () => {
      await at.stop();
      await charts.stop();
      await registry.close();
      process.env['PATH'] = hostPath;
      rmSync(place, { recursive: true, force: true });
      assert.deepEqual(at.cluster.errors, []);
    });
    const helmSync = (spec: Partial<HelmSpec>) => ({
      spec: {
        sourceType: 'helm',
        git: null,
        helm: { auth: 'none', repo: charts.url, chart: 'app', period: '200ms', ...spec },
      },
    });
    const map = async (name: string, namespace?: string) => (await at.configMap(name, namespace))?.data;

    // S-924: A chart of an HTTP or OCI repository is rendered by helm with the values of the spec and of ConfigMaps,
    //   and applied; a range follows what is published; `chart:version` is the commit. A host without helm, and specs
    //   that cannot be meant, are said to be so and change nothing.
    test('a version is rendered with values and applied; a range follows what is published', async () => {
      charts.publish('app', '1.0.0', await packed('app', '1.0.0', APP));
      await at.rootSync('chart', '', helmSync({ version: '1.x', releaseName: 'a', values: { color: 'red' } }));
      const first = await at.synced('chart', 'app:1.0.0');
      const helmStatus = { repo: charts.url, chart: 'app', version: '1.0.0' };
      for (const stage of ['source', 'rendering', 'sync'] as const)
        assert.deepEqual(first.status?.[stage]?.helmStatus, helmStatus);
      assert.deepEqual(await map('a-map'), { namespace: 'default', version: '1.0.0', color: 'red', size: '1' });
      const annotations = (await at.configMap('a-map'))?.metadata.annotations;
      assert.equal(annotations?.['configmanagement.gke.io/source-path'], 'app/templates/map.yaml');
      assert.equal(annotations?.['configsync.gke.io/git-context'], JSON.stringify({ repo: charts.url, rev: '1.x' }));
      assert.equal(await map('of-a-test'), undefined);
      charts.publish('app', '2.0.0', await packed('app', '2.0.0', APP));
      charts.publish('app', '1.1.0', await packed('app', '1.1.0', APP));
      await at.synced('chart', 'app:1.1.0');
      assert.equal((await map('a-map'))?.['version'], '1.1.0');
    });

    // S-924
    test('values of ConfigMaps, in order and below those of the spec; namespaces; definitions', async () => {
      charts.publish('app', '2.0.0', await packed('app', '2.0.0', APP));
      const values = async (name: string, immutable: boolean, data: Record<string, string>) =>
        at.client.create(CONFIG_MAPS, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { namespace: CONFIG_SYNC_NAMESPACE, name },
          immutable,
          data,
        });
      await values('one', true, { 'values.yaml': 'color: green\nsize: 2' });
      await values('two', true, { own: 'size: 3' });
      await values('loose', false, { 'values.yaml': 'size: 4' });
      await at.client.patch(
        ROOT_SYNCS,
        { namespace: CONFIG_SYNC_NAMESPACE, name: 'chart' },
        {
          type: 'merge',
          body: {
            spec: {
              helm: {
                version: '2.0.0',
                values: { color: 'black' },
                valuesFileRefs: [{ name: 'one' }, { name: 'two', dataKey: 'own' }],
                deployNamespace: 'of-chart',
                includeCRDs: true,
              },
            },
          },
        },
      );
      await at.synced('chart', 'app:2.0.0');
      const wanted = { namespace: 'of-chart', version: '2.0.0', color: 'black', size: '3' };
      assert.deepEqual(await map('a-map', 'of-chart'), wanted);
      assert.equal(await map('a-map'), undefined);
      assert.ok((await at.inventory('chart'))?.some(({ name }) => name === 'flavours.chart.example.com'));
      await at.rootSync('loose', '', helmSync({ version: '2.0.0', valuesFileRefs: [{ name: 'loose' }] }));
      const loose = await at.failing('loose', ['2004']);
      assert.match(loose.status?.source?.errors?.[0]?.errorMessage ?? '', /"loose" has values and is not immutable/);
    });

    // S-924
    test('a RepoSync takes a chart of a registry, by version and the newest, into its namespace', async () => {
      await createNamespace(at.client, 'chart-team');
      const push = async (version: string): Promise<void> => {
        const config = registry.addBlob(Buffer.from(JSON.stringify({ name: 'app', version, apiVersion: 'v2' })));
        const layer = registry.addBlob(await packed('app', version, APP));
        const document = {
          schemaVersion: 2,
          config: { mediaType: 'application/vnd.cncf.helm.config.v1+json', ...config },
          layers: [{ mediaType: 'application/vnd.cncf.helm.chart.content.v1.tar+gzip', ...layer }],
        };
        registry.addManifest('charts/app', version, document, 'application/vnd.oci.image.manifest.v1+json');
      };
      await push('0.1.0');
      await push('0.2.0');
      const repo = `oci://${registry.host}/charts`;
      const of = (more: Partial<HelmSpec>) =>
        sourceOf({ repo, ...more }, { namespace: 'chart-team', directory: join(place, 'of-registry') });
      assert.equal(await of({ version: '0.1.0' }).resolve(NEVER), 'app:0.1.0');
      const newest = of({ version: '' });
      assert.equal(await newest.resolve(NEVER), 'app:0.2.0');
      const { files } = await newest.read('app:0.2.0', NEVER);
      assert.match(Buffer.from(files[0]!.bytes).toString(), /namespace: chart-team/);
      await at.repoSync('chart-team', 'repo-sync', '', helmSync({ repo, version: '0.1.0', namespace: 'other' }));
      // Fields that RootSyncs alone have are not served for a RepoSync.
      const name = ['chart-team', 'repo-sync'] as const;
      const sync = await at.until(name, 'rendered', ({ status }) => status?.source?.commit === 'app:0.1.0');
      assert.deepEqual(sync.status?.source?.helmStatus, { repo, chart: 'app', version: '0.1.0' });
    });

    // S-925: The token of a chart repository is on no command line, in no error and in no file afterwards; a chart that
    //   was made to do harm reads nothing of this host, asks no address, and is ended when it takes too much memory.
    test('a token is sent to its repository, and is on no command line, in no error and in no file afterwards', async (t) => {
      charts.publish('app', '3.0.0', await packed('app', '3.0.0', APP));
      charts.basic = 'user:canary-password';
      t.after(() => {
        charts.basic = undefined;
      });
      await at.client.create(SECRETS, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: CONFIG_SYNC_NAMESPACE, name: `token-${helm.major}` },
        data: { username: btoa('user'), password: btoa('canary-password') },
      });
      const log = join(place, 'argv');
      const bin = join(place, 'logged');
      mkdirSync(bin);
      writeFileSync(join(bin, 'helm'), `#!/bin/sh\necho "$@" >> ${log}\nexec ${helm.path} "$@"\n`, { mode: 0o755 });
      process.env['PATH'] = `${bin}${delimiter}${hostPath}`;
      const more = { auth: 'token', secretRef: { name: `token-${helm.major}` } };
      await at.rootSync('token', '', helmSync({ version: '>=3', releaseName: 't', ...more }));
      await at.synced('token', 'app:3.0.0');
      assert.match(readFileSync(log, 'utf8'), /^pull /m);
      assert.ok(!readFileSync(log, 'utf8').includes('canary'));
      charts.basic = 'user:another';
      const failing = await at.failing('token', ['2004']);
      assert.match(failing.status?.source?.errors?.[0]?.errorMessage ?? '', /helm repo (update )?failed/);
      assert.ok(!JSON.stringify(failing).includes('canary'));
      assert.ok((await map('t-map')) !== undefined);
      const left = readdirSync(join(place, 'gitops'), { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      for (const one of left) {
        const path = join(one.parentPath, one.name);
        assert.ok(!existsSync(path) || !readFileSync(path).includes('canary'), path);
      }
      process.env['PATH'] = `${join(place, 'bin')}${delimiter}${hostPath}`;
    });

    // S-924
    test('a host without helm says so, and goes on when there is one', async (t) => {
      charts.publish('app', '4.0.0', await packed('app', '4.0.0', APP));
      const bin = join(place, 'without');
      mkdirSync(bin);
      const prlimit = programPath('prlimit');
      if (prlimit !== undefined) symlinkSync(prlimit, join(bin, 'prlimit'));
      const path = process.env['PATH'];
      t.after(() => {
        process.env['PATH'] = path;
      });
      process.env['PATH'] = bin;
      await at.rootSync('without', '', helmSync({ version: '4.0.0', releaseName: 'w' }));
      const failing = await at.failing('without', ['2004']);
      assert.match(
        failing.status?.source?.errors?.[0]?.errorMessage ?? '',
        /^KNV2004: charts are rendered by helm, and the host .* has none in its PATH: install helm 3\.16 or newer/,
      );
      process.env['PATH'] = path;
      await at.synced('without', 'app:4.0.0');
      writeFileSync(join(bin, 'helm'), '#!/bin/sh\necho v3.8.1\n', { mode: 0o755 });
      process.env['PATH'] = bin;
      const old = sourceOf({ version: '' }, { directory: join(place, 'old') });
      await assert.rejects(old.resolve(NEVER), { name: 'SourceError', message: /is "v3\.8\.1"; charts need 3\.16/ });
    });

    const REFUSED: readonly [what: string, helm: Partial<HelmSpec>, text: RegExp][] = [
      ['credentials of Google Cloud', { auth: 'gcpserviceaccount' }, /helm auth gcpserviceaccount is not supported/],
      ['a token without a secret', { auth: 'token' }, /needs spec\.helm\.secretRef/],
      ['a secret without need', { secretRef: { name: 'x' } }, /takes no spec\.helm\.secretRef/],
      ['a chart that is a path', { chart: '../x' }, /not a valid chart name/],
      ['a chart that is an option', { chart: '--post-renderer' }, /not a valid chart name/],
      ['a repository of files', { repo: 'file:///etc' }, /spec\.helm\.repo is a URL/],
      ['a repository that is an option', { repo: '--kubeconfig' }, /spec\.helm\.repo is a URL/],
      ['credentials in the URL', { repo: 'https://u:p@example.org' }, /holds credentials/],
      ['a release that is an option', { releaseName: '-x' }, /not a valid release name/],
      ['two namespaces', { namespace: 'a', deployNamespace: 'b' }, /do not go together/],
    ];
    // S-924
    test('specs of charts that cannot be meant are KNV1061', async () => {
      for (const [number, [what, more, text]] of REFUSED.entries()) {
        const name = `refused-${number}`;
        await at.rootSync(name, '', helmSync(more));
        const stalled = await at.until(name, what, (one) => condition(one, 'Stalled')?.status === 'True');
        assert.match(condition(stalled, 'Stalled')?.message ?? '', text, what);
      }
    });

    const sourceOf = (spec: Partial<HelmSpec>, more: Partial<HelmSourceOptions> = {}): Source =>
      createHelmSource({
        spec: { auth: 'none', repo: charts.url, chart: 'app', ...spec },
        namespace: 'default',
        directory: join(place, 'source'),
        secret: async () => ({}),
        configMap: async () => ({ immutable: true, data: {} }),
        ...more,
      });
    // S-983: Charts are fetched by TLS from whoever the authority in `caCertSecretRef` vouches for, and from nobody
    //   else.
    test('caCertSecretRef: the authority of the Secret is believed, and no other', async (t) => {
      const pki = await openPki(join(place, 'pki'), systemClock);
      const pair = await pki.pair('charts', {
        commonName: 'charts',
        ipAddresses: ['127.0.0.1'],
        usage: 'server',
        days: 1,
      });
      const other = await openPki(join(place, 'other-pki'), systemClock);
      const secure = await serveCharts({ cert: pair.certificate, key: pair.key });
      t.after(() => secure.stop());
      secure.publish('app', '1.0.0', await packed('app', '1.0.0', APP));
      const secrets: Readonly<Record<string, Record<string, string>>> = {
        authority: { cert: pki.ca },
        other: { cert: other.ca },
      };
      const of = (name?: string): Source =>
        sourceOf(
          { repo: secure.url, version: '1.0.x', ...(name !== undefined && { caCertSecretRef: { name } }) },
          { secret: async (asked) => secrets[asked] ?? {} },
        );
      assert.equal(await of('authority').resolve(NEVER), 'app:1.0.0');
      assert.ok((await of('authority').read('app:1.0.0', NEVER)).files.length > 0);
      for (const name of ['other', undefined])
        await assert.rejects(of(name).resolve(NEVER), { name: 'SourceError', message: /certificate/i });
      await assert.rejects(of('empty').resolve(NEVER), { name: 'SourceError', message: /has no key cert/ });
    });

    const HOSTILE: readonly [what: string, files: Files, text: RegExp, maxMemory?: number][] = [
      ['asks for the environment', { 'templates/x.yaml': '{{ env "HOME" }}' }, /function "env" not defined/],
      [
        'reads a file of this host',
        { 'templates/x.yaml': '{{ required "nothing there" (.Files.Get "../../../../../../etc/passwd") }}' },
        /nothing there/,
      ],
      ['fails', { 'templates/x.yaml': '{{ fail "on purpose" }}' }, /on purpose/],
      [
        'holds a loop',
        { 'templates/x.yaml': '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}' },
        /helm template failed/,
      ],
      [
        'grows without end',
        { 'templates/x.yaml': '{{ range until 100000000 }}{{ repeat 1000 "x" }}{{ end }}' },
        /helm template failed/,
        256 * 1024 ** 2,
      ],
    ];
    // What templates may do is the same for all of them, and each run takes a while.
    for (const [what, files, text, maxMemory] of helm === helms[0] ? HOSTILE : []) {
      // S-925
      test(`a chart that ${what} is refused, and nothing of the host is in what it says`, async (t) => {
        if (maxMemory !== undefined && programPath('prlimit') === undefined)
          return t.skip('there is no prlimit on PATH');
        charts.publish('hostile', '1.0.0', await packed('hostile', '1.0.0', files));
        const directory = mkdtempSync(join(place, 'hostile-'));
        const source = sourceOf(
          { chart: 'hostile', version: '1.0.0' },
          { directory, ...(maxMemory !== undefined && { maxMemory }) },
        );
        await assert.rejects(source.read('hostile:1.0.0', NEVER), (error: Error) => {
          assert.equal(error.name, 'SourceError');
          assert.match(error.message, text);
          assert.ok(!error.message.includes(place) && !error.message.includes('root:'), error.message);
          return true;
        });
        assert.deepEqual(
          readdirSync(directory).filter((name) => name.startsWith('helm-')),
          [],
        );
      });
    }

    // S-925
    test('a schema that names an address is not followed, and the chart is rendered', async () => {
      const asked = charts.requests.length;
      const schema = JSON.stringify({ $ref: `${charts.url}/schema-canary.json` });
      charts.publish('schema', '1.0.0', await packed('schema', '1.0.0', { ...APP, 'values.schema.json': schema }));
      const { files } = await sourceOf({ chart: 'schema', version: '1.0.0' }).read('schema:1.0.0', NEVER);
      assert.deepEqual(
        files.map(({ path }) => path),
        ['schema/templates/map.yaml'],
      );
      assert.deepEqual(
        charts.requests.slice(asked).filter((url) => url.includes('canary')),
        [],
      );
    });
  });
}
