import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { environment, withoutSecrets } from './git-command.ts';
import { checkRef, parseRepositoryUrl, shownUrl, treePath } from './repository-url.ts';

const TAKEN: readonly [text: string, protocol: string, url?: string][] = [
  ['https://git.example/fleet.git', 'https'],
  ['http://127.0.0.1:8080/fleet', 'http'],
  ['ssh://git@git.example:2222/fleet.git', 'ssh'],
  ['git@git.example:group/fleet.git', 'ssh'],
  ['file:///srv/fleet.git', 'file'],
  ['https://robot:secret@git.example/fleet', 'https', 'https://git.example/fleet'],
];
for (const [text, protocol, url = text] of TAKEN)
  test(`parseRepositoryUrl() takes ${text}`, () => {
    const read = parseRepositoryUrl(text, { allowsFile: true });
    assert.deepEqual([read.protocol, read.url], [protocol, url]);
  });

const REFUSED: readonly string[] = [
  '',
  '-oProxyCommand=touch /tmp/x',
  '--upload-pack=touch /tmp/x',
  'ext::sh -c "touch /tmp/x"',
  'ext::sh',
  'fd::17',
  'ssh://-oProxyCommand=x/y',
  'ssh://-l@host/y',
  'ssh://host/-x',
  'git@-oProxyCommand=x:y',
  '-l@host:y',
  'git@host:-x',
  'git@host::x',
  'git://git.example/fleet',
  'ftp://git.example/fleet',
  'ftps://git.example/fleet',
  'https:git.example/fleet',
  'https://git.example/fl\neet',
  'https://git.example/ fleet',
  'https://git.exa\u0000mple/fleet',
  'ssh://user:password@host/y',
  '/srv/fleet.git',
  '../fleet.git',
  'file://host/srv/fleet.git',
  'file:/srv/fleet.git',
  'transport::https://x',
];
// S-902
for (const text of REFUSED)
  test(`parseRepositoryUrl() refuses ${JSON.stringify(text)}`, () => {
    assert.throws(() => parseRepositoryUrl(text, { allowsFile: true }), { name: 'SourceError' });
  });
test('file:// is for those who may read this host', () => {
  assert.throws(() => parseRepositoryUrl('file:///srv/fleet.git', { allowsFile: false }), /RootSync/);
});

test('refs and directories that lead elsewhere are refused', () => {
  for (const ref of [
    '',
    '-x',
    '--upload-pack=x',
    'a..b',
    'a b',
    'a:b',
    'a^',
    'a~1',
    'a*',
    'x@{1}',
    '/a',
    'a/',
    '.a',
    'a.lock',
    'a\nb',
  ])
    assert.throws(() => checkRef(ref), { name: 'SourceError' }, ref);
  for (const ref of ['main', 'feature/x', 'v1.2.3', 'refs/heads/main', 'release-1.0']) checkRef(ref);
  for (const dir of ['..', 'a/../..', '/../etc', 'a\u0000b'])
    assert.throws(() => treePath(dir), { name: 'SourceError' }, dir);
  assert.deepEqual(['', '/', '/a/b/', './a//b', '.'].map(treePath), ['', '', 'a/b', 'a/b', '']);
});

test('what is shown holds no user, no password and no token', () => {
  assert.equal(shownUrl('https://robot:secret@git.example/x'), 'https://git.example/x');
  assert.equal(shownUrl('https://token@git.example/x'), 'https://git.example/x');
  assert.equal(shownUrl('ssh://git@git.example/x'), 'ssh://git@git.example/x');
  fc.assert(
    fc.property(fc.stringMatching(/^[A-Za-z0-9]{8,20}$/), (secret) => {
      const said = `fatal: unable to access 'https://u:${secret}@host/x/': header ${btoa(`u:${secret}`)}`;
      assert.ok(!withoutSecrets(said, [secret, btoa(`u:${secret}`)]).includes(secret));
    }),
  );
});

test('nothing of this process reaches git, and one protocol is allowed', () => {
  process.env['GIT_SSH_COMMAND'] = 'evil';
  process.env['GIT_CONFIG_PARAMETERS'] = "'core.sshCommand=evil'";
  try {
    const env = environment('/m', {
      protocol: 'ssh',
      url: 'git@h:x',
      secrets: [],
      ssh: { keyFile: "/a'b c", knownHostsFile: '/k', acceptsNewHosts: false },
    });
    assert.equal(env['GIT_ALLOW_PROTOCOL'], 'ssh');
    assert.match(env['GIT_SSH_COMMAND'] ?? '', /'-i' '\/a'\\''b c'.*StrictHostKeyChecking=yes/);
    assert.equal(env['GIT_CONFIG_PARAMETERS'], undefined);
    assert.equal(environment('/m', undefined)['GIT_ALLOW_PROTOCOL'], 'none');
  } finally {
    delete process.env['GIT_SSH_COMMAND'];
    delete process.env['GIT_CONFIG_PARAMETERS'];
  }
});
