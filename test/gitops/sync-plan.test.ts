/** The forecast of a commit, compared with what the commit then does; and who owns what of the result. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ROLE_BINDINGS, ROLES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { fieldOwners } from '../../packages/coracle/src/cli/sync/field-owners.ts';
import { effectOnMachine } from '../../packages/coracle/src/cli/sync/machine-effect.ts';
import { CONFIG_SYNC_NAMESPACE } from '../../packages/gitops/src/kinds/kinds.ts';
import type { ForecastItem } from '../../packages/gitops/src/sync/forecast.ts';
import { type Preview, previewSync } from '../../packages/gitops/src/sync/preview.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import { configMapYaml, type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

let at: GitOpsCluster;
let repository: GitRepository;
const directory = mkdtempSync(join(tmpdir(), 'coracle-sync-plan-'));
before(async () => {
  at = await startGitOpsCluster({
    components: 'gitops,namespace-controller,garbage-collector-controller,protection,vm,vmi,scheduler',
    nodes: ['node-1'],
  });
  repository = await createRepository();
});
after(async () => {
  await at.stop();
  repository.remove();
  rmSync(directory, { recursive: true, force: true });
  assert.deepEqual(at.cluster.errors, []);
});

const vmYaml = (name: string, more: { sockets?: number; threads?: number; runStrategy?: string } = {}): string =>
  JSON.stringify({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec: {
      runStrategy: more.runStrategy ?? 'Always',
      template: {
        spec: {
          domain: {
            memory: { guest: '1Gi' },
            cpu: { sockets: more.sockets ?? 1, threads: more.threads ?? 1 },
            devices: {},
          },
        },
      },
    },
  });
/** Of the commit that the source has, or of these files. */
const preview = async (files?: Readonly<Record<string, string | null>>): Promise<Preview> =>
  previewSync({
    ...(files && {
      tree: {
        files: Object.entries(files).flatMap(([path, text]) =>
          text === null ? [] : [{ path, bytes: new TextEncoder().encode(text) }],
        ),
        unread: [],
      },
    }),
    sync: { kind: 'RootSync', namespace: CONFIG_SYNC_NAMESPACE, name: 'root-sync' },
    object: (await at.sync('root-sync'))!,
    client: at.client,
    directory,
    clock: systemClock,
    signal: AbortSignal.timeout(60_000),
  });
const nameOf = ({ ref }: ForecastItem): string => `${ref.kind}/${ref.name}`;
const actions = ({ items }: Preview) => Object.fromEntries(items.map((item) => [nameOf(item), item.action]));
const effects = async ({ items }: Preview) =>
  Object.fromEntries(
    await Promise.all(
      items
        .filter(({ ref }) => ref.kind === 'VirtualMachine')
        .map(async (item) => {
          const [before, after] = [item.live, item.wanted] as unknown as (VirtualMachine | undefined)[];
          const change = { before, after: item.action === 'prune' ? undefined : after };
          const { effect } = await effectOnMachine(change, { client: at.client, signal: AbortSignal.timeout(60_000) });
          return [nameOf(item), effect];
        }),
    ),
  );
const NAMES = ['live', 'restart', 'stopped', 'same', 'gone'];

// S-941: `coracle sync plan` says of each object what the attempt then does, and of each guest whether it gets the
//   change while it runs or with a restart, as its controller then decides; what would be refused or stays is named
//   with the reason, and nothing is written.
test('a plan says of each object what the attempt then does, and of each guest what it gets', async () => {
  const machines = Object.fromEntries(NAMES.map((name) => [`${name}.yaml`, vmYaml(name)]));
  const first = await repository.commit({ 'a.yaml': configMapYaml('a', { k: '1' }) });
  await at.rootSync('root-sync', repository.url);
  await at.synced('root-sync', first);
  const second = await repository.commit({ ...machines, 'b.yaml': configMapYaml('b', { k: '1' }) });
  await at.synced('root-sync', second);
  await Promise.all(
    NAMES.map((name) =>
      eventually(`${name} runs`, async () => {
        const vm = await at.client.get(VIRTUAL_MACHINES, { namespace: 'default', name });
        return vm.status?.printableStatus === 'Running' ? true : undefined;
      }),
    ),
  );

  const files = {
    'a.yaml': configMapYaml('a', { k: '2' }),
    'b.yaml': null,
    'c.yaml': configMapYaml('c', {}),
    'n.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n',
    'd.yaml': configMapYaml('d', {}, { namespace: 'new' }),
    'live.yaml': vmYaml('live', { sockets: 2 }),
    'restart.yaml': vmYaml('restart', { threads: 2 }),
    'stopped.yaml': vmYaml('stopped', { runStrategy: 'Halted' }),
    'gone.yaml': null,
    'made.yaml': vmYaml('made'),
  };
  const planned = await preview({ 'same.yaml': vmYaml('same'), ...files });
  assert.deepEqual(planned.errors, []);
  assert.deepEqual(actions(planned), {
    'Namespace/new': 'create',
    'ConfigMap/a': 'change',
    'ConfigMap/c': 'create',
    'ConfigMap/d': 'create',
    'VirtualMachine/live': 'change',
    'VirtualMachine/made': 'create',
    'VirtualMachine/restart': 'change',
    'VirtualMachine/same': 'none',
    'VirtualMachine/stopped': 'change',
    'VirtualMachine/gone': 'prune',
    'ConfigMap/b': 'prune',
  });
  assert.deepEqual(await effects(planned), {
    'VirtualMachine/live': 'live',
    'VirtualMachine/made': 'start',
    'VirtualMachine/restart': 'restart',
    'VirtualMachine/same': 'none',
    'VirtualMachine/stopped': 'stop',
    'VirtualMachine/gone': 'delete',
  });
  const fields = planned.items.flatMap((item) => (item.fields ?? []).map(({ path }) => `${nameOf(item)} ${path}`));
  assert.deepEqual(fields.sort(), [
    'ConfigMap/a data.k',
    'VirtualMachine/live spec.template.spec.domain.cpu.sockets',
    'VirtualMachine/restart spec.template.spec.domain.cpu.threads',
    'VirtualMachine/stopped spec.runStrategy',
  ]);
  assert.deepEqual((await at.configMap('a'))?.data, { k: '1' }, 'a plan writes nothing');

  const third = await repository.commit(files);
  await at.synced('root-sync', third);
  const restart = await eventually('the controller says so of the one and not of the other', async () => {
    const [one, other] = await Promise.all(
      ['restart', 'live'].map((name) => at.client.get(VIRTUAL_MACHINES, { namespace: 'default', name })),
    );
    const vmi = await at.cluster.vmi('live');
    const isLive = vmi.spec.domain.cpu?.sockets === 2;
    const says = (vm: VirtualMachine) => vm.status?.conditions?.some(({ type }) => type === 'RestartRequired') ?? false;
    return isLive && says(one!) ? !says(other!) : undefined;
  });
  assert.ok(restart);
  const again = await preview();
  assert.equal(again.commit, third);
  assert.deepEqual(new Set(again.items.map(({ action }) => action)), new Set(['none']), 'then nothing is left to do');
});

