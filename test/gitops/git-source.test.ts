/** Git as a source, on real repositories: what is fetched and read, over file, HTTP, TLS and ssh. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPki } from '../../packages/coracle/src/config/pki.ts';
import { createGitSource } from '../../packages/gitops/src/git/git-source.ts';
import type { SecretData, Source } from '../../packages/gitops/src/git/source.ts';
import type { GitSpec } from '../../packages/gitops/src/kinds/kinds.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createRepository, type GitRepository, type GitServer, serveRepository } from '../testkit/git-repository.ts';

const NEVER = new AbortController().signal;
let repository: GitRepository;
let place: string;
before(async () => {
  repository = await createRepository();
  place = mkdtempSync(join(tmpdir(), 'coracle-mirrors-'));
});
after(() => {
  repository.remove();
  rmSync(place, { recursive: true, force: true });
});

let places = 0;
function sourceOf(
  spec: Partial<GitSpec> & { readonly repo: string },
  more: {
    readonly depth?: number;
    readonly secrets?: Readonly<Record<string, SecretData>>;
    readonly directory?: string;
    readonly maxBytes?: number;
  } = {},
): Source & { readonly directory: string } {
  const directory = more.directory ?? join(place, String(places++));
  return {
    directory,
    ...createGitSource({
      spec: { auth: 'none', branch: 'main', ...spec },
      allowsFile: true,
      directory,
      clock: systemClock,
      secret: async (name) => more.secrets?.[name] ?? {},
      ...(more.depth !== undefined && { depth: more.depth }),
      ...(more.maxBytes !== undefined && { maxBytes: more.maxBytes }),
    }),
  };
}
const readAll = async (source: Source): Promise<Record<string, string>> => {
  const commit = await source.resolve(NEVER);
  const { files } = await source.read(commit, NEVER);
  return Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]));
};

// S-901: A branch, a tag, a ref or a commit of a Git repository is fetched by HTTP, TLS or from a file, with the depth
//   asked for, a token, a certificate authority and a proxy; credentials are on no command line, in no error and in no
//   file afterwards, and are not handed on to a server that is redirected to.
test('a branch is followed, a tag and a commit stay; only manifests below the directory are read', async () => {
  const source = sourceOf({ repo: repository.url, dir: '/apps' });
  const first = await repository.commit({ 'apps/a.yaml': 'a: 1', 'apps/README.md': 'x', 'other/b.yaml': 'b: 1' });
  await repository.git('tag', '-a', 'v1', '-m', 'one');
  assert.deepEqual(await readAll(source), { 'apps/a.yaml': 'a: 1' });
  await repository.commit({ 'apps/a.yaml': 'a: 2', 'apps/deep/c.json': '{}', 'apps/.github/d.yaml': 'd: 1' });
  assert.deepEqual(await readAll(source), { 'apps/a.yaml': 'a: 2', 'apps/deep/c.json': '{}' });
  for (const revision of ['v1', 'refs/tags/v1', first])
    assert.deepEqual(
      await readAll(sourceOf({ repo: repository.url, dir: 'apps', revision })),
      { 'apps/a.yaml': 'a: 1' },
      revision,
    );
  assert.equal(await sourceOf({ repo: repository.url, revision: 'v1' }).resolve(NEVER), first);
  assert.deepEqual(Object.keys(await readAll(sourceOf({ repo: repository.url }))), [
    'apps/a.yaml',
    'apps/deep/c.json',
    'other/b.yaml',
  ]);
});

test('a rewritten branch is followed; a fetch that fails and a branch that is gone say so', async () => {
  const source = sourceOf({ repo: repository.url, branch: 'moving' });
  await repository.git('checkout', '--quiet', '-b', 'moving');
  await repository.commit({ 'm.yaml': 'm: 1' });
  await source.resolve(NEVER);
  await repository.git('commit', '--quiet', '--amend', '--message=other', '--allow-empty');
  assert.equal(await source.resolve(NEVER), await repository.git('rev-parse', 'HEAD'));
  await repository.git('checkout', '--quiet', 'main');
  await repository.git('branch', '--quiet', '-D', 'moving');
  await assert.rejects(source.resolve(NEVER), { name: 'SourceError', message: /no branch "moving"/ });
  await assert.rejects(sourceOf({ repo: 'file:///nowhere/at-all' }).resolve(NEVER), { name: 'SourceError' });
  await assert.rejects(sourceOf({ repo: repository.url, revision: 'f'.repeat(40) }).resolve(NEVER), /no commit f/);
});

// S-990: A poll of a branch that finds nothing new starts no program over HTTP and for files of this host, and is one
//   request over HTTP; of a commit that is new only files that differ are read.
test('a poll that finds nothing new starts no program, also when the branch has moved before', async () => {
  const source = sourceOf({ repo: repository.url });
  await repository.git('checkout', '--quiet', 'main');
  const path = process.env['PATH'];
  for (const value of ['1', '2']) {
    const commit = await repository.commit({ 'polled.yaml': `polled: ${value}` });
    assert.equal(await source.resolve(NEVER), commit);
    process.env['PATH'] = '';
    try {
      assert.equal(await source.resolve(NEVER), commit);
    } finally {
      process.env['PATH'] = path;
    }
  }
  // What no quick look can read is asked of git: here a ref that is no file of its own.
  await repository.git('pack-refs', '--all');
  assert.equal(await source.resolve(NEVER), await repository.git('rev-parse', 'main'));
});

// S-990
test('over HTTP a poll is one request, and a commit is looked for once', async (t) => {
  const server = await serveRepository(repository, { username: 'robot', password: 'polls' });
  t.after(() => server.stop());
  const source = sourceOf(
    { repo: server.url, auth: 'token', secretRef: { name: 'git' } },
    { secrets: { git: { username: 'robot', token: 'polls' } } },
  );
  const asked = async (): Promise<string[]> => {
    const before = server.requests.length;
    await source.resolve(NEVER);
    return server.requests.slice(before);
  };
  await asked();
  assert.deepEqual(await asked(), ['POST /.git/git-upload-pack']);
  await repository.commit({ 'polled.yaml': 'polled: 3' });
  assert.deepEqual((await asked()).slice(0, 2), [
    'POST /.git/git-upload-pack',
    'GET /.git/info/refs?service=git-upload-pack',
  ]);
  assert.deepEqual(await asked(), ['POST /.git/git-upload-pack']);
});

// S-990
test('what is known of a commit is not read again, but for links', async () => {
  await repository.git('checkout', '--quiet', '-b', 'known');
  const source = sourceOf({ repo: repository.url, branch: 'known', dir: 'known' });
  await repository.commit({ 'known/a.yaml': 'a: 1', 'known/b.yaml': 'b: 1' });
  symlinkSync('b.yaml', join(repository.path, 'known/link.yaml'));
  const first = await repository.commit({});
  await source.resolve(NEVER);
  const ids = new Map((await source.read(first, NEVER)).files.map(({ path, id }) => [path, id]));
  const second = await repository.commit({ 'known/b.yaml': 'b: 2' });
  await source.resolve(NEVER);
  const { files } = await source.readChanged!(second, (path, id) => ids.get(path) === id, NEVER);
  assert.deepEqual(
    files.map(({ path, bytes }) => [path, bytes && Buffer.from(bytes).toString()]),
    [
      ['known/a.yaml', undefined],
      ['known/b.yaml', 'b: 2'],
      ['known/link.yaml', 'b: 2'],
    ],
  );
  await repository.git('checkout', '--quiet', 'main');
});

test('one commit of history is fetched, as many as asked for, or all', async () => {
  for (const [depth, count] of [
    [undefined, '1'],
    [2, '2'],
    [0, await repository.git('rev-list', '--count', 'main')],
  ] as const) {
    const source = sourceOf({ repo: repository.url }, depth === undefined ? {} : { depth });
    const commit = await source.resolve(NEVER);
    const mirror = join(source.directory, readdirSync(source.directory).find((name) => name.endsWith('.git'))!);
    assert.equal(await repository.git('--git-dir', mirror, 'rev-list', '--count', commit), count);
  }
});

test('a mirror that a killed process left locked is fetched anew; another URL takes its place', async () => {
  const first = sourceOf({ repo: repository.url });
  await first.resolve(NEVER);
  const [mirror = ''] = readdirSync(first.directory);
  writeFileSync(join(first.directory, mirror, 'shallow.lock'), '');
  writeFileSync(join(first.directory, 'secret-left'), 'x');
  const second = sourceOf({ repo: repository.url }, { directory: first.directory });
  assert.equal(await second.resolve(NEVER), await repository.git('rev-parse', 'main'));
  assert.deepEqual(readdirSync(first.directory), [mirror]);
  await sourceOf({ repo: repository.url.replace('/.git', '') }, { directory: first.directory }).resolve(NEVER);
  assert.equal(existsSync(join(first.directory, mirror)), false);
});

// S-902
test('a repository that outgrows its bound is refused, and takes no room', async () => {
  const large = await createRepository();
  const noise = Array.from({ length: 40_000 }, () => Math.random().toString(36)).join('');
  await large.commit({ 'noise.bin': noise });
  const source = sourceOf({ repo: large.url }, { maxBytes: 100_000 });
  await assert.rejects(source.resolve(NEVER), /larger than 100000 bytes/);
  assert.deepEqual(readdirSync(source.directory), []);
  large.remove();
});

// S-901
test('HTTP with user and password: they are in no argument, no error and no file afterwards', async (t) => {
  const server = await serveRepository(repository, { username: 'robot', password: 'hunter2-secret' });
  t.after(() => server.stop());
  const secrets = {
    login: { username: 'robot', token: 'hunter2-secret' },
    wrong: { username: 'robot', token: 'not-the-one' },
  };
  const source = sourceOf({ repo: server.url, auth: 'token', secretRef: { name: 'login' } }, { secrets });
  const args: string[] = [];
  const looking = setInterval(() => args.push(...argumentsOfChildren()), 1);
  const commit = await source.resolve(NEVER);
  clearInterval(looking);
  assert.equal(commit, await repository.git('rev-parse', 'main'));
  assert.ok(
    args.some((line) => line.includes('git')),
    'no git was seen at all',
  );
  assert.deepEqual(
    args.filter((line) => /hunter2/.test(line) || line.includes(btoa('robot:hunter2-secret'))),
    [],
  );
  assert.equal(readdirSync(source.directory).length, 1);
  const inUrl = sourceOf({ repo: server.url.replace('://', '://robot:hunter2-secret@') });
  assert.equal(await inUrl.resolve(NEVER), commit);
  for (const [secretRef, expected] of [
    ['wrong', /Authentication failed|could not read Username|403|401/],
    ['none', /has no key username/],
  ] as const)
    await assert.rejects(
      sourceOf({ repo: server.url, auth: 'token', secretRef: { name: secretRef } }, { secrets }).resolve(NEVER),
      (error: Error) => expected.test(error.message) && !/not-the-one|hunter2/.test(error.message),
    );
});

// S-963: A repository is fetched with the cookies of a Secret (auth `cookiefile`), which go to the hosts that they name
//   and are in no argument, no error and no file afterwards; `githubapp`, `gcenode` and `gcpserviceaccount` are refused
//   with what serves instead.
test('cookies of a Secret: they are in no argument, no error and no file afterwards, and go to their host alone', async (t) => {
  const server = await serveRepository(repository, { cookie: 'session=hunter2-cookie' });
  t.after(() => server.stop());
  const cookies = (host: string, value: string) => ({
    cookie_file: `# Netscape HTTP Cookie File\n${host}\tFALSE\t/\tFALSE\t2147483647\tsession\t${value}\n`,
  });
  const secrets = {
    right: cookies('127.0.0.1', 'hunter2-cookie'),
    wrong: cookies('127.0.0.1', 'not-the-one'),
    elsewhere: cookies('git.example.org', 'hunter2-cookie'),
    empty: {},
  };
  const from = (name: string) => sourceOf({ repo: server.url, auth: 'cookiefile', secretRef: { name } }, { secrets });
  const source = from('right');
  const args: string[] = [];
  const looking = setInterval(() => args.push(...argumentsOfChildren()), 1);
  assert.equal(await source.resolve(NEVER), await repository.git('rev-parse', 'main'));
  clearInterval(looking);
  assert.deepEqual(
    args.filter((line) => line.includes('hunter2')),
    [],
  );
  assert.equal(readdirSync(source.directory).length, 1);
  for (const [name, expected] of [
    ['wrong', /403/],
    ['elsewhere', /403/],
    ['empty', /has no key cookie_file/],
  ] as const)
    await assert.rejects(
      from(name).resolve(NEVER),
      (error: Error) => expected.test(error.message) && !/not-the-one|hunter2/.test(error.message),
    );
});

// S-901
test('a server that redirects to another does not hand on the password', async (t) => {
  const other = await serveRepository(repository);
  const server = await serveRepository(repository, { username: 'robot', password: 'hunter2-secret' });
  t.after(() => Promise.all([server.stop(), other.stop()]));
  const seen: (string | undefined)[] = [];
  const thief = await listen((request) => seen.push(request.headers.authorization));
  t.after(() => thief.stop());
  server.redirect = thief.url;
  const source = sourceOf(
    { repo: server.url, auth: 'token', secretRef: { name: 'login' } },
    { secrets: { login: { username: 'robot', token: 'hunter2-secret' } } },
  );
  await assert.rejects(source.resolve(NEVER), { name: 'SourceError' });
  assert.deepEqual(
    seen.filter((value) => value !== undefined),
    [],
  );
});

test('a server that answers by 503 is an error, and what was fetched stays', async (t) => {
  const server: GitServer = await serveRepository(repository);
  t.after(() => server.stop());
  const source = sourceOf({ repo: server.url });
  const commit = await source.resolve(NEVER);
  server.down = 503;
  await assert.rejects(source.resolve(NEVER), { name: 'SourceError', message: /503/ });
  assert.ok((await source.read(commit, NEVER)).files.length > 0);
});

// S-901
test('TLS: the authority of the secret is believed, others are not, unless nothing is checked', async (t) => {
  const keys = mkdtempSync(join(place, 'pki-'));
  const pki = await openPki(join(keys, 'pki'), systemClock);
  const pair = await pki.pair('git', { commonName: 'git', ipAddresses: ['127.0.0.1'], usage: 'server', days: 1 });
  const server = await serveRepository(repository, { tls: { cert: pair.certificate, key: pair.key } });
  t.after(() => server.stop());
  const secrets = { authority: { cert: pki.ca } };
  const commit = await repository.git('rev-parse', 'main');
  const believed = sourceOf({ repo: server.url, caCertSecretRef: { name: 'authority' } }, { secrets });
  assert.equal(await believed.resolve(NEVER), commit);
  await assert.rejects(sourceOf({ repo: server.url }).resolve(NEVER), { name: 'SourceError', message: /certificate/i });
  assert.equal(await sourceOf({ repo: server.url, noSSLVerify: true }).resolve(NEVER), commit);
});

// S-901
test('a proxy is asked in place of the server', async (t) => {
  const asked: string[] = [];
  const proxy = await listen((request) => asked.push(request.url ?? ''));
  t.after(() => proxy.stop());
  await assert.rejects(sourceOf({ repo: 'http://git.invalid/fleet.git', proxy: proxy.url }).resolve(NEVER));
  assert.match(asked[0] ?? '', /^http:\/\/git\.invalid\/fleet\.git\//);
});

async function listen(seen: (request: import('node:http').IncomingMessage) => void) {
  const { createServer } = await import('node:http');
  const server = createServer((request, response) => {
    seen(request);
    response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as import('node:net').AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** Command lines of all processes below this one. */
function argumentsOfChildren(): string[] {
  const lines: string[] = [];
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      if (/^(\S*\/)?git/.test(line)) lines.push(line);
    } catch {
      // It has ended.
    }
  }
  return lines;
}
