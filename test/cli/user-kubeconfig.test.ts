/** What `up` and `down` do to the user's own kubeconfig and home. */
// test:full: every combination of flags or steps, a process each.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { openWorkspace } from './workspace.ts';

const FOREIGN = `# the work cluster
apiVersion: v1
kind: Config
clusters:
  - name: work
    cluster: { server: "https://work.example:6443" }
contexts:
  - name: work
    context: { cluster: work, user: me }
users:
  - name: me
    user: { token: secret }
current-context: work
preferences: {}
`;
const up = (data: string): string[] => ['up', '--data-dir', data, '--port', '0', '--nodes', '0', '--detach'];
// biome-ignore lint/suspicious/noExplicitAny: a foreign document.
const read = (path: string): any => parse(readFileSync(path, 'utf8'));
const names = (list: readonly { name: string }[]): string[] => list.map(({ name }) => name);

// S-091: The user's kubeconfig gains a context atomically, keeps its current one and its comments; `down` leaves it
//   usable.
test('$KUBECONFIG gains a context, keeps its current one, its comments and its link; down takes the context out', async (t) => {
  const at = openWorkspace(t);
  const target = join(at.dir, 'real-config');
  const path = join(at.dir, 'config');
  writeFileSync(target, FOREIGN, { mode: 0o600 });
  symlinkSync(target, path);
  const env = { KUBECONFIG: path };
  const first = await at.run(up(at.data), env);
  assert.deepEqual([first.code, first.stderr], [0, '']);
  const merged = read(path);
  assert.equal(realpathSync(path), target);
  assert.equal(statSync(target).mode & 0o777, 0o600);
  assert.ok(!existsSync(`${path}.lock`));
  assert.match(readFileSync(path, 'utf8'), /^# the work cluster\n/);
  assert.equal(merged['current-context'], 'work');
  assert.deepEqual(names(merged.contexts), ['work', 'coracle']);
  assert.equal(existsSync(join(at.home, '.kube')), false);
  const own = read(at.kubeconfig);
  assert.deepEqual(merged.clusters[1], own.clusters[0]);

  const kubectl = async (...argv: string[]) => at.kubectl(['--kubeconfig', path, ...argv]);
  const spaces = await kubectl('--context', 'coracle', 'get', 'namespaces', '-o', 'name');
  assert.deepEqual([spaces.code, spaces.stderr], [0, '']);
  assert.match(spaces.stdout, /^namespace\/default$/m);

  assert.equal((await at.run(['down', '--data-dir', at.data], env)).code, 0);
  assert.deepEqual(read(path), parse(FOREIGN));
  assert.match(readFileSync(path, 'utf8'), /^# the work cluster\n/);
  assert.equal((await kubectl('config', 'current-context')).stdout, 'work\n');
});

test('an absent ~/.kube/config is made and its current context set; after down kubectl can still read it', async (t) => {
  const at = openWorkspace(t);
  const path = join(at.home, '.kube/config');
  assert.equal((await at.run(up(at.data))).code, 0);
  assert.equal(read(path)['current-context'], 'coracle');
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(join(at.home, '.kube')).mode & 0o777, 0o700);
  assert.equal((await at.kubectl(['--kubeconfig', path, 'get', '--raw', '/readyz'])).stdout, 'ok');
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  const left = read(path);
  assert.deepEqual([left.clusters, left.users, left.contexts, left['current-context']], [[], [], [], '']);
  assert.equal((await at.kubectl(['--kubeconfig', path, 'config', 'get-contexts', '-o', 'name'])).code, 0);
  // kubectl makes the other one
  assert.deepEqual(
    readdirSync(join(at.home, '.kube')).filter((name) => name !== 'cache'),
    ['config'],
  );
});

test('a kubeconfig that is none is reported and left alone; up and down work all the same', async (t) => {
  const at = openWorkspace(t);
  const path = join(at.home, '.kube/config');
  mkdirSync(join(at.home, '.kube'));
  writeFileSync(path, 'a: [');
  const first = await at.run(up(at.data));
  assert.equal(first.code, 0);
  assert.match(first.stderr, /^warning: .*kubeconfig.*was not changed.*\n$/);
  assert.equal(first.stdout.split('\n').length, 2);
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  assert.equal(readFileSync(path, 'utf8'), 'a: [');
});

test('down takes out the context of a control plane that was killed', async (t) => {
  const at = openWorkspace(t);
  const path = join(at.home, '.kube/config');
  assert.equal((await at.run(up(at.data))).code, 0);
  process.kill(read(join(at.data, 'running.json')).process.pid, 'SIGKILL');
  assert.deepEqual(names(read(path).contexts), ['coracle']);
  assert.match((await at.run(['down', '--data-dir', at.data])).stdout, /^nothing runs/);
  assert.deepEqual(read(path).contexts, []);
});

test("the admin's own file as $KUBECONFIG stays whole", async (t) => {
  const at = openWorkspace(t);
  const env = { KUBECONFIG: at.kubeconfig };
  for (const _ of [1, 2]) {
    assert.equal((await at.run(up(at.data), env)).code, 0);
    assert.equal((await at.run(['down', '--data-dir', at.data], env)).code, 0);
    assert.deepEqual(names(read(at.kubeconfig).contexts), ['coracle']);
  }
  assert.equal((await at.run(['down', '--data-dir', at.data], env)).code, 0);
  assert.equal(read(at.kubeconfig)['current-context'], 'coracle');
});

// S-091
test('two control planes in one kubeconfig: the second takes the name, and the end of the first leaves it usable', async (t) => {
  const at = openWorkspace(t);
  const other = join(at.dir, 'other');
  const path = join(at.home, '.kube/config');
  assert.equal((await at.run(up(at.data))).code, 0);
  const first = read(path).clusters[0].cluster.server;
  const { code, stderr } = await at.run(up(other));
  assert.equal(code, 0, stderr);
  assert.ok(stderr.includes(`warning: context coracle of ${path} led to ${first}, which still runs: `), stderr);
  const second = read(join(other, 'kubeconfig')).clusters[0].cluster.server;
  assert.equal(read(path).clusters[0].cluster.server, second);
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  assert.equal(read(path).clusters[0]?.cluster.server, second, 'the end of the first took the context of the second');
  assert.equal((await at.kubectl(['--kubeconfig', path, 'get', '--raw', '/readyz'])).stdout, 'ok');
  assert.equal((await at.run(['down', '--data-dir', other])).code, 0);
  assert.deepEqual(read(path).contexts, []);
});

// S-1687: `down` of a control plane whose context replaced that of another one puts it back while the other one runs.
test('two control planes in one kubeconfig: the end of the second gives the name back to the first', async (t) => {
  const at = openWorkspace(t);
  const other = join(at.dir, 'other');
  const path = join(at.home, '.kube/config');
  assert.equal((await at.run(up(at.data))).code, 0);
  const first = read(path);
  assert.equal((await at.run(up(other))).code, 0);
  assert.notDeepEqual(read(path), first);
  assert.equal((await at.run(['down', '--data-dir', other])).code, 0);
  assert.deepEqual(read(path), first);
  assert.equal((await at.kubectl(['--kubeconfig', path, 'get', '--raw', '/readyz'])).stdout, 'ok');
  assert.equal((await at.run(['down', '--data-dir', at.data])).code, 0);
  assert.deepEqual(read(path).contexts, []);
});

// S-092: The default data directory follows XDG.
test('the default data directory follows XDG', async (t) => {
  const at = openWorkspace(t);
  const xdg = join(at.dir, 'xdg');
  const cases: [Record<string, string>, string][] = [
    [{ XDG_DATA_HOME: xdg }, join(xdg, 'coracle')],
    [{}, join(at.home, '.local/share/coracle')],
    [{ XDG_DATA_HOME: 'relative' }, join(at.home, '.local/share/coracle')],
  ];
  for (const [env, wanted] of cases) {
    const status = await at.run(['status', '--json'], env);
    assert.equal(JSON.parse(status.stdout).dataDir, wanted);
  }
  const [env, wanted] = cases[0]!;
  const first = await at.run(['up', '--port', '0', '--nodes', '0', '--detach', '--no-merge-kubeconfig'], env);
  assert.equal(first.code, 0, first.stderr);
  assert.equal((await at.run(['kubeconfig'], env)).stdout, `${join(wanted, 'kubeconfig')}\n`);
  assert.deepEqual(readdirSync(at.home), []);
  // Without $KUBECONFIG a command finds the control plane of the default directory.
  assert.equal((await at.run(['down'], env)).stdout, 'stopped\n');
});

// S-301
test('$KUBECONFIG may be a path from where the command is called, and a link to a file that is not there yet', async (t) => {
  const at = openWorkspace(t);
  const relativePath = relative(process.cwd(), join(at.home, 'config'));
  symlinkSync('target', join(at.home, 'config'));
  for (const _ of [1, 2]) {
    assert.equal((await at.run(up(at.data), { KUBECONFIG: relativePath })).code, 0);
    assert.deepEqual(names(read(join(at.home, 'target')).contexts), ['coracle']);
    assert.equal(readlinkSync(join(at.home, 'config')), 'target');
    assert.equal((await at.run(['down', '--data-dir', at.data], { KUBECONFIG: relativePath })).code, 0);
    assert.deepEqual(read(join(at.home, 'target')).contexts, []);
  }
});
