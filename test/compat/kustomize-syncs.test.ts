/** Syncs of directories that kustomize renders, by the real kustomize of kubectl; kustomizations that were made to do harm. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import type { SourceTree } from '../../packages/gitops/src/git/source.ts';
import { kustomize } from '../../packages/gitops/src/render/kustomize.ts';
import { programPath } from '../../packages/runtime/src/process/program.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const NEVER = new AbortController().signal;
const kubectl = programPath('kubectl');
const skip = kubectl === undefined && 'there is no kubectl on PATH';
const hostPath = process.env['PATH'];

suite('kustomize', { skip }, () => {
  let at: GitOpsCluster;
  let place: string;
  const repositories: GitRepository[] = [];
  before(async () => {
    place = mkdtempSync(join(tmpdir(), 'coracle-kustomize-'));
    at = await startGitOpsCluster({ directory: join(place, 'gitops') });
  });
  after(async () => {
    await at.stop();
    for (const repository of repositories) repository.remove();
    rmSync(place, { recursive: true, force: true });
    assert.deepEqual(at.cluster.errors, []);
  });
  const repositoryOf = async (files: Readonly<Record<string, string>>): Promise<[GitRepository, string]> => {
    const repository = await createRepository();
    repositories.push(repository);
    return [repository, await repository.commit(files)];
  };

  // S-922: A directory with a kustomization is built with the files of the whole source by `kustomize` or `kubectl`,
  //   and what they print is applied; what cannot be built, a kustomization further down, or a host without either is
  //   KNV1068 and changes nothing.
  test('a directory with a kustomization is built, with bases beside it, and what it makes is applied', async () => {
    const [repository, first] = await repositoryOf({
      'app/kustomization.yaml':
        'resources: [../base]\nnamePrefix: built-\nconfigMapGenerator:\n- {name: gen, files: [text.txt], options: {disableNameSuffixHash: true}}\n',
      'app/text.txt': 'of a file',
      'base/kustomization.yml': 'resources: [a.yaml]',
      'base/a.yaml': configMapYaml('a', { k: '1' }),
      'elsewhere.yaml': configMapYaml('elsewhere', {}),
    });
    await at.rootSync('kustomized', repository.url, { git: { dir: 'app' } });
    const { status } = await at.synced('kustomized', first);
    assert.equal(status?.rendering?.message, 'Rendering succeeded');
    const made = await at.configMap('built-a');
    assert.deepEqual(made?.data, { k: '1' });
    assert.equal(made?.metadata.annotations?.['configmanagement.gke.io/source-path'], 'app/kustomization.yaml');
    assert.deepEqual((await at.configMap('built-gen'))?.data, { 'text.txt': 'of a file' });
    assert.deepEqual([await at.configMap('a'), await at.configMap('elsewhere')], [undefined, undefined]);
    const second = await repository.commit({ 'base/a.yaml': configMapYaml('a', { k: '2' }) });
    await at.synced('kustomized', second);
    assert.deepEqual((await at.configMap('built-a'))?.data, { k: '2' });
    const left = readdirSync(join(place, 'gitops'), { recursive: true }).filter((one) =>
      String(one).includes('render-'),
    );
    assert.deepEqual(left, []);
  });

  // S-922
  test('a kustomization that cannot be built changes nothing and is KNV1068; so is one that is only further down', async () => {
    const [repository, first] = await repositoryOf({
      'kustomization.yaml': 'resources: [a.yaml]',
      'a.yaml': configMapYaml('stays', { k: '1' }),
    });
    await at.rootSync('unbuilt', repository.url);
    await at.synced('unbuilt', first);
    await repository.commit({ 'kustomization.yaml': 'resources: [a.yaml]\npatches: [{path: missing.yaml}]' });
    const failing = await at.failing('unbuilt', ['1068']);
    assert.match(
      failing.status?.rendering?.errors?.[0]?.errorMessage ?? '',
      /kustomize cannot build the root: .*missing\.yaml/s,
    );
    assert.equal(failing.status?.rendering?.message, 'Rendering failed');
    assert.deepEqual(failing.status?.rendering?.errors?.[0]?.errorResources, [{ sourcePath: 'kustomization.yaml' }]);
    assert.deepEqual((await at.configMap('stays'))?.data, { k: '1' });
    await repository.commit({ 'below/kustomization.yaml': 'resources: []' });
    await repository.git('rm', '--quiet', 'kustomization.yaml');
    await repository.commit({});
    await at.until('unbuilt', 'below', ({ status }) =>
      /below\/kustomization\.yaml is below/.test(status?.rendering?.errors?.[0]?.errorMessage ?? ''),
    );
    assert.deepEqual((await at.configMap('stays'))?.data, { k: '1' });
  });

  // S-922
  test('a host without kustomize and kubectl says so, and goes on when there is one', async (t) => {
    const bin = join(place, 'bin');
    mkdirSync(bin);
    for (const name of ['git', 'prlimit']) {
      const found = programPath(name);
      if (found !== undefined) symlinkSync(found, join(bin, name));
    }
    process.env['PATH'] = bin;
    t.after(() => {
      process.env['PATH'] = hostPath;
    });
    const [repository, commit] = await repositoryOf({
      Kustomization: 'resources: [a.yaml]',
      'a.yaml': configMapYaml('after-install', {}),
    });
    await at.rootSync('uninstalled', repository.url);
    const failing = await at.failing('uninstalled', ['1068']);
    assert.match(
      failing.status?.rendering?.errors?.[0]?.errorMessage ?? '',
      /^KNV1068: Kustomization needs kustomize, and this host has neither kustomize nor kubectl in its PATH: install one/,
    );
    process.env['PATH'] = hostPath;
    await at.synced('uninstalled', commit);
  });

  const built = (
    files: Readonly<Record<string, string>>,
    more: { maxMemory?: number; timeoutMs?: number } = {},
  ): Promise<SourceTree> =>
    kustomize(
      { files: Object.entries(files).map(([path, text]) => ({ path, bytes: Buffer.from(text) })), unread: [] },
      'app/kustomization.yaml',
      { dir: 'app', directory: join(place, 'private'), signal: NEVER, ...more },
    );

  // S-923
  test('names that lead out of the directory that it is written to are not written, and the rest is built', async () => {
    const { files } = await built({
      'app/kustomization.yaml': 'resources: [a.yaml]',
      'app/a.yaml': configMapYaml('a', {}),
      'app/../../../escape.yaml': 'x',
      'app/.git/hooks/post-checkout': '#!/bin/sh',
      'app/a.yaml/below': 'a file and a directory',
    });
    assert.match(Buffer.from(files[0]!.bytes).toString(), /name: a/);
    assert.ok(!existsSync(join(place, 'escape.yaml')) && !existsSync(join(place, 'private', 'escape.yaml')));
    assert.deepEqual(readdirSync(join(place, 'private')), []);
  });

  const CLOSED: readonly [what: string, files: (url: string) => Readonly<Record<string, string>>][] = [
    [
      'a program as a plugin',
      () => ({
        'app/kustomization.yaml': 'generators: [g.yaml]',
        'app/g.yaml': `apiVersion: v1\nkind: G\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n`,
        'app/run.sh': `#!/bin/sh\ntouch ${join(place, 'trace')}\n`,
      }),
    ],
    [
      'a file of this host',
      () => ({ 'app/kustomization.yaml': `configMapGenerator: [{name: c, files: [${join(place, 'secret')}]}]` }),
    ],
    [
      'the same by a path that climbs',
      () => ({ 'app/kustomization.yaml': 'configMapGenerator: [{name: c, files: [../../../../secret]}]' }),
    ],
    [
      'a repository that the source has a directory for',
      () => ({
        'app/kustomization.yaml': 'resources: [github.com/example/base]',
        'app/github.com/example/base/kustomization.yaml': 'resources: []',
      }),
    ],
  ];
  for (const [what, files] of CLOSED) {
    // S-923
    test(`${what} is not run, read or fetched`, async () => {
      writeFileSync(join(place, 'secret'), 'canary');
      const asked: string[] = [];
      const server = createServer((request, response) => {
        asked.push(request.url ?? '');
        response.end();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      await assert.rejects(built(files(url)), (error: Error) => !error.message.includes('canary'));
      server.close();
      assert.deepEqual([asked, existsSync(join(place, 'trace'))], [[], false]);
    });
  }

  // S-923
  test('a kustomization that takes too much memory or time is ended', async (t) => {
    if (programPath('prlimit') === undefined) return t.skip('there is no prlimit on PATH');
    const many = Array.from({ length: 2000 }, (_, at) => configMapYaml(`c-${at}`, { k: 'x'.repeat(2000) }));
    const files = {
      'app/kustomization.yaml': 'resources: [a.yaml]\nnamePrefix: p-',
      'app/a.yaml': many.join('\n---\n'),
    };
    assert.equal((await built(files)).files.length, 1);
    await assert.rejects(built(files, { maxMemory: 24 * 1024 ** 2 }), /kustomize cannot build app/);
    await assert.rejects(built(files, { timeoutMs: 1 }), /took longer than 1 ms/);
  });
});
