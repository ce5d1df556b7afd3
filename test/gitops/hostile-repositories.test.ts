/**
 * Repositories that were made to do harm: their trees hold what a checkout would run, follow or write. What is read of them
 * is what an honest repository would have given, and nothing else on this host is touched or read.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createGitSource } from '../../packages/gitops/src/git/git-source.ts';
import { readTree } from '../../packages/gitops/src/git/read-tree.ts';
import type { SourceTree } from '../../packages/gitops/src/git/source.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';

const NEVER = new AbortController().signal;
let repository: GitRepository;
let place: string;
/** What a hostile tree would have made. */
let trace: string;
before(async () => {
  repository = await createRepository();
  place = mkdtempSync(join(tmpdir(), 'coracle-hostile-'));
  trace = join(place, 'trace');
  writeFileSync(join(place, 'outside.yaml'), 'outside: true');
});
after(() => {
  repository.remove();
  rmSync(place, { recursive: true, force: true });
});

interface Entry {
  readonly mode: string;
  readonly name: string;
  readonly content?: string;
  /** In place of content. */
  readonly id?: string;
}

/** A commit of exactly these entries, names that git itself would refuse among them; gives its branch. */
let branches = 0;
async function commitOf(entries: readonly Entry[]): Promise<string> {
  const raw: Buffer[] = [];
  for (const { mode, name, content = '', id } of [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const at = join(place, 'object');
    writeFileSync(at, content);
    const object = id ?? (await repository.git('hash-object', '-w', '--no-filters', at));
    raw.push(Buffer.from(`${mode} ${name}\0`), Buffer.from(object, 'hex'));
  }
  writeFileSync(join(place, 'object'), Buffer.concat(raw));
  const tree = await repository.git('hash-object', '-w', '-t', 'tree', '--literally', join(place, 'object'));
  const commit = await repository.git('commit-tree', tree, '-m', 'hostile');
  const branch = `hostile-${branches++}`;
  await repository.git('update-ref', `refs/heads/${branch}`, commit);
  return branch;
}

async function read(branch: string): Promise<SourceTree & { readonly directory: string }> {
  const directory = join(place, `mirror-${branch}`);
  const source = createGitSource({
    spec: { repo: repository.url, auth: 'none', branch },
    allowsFile: true,
    directory,
    clock: systemClock,
    secret: async () => ({}),
  });
  return { directory, ...(await source.read(await source.resolve(NEVER), NEVER)) };
}

const good: Entry = { mode: '100644', name: 'good.yaml', content: 'good: true' };
const run = (): string => `#!/bin/sh\ntouch ${trace}\n`;
const ROWS: readonly [what: string, entries: () => readonly Entry[], unread: readonly RegExp[]][] = [
  [
    'a link to a file of this host',
    () => [{ mode: '120000', name: 'l.yaml', content: join(place, 'outside.yaml') }],
    [/leads out/],
  ],
  ['a link that climbs out', () => [{ mode: '120000', name: 'l.yaml', content: '../../../etc/passwd' }], [/leads out/]],
  ['a link that leads to itself', () => [{ mode: '120000', name: 'l.yaml', content: 'l.yaml' }], [/nowhere/]],
  ['a link to nothing', () => [{ mode: '120000', name: 'l.yaml', content: 'missing' }], [/nowhere/]],
  ['a link with a newline in it', () => [{ mode: '120000', name: 'l.yaml', content: 'a\nb' }], [/nowhere/]],
  ['a name that climbs out', () => [{ mode: '100644', name: '../../../escape.txt', content: 'x' }], []],
  ['an absolute name', () => [{ mode: '100644', name: '/tmp/escape.txt', content: 'x' }], []],
  ['a name with a newline', () => [{ mode: '100644', name: 'a\nb.yaml', content: 'a: 1' }], [/control characters/]],
  ['a name that is an option', () => [{ mode: '100644', name: '--upload-pack=x.txt', content: 'a: 1' }], []],
  ['a repository in the repository', () => [{ mode: '100755', name: '.git/hooks/post-checkout', content: run() }], []],
  ['the same in other letters', () => [{ mode: '100755', name: '.GIT/hooks/post-checkout', content: run() }], []],
  ['the same as HFS+ reads it', () => [{ mode: '100755', name: '.g\u200cit/hooks/post-checkout', content: run() }], []],
  ['the same as NTFS reads it', () => [{ mode: '100755', name: 'git~1/hooks/post-checkout', content: run() }], []],
  [
    'a filter by attributes',
    () => [
      { mode: '100644', name: '.gitattributes', content: '*.yaml filter=evil diff=evil merge=evil' },
      { mode: '100644', name: '.gitconfig', content: `[filter "evil"]\n\tsmudge = touch ${trace}\n` },
    ],
    [],
  ],
  [
    'a submodule',
    () => [
      { mode: '160000', name: 'sub', id: 'a'.repeat(40) },
      {
        mode: '100644',
        name: '.gitmodules',
        content: `[submodule "sub"]\n\tpath = sub\n\turl = ext::sh -c "touch ${trace}"\n\tupdate = !touch ${trace}\n`,
      },
    ],
    [],
  ],
  [
    'a submodule whose path is a link',
    () => [
      { mode: '160000', name: 'sub.yaml', id: 'b'.repeat(40) },
      { mode: '120000', name: '.gitmodules', content: '/etc/passwd' },
    ],
    [],
  ],
  [
    'a pointer to a large file elsewhere',
    () => [{ mode: '100644', name: '.lfsconfig', content: `[lfs]\n\turl = http://127.0.0.1:1/\n` }],
    [],
  ],
  ['an executable manifest', () => [{ mode: '100755', name: 'x.txt', content: run() }], []],
];

for (const [what, entries, unread] of ROWS) {
  // S-902: A repository that was made to do harm runs, writes and reads nothing on this host, and what else it holds is
  //   read; what is larger than the bounds is refused.
  test(`${what}: the rest is read, and nothing else is touched`, async () => {
    const { files, unread: found, directory } = await read(await commitOf([good, ...entries()]));
    assert.deepEqual(
      files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
      [['good.yaml', 'good: true']],
    );
    assert.equal(found.length, unread.length, JSON.stringify(found));
    for (const [at, pattern] of unread.entries()) assert.match(found[at]!.problem, pattern);
    assert.equal(existsSync(trace), false, 'something of the repository ran');
    const [mirror = ''] = readdirSync(directory);
    assert.ok(!existsSync(join(directory, mirror, 'hooks')) && readdirSync(directory).length === 1);
    assert.ok(!existsSync('/tmp/escape.txt') && !existsSync(join(place, 'escape.txt')));
  });
}

test('a link within the tree is read as what it leads to', async () => {
  const { files } = await read(await commitOf([good, { mode: '120000', name: 'l.yaml', content: 'good.yaml' }]));
  assert.deepEqual(
    files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]),
    [
      ['good.yaml', 'good: true'],
      ['l.yaml', 'good: true'],
    ],
  );
});

