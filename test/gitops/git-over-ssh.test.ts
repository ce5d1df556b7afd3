/** Git over ssh, against a real sshd on loopback. Skipped where there is none, and where it may not log this user in. */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createGitSource } from '../../packages/gitops/src/git/git-source.ts';
import type { SecretData } from '../../packages/gitops/src/git/source.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';

const NEVER = new AbortController().signal;
const sshd = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/local/sbin']
  .map((place) => join(place, 'sshd'))
  .find((path) => existsSync(path));

let repository: GitRepository;
let place: string;
let port: number;
let server: ChildProcess | undefined;
const key = (name: string): string => readFileSync(join(place, name), 'utf8');
const makeKey = (name: string): void =>
  void execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(place, name)]);

before(async () => {
  repository = await createRepository();
  await repository.commit({ 'a.yaml': 'a: 1' });
  place = mkdtempSync(join(tmpdir(), 'coracle-sshd-'));
  if (sshd === undefined) return;
  for (const name of ['host', 'other-host', 'user', 'unknown']) makeKey(name);
  copyFileSync(join(place, 'user.pub'), join(place, 'authorized'));
  chmodSync(join(place, 'authorized'), 0o600);
  port = await freePort();
  await startSshd('host');
});
after(async () => {
  await stopSshd();
  repository.remove();
  rmSync(place, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port: free } = taken.address() as { port: number };
  await new Promise((resolve) => taken.close(resolve));
  return free;
}

async function startSshd(hostKey: string): Promise<void> {
  const lines = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(place, hostKey)}`,
    `AuthorizedKeysFile ${join(place, 'authorized')}`,
    `PidFile ${join(place, 'pid')}`,
    'StrictModes no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin yes',
  ];
  writeFileSync(join(place, 'config'), `${lines.join('\n')}\n`);
  server = spawn(sshd!, ['-D', '-e', '-f', join(place, 'config')], { stdio: 'ignore' });
  for (let answers = false; !answers; ) {
    answers = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.setTimeout(1000, () => socket.destroy());
      socket.on('connect', () => socket.destroy());
    });
    if (server.exitCode !== null) return;
    if (!answers) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function stopSshd(): Promise<void> {
  if (!server || server.exitCode !== null) return;
  const ended = new Promise((resolve) => server!.once('exit', resolve));
  server.kill('SIGTERM');
  await ended;
}

let places = 0;
function sourceOf(secret: SecretData, directory = join(place, `mirror-${places++}`)) {
  const source = createGitSource({
    spec: {
      repo: `ssh://${userInfo().username}@127.0.0.1:${port}${repository.path}/.git`,
      branch: 'main',
      auth: 'ssh',
      secretRef: { name: 'key' },
    },
    allowsFile: false,
    directory,
    clock: systemClock,
    secret: async () => secret,
  });
  return { directory, source };
}
const known = (host: string): string => `[127.0.0.1]:${port} ${key(`${host}.pub`).split(' ').slice(0, 2).join(' ')}\n`;

// S-915: A repository is fetched by ssh with the key of a Secret, from the hosts that its `known_hosts` names, else
//   from the host that answered first; the key is in no error and no file afterwards.
test('a key and known hosts: fetched; another host, another key: refused, and nothing of the key is shown or left', async (t) => {
  if (sshd === undefined || server?.exitCode !== null) return t.skip('there is no sshd here');
  const { source, directory } = sourceOf({ ssh: key('user'), known_hosts: known('host') });
  const commit = await source.resolve(NEVER);
  assert.equal(commit, await repository.git('rev-parse', 'main'));
  assert.deepEqual(
    (await source.read(commit, NEVER)).files.map(({ path }) => path),
    ['a.yaml'],
  );
  assert.equal(readdirSync(directory).length, 1);
  const secret = key('user').split('\n')[2]!;
  for (const [what, data, text] of [
    [
      'another host',
      { ssh: key('user'), known_hosts: known('other-host') },
      /Host key verification failed|REMOTE HOST/i,
    ],
    ['another key', { ssh: key('unknown'), known_hosts: known('host') }, /Permission denied/],
    ['no key', { known_hosts: known('host') }, /has no key ssh/],
  ] as const)
    await assert.rejects(
      sourceOf(data).source.resolve(NEVER),
      (error: Error) => error.name === 'SourceError' && text.test(error.message) && !error.message.includes(secret),
      what,
    );
});

// S-915
test('without known hosts the first host is believed, and another in its place is not', async (t) => {
  if (sshd === undefined || server?.exitCode !== null) return t.skip('there is no sshd here');
  const { source, directory } = sourceOf({ ssh: key('user') });
  await source.resolve(NEVER);
  assert.match(readFileSync(join(directory, 'known_hosts'), 'utf8'), /ssh-ed25519/);
  await stopSshd();
  await startSshd('other-host');
  await assert.rejects(source.resolve(NEVER), {
    name: 'SourceError',
    message: /Host key verification failed|IDENTIFICATION HAS CHANGED/i,
  });
  // Also after a restart of this program.
  await assert.rejects(sourceOf({ ssh: key('user') }, directory).source.resolve(NEVER), { name: 'SourceError' });
});