// S-941
test('what would be refused or stays is in the plan, with the reason', async () => {
  const protect = { metadata: { labels: { 'kubevirt.io/vm-delete-protection': 'true' } } };
  await at.client.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'same' }, { type: 'merge', body: protect });
  const planned = await preview({
    'a.yaml': configMapYaml('a', { k: '2' }),
    'n.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n',
    'bad.yaml': vmYaml('bad', { sockets: -1 }),
    'twice.yaml': configMapYaml('a', { k: 'twice' }),
  });
  assert.equal(actions(planned)['VirtualMachine/same'], 'keep');
  assert.equal(actions(planned)['VirtualMachine/bad'], 'fail');
  assert.deepEqual(planned.errors.map(({ code }) => code).sort(), ['1029', '2009', '2009']);
});

// S-941
test('a tenant plans a RepoSync with the rights of his namespace, and sees what he may not do', async () => {
  const rule = (apiGroups: string[], resources: string[], verbs: string[]) => ({ apiGroups, resources, verbs });
  const group = { apiGroup: 'rbac.authorization.k8s.io' };
  await at.client.create(ROLES, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name: 'tenant', namespace: 'new' },
    rules: [rule(['kpt.dev'], ['resourcegroups'], ['get']), rule([''], ['configmaps'], ['get', 'create', 'patch'])],
  });
  await at.client.create(ROLE_BINDINGS, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'tenant', namespace: 'new' },
    roleRef: { ...group, kind: 'Role', name: 'tenant' },
    subjects: [{ ...group, kind: 'User', name: 'tenant' }],
  });
  const sync = { kind: 'RepoSync', namespace: 'new', name: 'repo-sync' } as const;
  const file = (path: string, text: string) => ({ path, bytes: new TextEncoder().encode(text) });
  const secret = JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } });
  const planned = await previewSync({
    sync,
    object: {
      apiVersion: 'configsync.gke.io/v1beta1',
      kind: 'RepoSync',
      metadata: sync,
      spec: { git: { repo: 'https://localhost/x', branch: 'main', auth: 'none' } },
    },
    tree: {
      files: [file('d.yaml', configMapYaml('d', {})), file('e.yaml', configMapYaml('e', {})), file('s.yaml', secret)],
      unread: [],
    },
    client: at.client.impersonating('tenant'),
    directory,
    clock: systemClock,
    signal: AbortSignal.timeout(60_000),
  });
  assert.deepEqual(actions(planned), { 'ConfigMap/d': 'fail', 'ConfigMap/e': 'create', 'Secret/s': 'fail' });
  // The one is the RootSync's, the other nobody's for whom this user may write.
  assert.deepEqual(planned.errors.map(({ code }) => code).sort(), ['1060', '2013']);
});

// S-942: `coracle sync explain` names the owner of each field; `coracle sync ignore` prints the fields that the server
//   owns for Argo CD and Flux.
test('explain names Git for what is declared, the server for what it fills in, and others by their names', async () => {
  await at.client.patch(
    VIRTUAL_MACHINES,
    { namespace: 'default', name: 'live' },
    { type: 'merge', body: { metadata: { annotations: { note: 'mine' } } } },
    { fieldManager: 'somebody' },
  );
  const vm = await at.client.get(VIRTUAL_MACHINES, { namespace: 'default', name: 'live' });
  const { git, fields } = fieldOwners(vm);
  assert.equal(git?.sync, 'RootSync config-management-system/root-sync');
  assert.equal(git?.file, 'live.yaml');
  const owners = new Map(fields.map(({ path, owners: [first] }) => [path, first]));
  const of = (path: string): string | undefined => owners.get(path);
  assert.deepEqual(
    [
      'spec.runStrategy',
      'spec.template.spec.domain.cpu.sockets',
      'spec.template.spec.domain.firmware.uuid',
      'spec.template.spec.domain.machine.type',
      'metadata.annotations.note',
      'status.printableStatus',
      'metadata.uid',
    ].map(of),
    ['git', 'git', 'server', 'server', 'somebody', 'server', 'nobody'],
  );
});