test('trees beyond the limits are refused as a whole, single files are left out', async () => {
  await repository.commit({ 'a.yaml': 'a: 1', 'b.yaml': 'b: 22222', 'c.txt': 'c' });
  const at = {
    directory: join(repository.path, '.git'),
    commit: await repository.git('rev-parse', 'main'),
    path: '',
    signal: NEVER,
  };
  await assert.rejects(readTree({ ...at, limits: { entries: 2 } }), /more than 2 files/);
  await assert.rejects(readTree({ ...at, limits: { files: 1 } }), /2 manifests; 1 are read/);
  await assert.rejects(readTree({ ...at, limits: { totalBytes: 5 } }), /bytes; 5 are read/);
  const { files, unread } = await readTree({ ...at, limits: { fileBytes: 5 } });
  assert.deepEqual([files.map(({ path }) => path), unread.map(({ path }) => path)], [['a.yaml'], ['b.yaml']]);
  await assert.rejects(readTree({ ...at, path: 'missing' }), /no directory "missing"/);
});

// S-902
test('a repository with a config that runs programs runs none when it is fetched from', async () => {
  const hostile = await createRepository();
  await hostile.commit({ 'a.yaml': 'a: 1' });
  for (const [key, value] of [
    ['uploadpack.packObjectsHook', `touch ${trace}`],
    ['core.fsmonitor', `touch ${trace}`],
    ['core.sshCommand', `touch ${trace}`],
    ['core.pager', `touch ${trace}`],
    ['alias.upload-pack', `!touch ${trace}`],
  ] as const)
    await hostile.git('config', key, value).catch(() => {});
  const source = createGitSource({
    spec: { repo: hostile.url, auth: 'none', branch: 'main' },
    allowsFile: true,
    directory: join(place, 'of-config'),
    clock: systemClock,
    secret: async () => ({}),
  });
  assert.equal((await source.read(await source.resolve(NEVER), NEVER)).files.length, 1);
  assert.equal(existsSync(trace), false);
  hostile.remove();
});
