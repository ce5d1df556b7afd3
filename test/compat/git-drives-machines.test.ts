/**
 * The story of a team that declares its machines in Git, from the first push to the last deletion, by `git push`, kubectl and
 * `coracle nomos status` alone: guests boot, change, drift and heal, are pruned, and go with their sync.
 */
// test:full: a fleet, for minutes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { isInstalled, KUBECTL_PROGRAM } from '../../tools/setup/host-packages.ts';
import { openWorkspace, type Workspace } from '../cli/workspace.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository, serveRepository } from '../testkit/git-repository.ts';
import { importTinyGuest, whyNoGuests } from '../testkit/tiny-guest.ts';

const why =
  whyNoGuests() ?? (Object.keys(KUBECTL_PROGRAM).every(isInstalled) ? undefined : 'kubectl is not on this host');
const exec = promisify(execFile);
const POLICY = 'configsync.gke.io/deletion-propagation-policy';
/** Of one state, with guests that boot by emulation on a busy host. */
const WAIT_MS = 240_000;

type Files = Readonly<Record<string, object | string | null>>;
/** A clone of somebody who pushes. */
interface Clone {
  /** Writes the files, commits and pushes; gives the commit. */
  push(files: Files): Promise<string>;
}
async function clone(at: Workspace, hub: GitRepository, name: string): Promise<Clone> {
  const dir = join(at.dir, name);
  const git = async (...argv: string[]): Promise<string> =>
    (
      await exec('git', ['-C', dir, '-c', 'user.name=team', '-c', 'user.email=team@example.org', ...argv])
    ).stdout.trim();
  // What is pushed to has no working tree that somebody looks at.
  await hub.git('config', 'receive.denyCurrentBranch', 'ignore');
  mkdirSync(dir);
  await git('init', '--quiet', '--initial-branch=main');
  await git('remote', 'add', 'origin', hub.path);
  return {
    async push(files) {
      for (const [file, content] of Object.entries(files)) {
        const path = join(dir, file);
        if (content === null) rmSync(path);
        else writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
      }
      await git('add', '--all');
      await git('commit', '--quiet', '--message=change');
      await git('push', '--quiet', 'origin', 'main');
      return git('rev-parse', 'HEAD');
    },
  };
}

const machine = (name: string, labels: object = { tier: 'one' }) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, namespace: 'shop', labels },
  spec: {
    runStrategy: 'Always',
    instancetype: { kind: 'VirtualMachineInstancetype', name: 'small' },
    template: {
      spec: {
        terminationGracePeriodSeconds: 5,
        domain: {
          devices: {
            disks: [
              { name: 'root', disk: { bus: 'virtio' } },
              { name: 'seed', disk: { bus: 'virtio' } },
            ],
            interfaces: [{ name: 'default', masquerade: {} }],
          },
        },
        networks: [{ name: 'default', pod: {} }],
        volumes: [
          { name: 'root', containerDisk: { image: 'localhost/coracle/tiny' } },
          { name: 'seed', cloudInitNoCloud: { secretRef: { name: 'seed' } } },
        ],
      },
    },
  },
});
const platform = (teamUrl: string): Files => ({
  'namespace.yaml': { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
  'small.yaml': {
    apiVersion: 'instancetype.kubevirt.io/v1beta1',
    kind: 'VirtualMachineInstancetype',
    metadata: { name: 'small', namespace: 'shop' },
    spec: { cpu: { guest: 1 }, memory: { guest: '128Mi' } },
  },
  'seed.yaml': {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'seed', namespace: 'shop' },
    stringData: { userdata: '#cloud-config\nhostname: shop\n' },
  },
  'web.yaml': machine('web'),
  'rights.yaml': {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'team', namespace: 'shop' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'ServiceAccount', name: 'ns-reconciler-shop', namespace: 'config-management-system' }],
  },
  'team.yaml': {
    apiVersion: 'configsync.gke.io/v1beta1',
    kind: 'RepoSync',
    metadata: {
      name: 'repo-sync',
      namespace: 'shop',
      annotations: {
        [POLICY]: 'Foreground',
        'config.kubernetes.io/depends-on': 'rbac.authorization.k8s.io/namespaces/shop/RoleBinding/team',
      },
    },
    spec: { git: { repo: teamUrl, branch: 'main', period: '1s', auth: 'none' } },
  },
});

