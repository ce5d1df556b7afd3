/** Nobody else's code runs under a user's name: caches and state that others own or may write are refused, and umask is 077. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { ensurePrivateDir } from '../../packages/coracle/src/config/data-dir.ts';
import { distrust, distrustCache } from '../../packages/coracle/src/config/trusted-dir.ts';

const ROOT = resolve(import.meta.dirname, '../..');
let home: string;
before(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'coracle-own-')));
});
after(() => rmSync(home, { recursive: true }));

/** Makes a directory, with its mode whatever the umask is. */
const make = (name: string, mode: number): string => {
  const path = join(home, name);
  mkdirSync(path, { recursive: true });
  chmodSync(path, mode);
  return path;
};

/** What the launcher's own check says, before there is a Node. */
const shellTrusts = (path: string): boolean =>
  spawnSync('sh', ['-c', '. "$0/tools/setup/private-cache.sh"; private_cache "$1"', ROOT, path]).status === 0;

// S-462: A compile cache that another user owns or may write is not used, state in such a place ends the program with
//   1, and every process closes its files to others (umask 077).
test('a directory is trusted when nobody else may change it or what is above it; the shell agrees', () => {
  make('open', 0o777);
  make('open/inner', 0o700);
  make('group', 0o770);
  make('sticky', 0o1777);
  make('sticky/inner', 0o700);
  make('closed', 0o755);
  symlinkSync(join(home, 'open/inner'), join(home, 'link'));
  make('stuffed', 0o700);
  make('stuffed/old', 0o777);
  const cases: readonly (readonly [string, boolean, boolean])[] = [
    ['closed', true, true],
    ['missing', true, true],
    ['sticky/inner', true, true],
    ['sticky/missing', true, true],
    ['open', false, false],
    ['group', false, false],
    ['sticky', false, false],
    ['open/inner', false, false],
    ['open/missing', false, false],
    ['link', false, false],
    ['stuffed', true, false],
  ];
  for (const [name, dir, cache] of cases) {
    const path = join(home, name);
    assert.equal(distrust(path) === undefined, dir, name);
    assert.equal(distrustCache(path) === undefined, cache, `${name} as a cache`);
    assert.equal(shellTrusts(path), cache, `${name} in the launcher`);
  }
});

// S-462
test('what belongs to another user is refused', {
  skip: process.getuid?.() !== 0 && 'only root gives files away',
}, () => {
  const path = make('given', 0o700);
  execFileSync('chown', ['12345', path]);
  assert.match(distrust(path) ?? '', /belongs to another user \(uid 12345\)/);
  assert.equal(shellTrusts(path), false);
  assert.match(distrust(join(path, 'inner')) ?? '', /belongs to another user/);
});

// S-462
test('state that others may write is not used, and is left as it was', () => {
  const path = make('state', 0o777);
  assert.throws(
    () => ensurePrivateDir(path),
    /state is not used: .* may be written by other users \(mode 777; chmod go-w/,
  );
  assert.equal(statSync(path).mode & 0o777, 0o777);
});

// S-462
test('the program: no cache from a folder of others, exit 1 for such state, and its own folders are 0700', () => {
  const run = (cacheHome: string, ...words: string[]) =>
    spawnSync('sh', ['-c', 'umask 0; exec "$0" "$@"', join(ROOT, 'coracle'), ...words], {
      encoding: 'utf8',
      env: {
        PATH: `${process.execPath.replace(/\/node$/, '')}:${process.env['PATH']}`,
        HOME: home,
        XDG_CACHE_HOME: cacheHome,
      },
    });
  const open = make('cache-open', 0o777);
  const refused = run(open, 'version');
  assert.match(refused.stderr, /compile cache not used: others own .*cache-open\/coracle\/compile/);
  assert.equal(refused.status, 0, refused.stderr);
  assert.deepEqual(readdirSync(open), []);

  const good = make('cache-good', 0o755);
  const used = run(good, 'version');
  assert.equal(used.stderr, '');
  assert.ok(existsSync(join(good, 'coracle/compile')));
  for (const name of ['coracle', 'coracle/compile']) assert.equal(statSync(join(good, name)).mode & 0o777, 0o700, name);

  const state = make('data-open', 0o777);
  writeFileSync(join(state, 'kubeconfig'), '');
  const up = run(good, 'up', '--data-dir', state);
  assert.equal(up.status, 1);
  assert.match(up.stderr, /^error: .*data-open is not used: .*may be written by other users/);
});