// S-981: Namespaces, instance types, Secrets, machines and a RepoSync that are pushed boot, follow commits, come back from
//   drift, are pruned and go with their sync, and `coracle nomos status` says so at each point.
test('machines that Git declares: pushed, booted, changed, drifted and healed, wrong and put right, pruned, deleted', {
  timeout: 1_200_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  const [hub, teamHub] = await Promise.all([createRepository(), createRepository()]);
  const server = await serveRepository(teamHub);
  t.after(async () => {
    await server.stop();
    for (const { remove } of [hub, teamHub]) remove();
  });
  const [platformClone, team] = await Promise.all([clone(at, hub, 'platform'), clone(at, teamHub, 'team')]);
  await importTinyGuest(at.data);
  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);

  const kubectl = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await at.kubectl(argv);
    assert.equal(code, 0, `kubectl ${argv.join(' ')}: ${stderr}`);
    return stdout;
  };
  const field = (kind: string, name: string, path: string): Promise<string> =>
    kubectl('get', kind, name, '-n', 'shop', '--ignore-not-found', '-o', `jsonpath={${path}}`);
  const status = async (): Promise<string> => {
    const { stdout, stderr } = await at.run(['nomos', 'status', '--resources=false', '--kubeconfig', at.kubeconfig]);
    return stdout + stderr;
  };
  /** Waits until `nomos status` shows all of these lines. */
  const statusSays = async (what: string, ...lines: readonly RegExp[]): Promise<string> => {
    let last = '';
    return eventually(
      what,
      async () => {
        last = await status();
        return lines.every((line) => line.test(last)) ? last : undefined;
      },
      WAIT_MS,
    ).catch((error: Error) => {
      throw new Error(`${error.message}: ${last}`);
    });
  };
  const syncedAt = (commit: string): RegExp => new RegExp(String.raw`^ {2}SYNCED @ .*\b${commit}$`, 'm');
  const isRunning = (name: string): Promise<string> =>
    eventually(
      `${name} runs`,
      async () => {
        const [phase, ready] = [await field('vmi', name, '.status.phase'), await field('vm', name, '.status.ready')];
        return phase === 'Running' && ready === 'true' ? field('vmi', name, '.metadata.uid') : undefined;
      },
      WAIT_MS,
    );
  const guests = async (): Promise<number> =>
    (await findProcesses((argv) => /qemu-system/.test(argv[0] ?? '') && argv.some((word) => word.includes(at.dir))))
      .length;

  // Nothing is there yet.
  assert.match(await status(), /^ {2}UNKNOWN$/m);

  // Pushed, and named to the cluster.
  const teamCommit = await team.push({ 'db.yaml': machine('db') });
  const commit = await platformClone.push(platform(server.url));
  const applied = await at.kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({
      apiVersion: 'configsync.gke.io/v1beta1',
      kind: 'RootSync',
      metadata: { name: 'root-sync', namespace: 'config-management-system', annotations: { [POLICY]: 'Foreground' } },
      spec: { sourceFormat: 'unstructured', git: { repo: hub.url, branch: 'main', period: '1s', auth: 'none' } },
    }),
  );
  assert.equal(applied.code, 0, applied.stderr);
  const first = await statusSays('both syncs are synced', syncedAt(commit), syncedAt(teamCommit));
  assert.match(first, /^ {2}<root>:root-sync {4}file:.*@main$/m);
  assert.match(first, /^ {2}shop:repo-sync {4}http:.*@main$/m);
  const [web, db] = await Promise.all([isRunning('web'), isRunning('db')]);
  assert.equal(await guests(), 2);
  assert.equal(await field('vmi', 'web', '.spec.domain.memory.guest'), '128Mi');

  // Changed: the guests go on.
  const changed = await platformClone.push({ 'web.yaml': machine('web', { tier: 'two' }) });
  await statusSays('the change is synced', syncedAt(changed), syncedAt(teamCommit));
  assert.equal(await field('vm', 'web', '.metadata.labels.tier'), 'two');
  assert.deepEqual([await isRunning('web'), await isRunning('db')], [web, db]);

  // Drifted by hand: a field is put back, a machine that is deleted is made anew and boots.
  await kubectl('label', 'vm', 'web', '-n', 'shop', 'tier=three', '--overwrite');
  await eventually('the label is back', async () =>
    (await field('vm', 'web', '.metadata.labels.tier')) === 'two' ? true : undefined,
  );
  const machineUid = await field('vm', 'db', '.metadata.uid');
  await kubectl('delete', 'vm', 'db', '-n', 'shop');
  await eventually(
    'another db is there',
    async () => {
      const uid = await field('vm', 'db', '.metadata.uid');
      return uid !== '' && uid !== machineUid ? true : undefined;
    },
    WAIT_MS,
  );
  assert.notEqual(await isRunning('db'), db);
  await statusSays('it is synced through it', syncedAt(changed), syncedAt(teamCommit));

  // Wrong: it is said what is wrong, and nothing of what runs is touched.
  const wrong = { ...machine('cache'), spec: { ...machine('cache').spec, runStrategy: 'Sometimes' } };
  await team.push({
    'cache.yaml': wrong,
    'note.yaml': { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'note' } },
  });
  const failing = await statusSays('the mistake is said', /^ {2}ERROR {4}/m, /TotalErrorCount: 1/);
  assert.match(
    failing,
    /KNV2009: failed to apply VirtualMachine\.kubevirt\.io, shop\/cache: .*Invalid RunStrategy \(Sometimes\)/,
  );
  assert.match(failing, syncedAt(changed));
  assert.equal(await field('configmap', 'note', '.metadata.name'), 'note', 'one mistake held up another object');
  assert.equal(await isRunning('web'), web);
  const right = await team.push({ 'cache.yaml': null });
  await statusSays('it is put right', syncedAt(right), syncedAt(changed));

  // Pruned: its guest ends.
  const pruned = await team.push({ 'db.yaml': null });
  await statusSays('the machine is pruned', syncedAt(pruned), syncedAt(changed));
  await eventually(
    'db is gone',
    async () => ((await field('vm', 'db', '.metadata.uid')) === '' ? true : undefined),
    WAIT_MS,
  );
  await eventually('its guest has ended', async () => ((await guests()) === 1 ? true : undefined), WAIT_MS);
  assert.equal(await isRunning('web'), web);

  // Deleted: everything goes, in order.
  await kubectl('delete', 'rootsync', 'root-sync', '-n', 'config-management-system', `--timeout=${WAIT_MS / 1000}s`);
  await statusSays('nothing is left to say', /^ {2}UNKNOWN$/m);
  assert.equal(await kubectl('get', 'namespace', 'shop', '--ignore-not-found', '-o', 'name'), '');
  await eventually('no guest is left', async () => ((await guests()) === 0 ? true : undefined), WAIT_MS);
});
