/** Several sources declare one object: scenarios of upstream's multi_sync_test.go. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CONFIG_SYNC_NAMESPACE, REPO_SYNCS, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { GUARD_CONFIGURATIONS } from '../../packages/gitops/src/sync/guard-configuration.ts';
import { eventually } from '../testkit/eventually.ts';
import {
  condition,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  type SyncName,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';
import { createSources, mayEdit, type Source } from '../testkit/gitops-sources.ts';

const GUARD = 'admission-webhook.configsync.gke.io';
const sources = createSources();
let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  await sources.removeAll();
  assert.deepEqual(at.cluster.errors, []);
});

type Kind = 'Root' | 'Namespace';
interface Party {
  readonly at: SyncName;
  readonly manager: string;
  readonly source: Source;
  /** Declares the object, or nothing but what is the party's own. */
  declare(isDeclared: boolean): Promise<string>;
}
/** A sync that declares the object of `namespace` with its own name in it. */
async function party(kind: Kind, namespace: string, name: string): Promise<Party> {
  const own = (object: string) => configMapYaml(object, { of: name }, { namespace });
  const source = await sources[kind === 'Root' ? 'of' : 'served']({
    'contested.yaml': own('contested'),
    'own.yaml': own(`of-${name}`),
  });
  const declare = (isDeclared: boolean) =>
    source.repository.commit({ 'contested.yaml': isDeclared ? own('contested') : null });
  if (kind === 'Root') {
    await at.rootSync(name, source.url);
    return { at: name, manager: `:root_${name}`, source, declare };
  }
  await mayEdit(at.client, namespace, `ns-reconciler-${namespace}-${name}-${name.length}`);
  await at.repoSync(namespace, name, source.url);
  return { at: [namespace, name], manager: `${namespace}_${name}`, source, declare };
}
const remove = ({ at: of }: Party): Promise<unknown> =>
  typeof of === 'string'
    ? at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: of })
    : at.client.delete(REPO_SYNCS, { namespace: of[0], name: of[1] });
const hasObject = async ({ manager }: Party, namespace: string): Promise<void> => {
  await eventually(`${manager} has the object`, async () => {
    const found = await at.configMap('contested', namespace);
    return found?.metadata.annotations?.['configsync.gke.io/manager'] === manager ? true : undefined;
  });
};
const conflicts = async (one: Party, other: Party): Promise<void> => {
  const failing = await at.failing(one.at, ['1060']);
  const message = failing.status?.sync?.errors?.[0]?.errorMessage ?? '';
  for (const { manager } of [one, other]) assert.ok(message.includes(`"${manager}"`), message);
};

/** Of two that declare one object: which one has it, the other reports KNV1060. */
const ROWS: readonly [name: string, first: Kind, second: Kind, has: 'first' | 'second'][] = [
  ['RootToNamespace', 'Root', 'Namespace', 'first'],
  ['NamespaceToRoot', 'Namespace', 'Root', 'second'],
  ['RootToRoot', 'Root', 'Root', 'first'],
  ['NamespaceToNamespace', 'Namespace', 'Namespace', 'first'],
];
// S-973: Of two sources that declare one object one has it, the other says KNV1060 with both names and has it as soon
//   as the first lets go, also while declared fields are guarded.
for (const [index, [name, firstKind, secondKind, has]] of ROWS.entries())
  test(`TestConflictingDefinitions_${name}: the ${has} has it, the other reports it and has it once that lets go`, async (t) => {
    const namespace = `multi-${index}`;
    await createNamespace(at.client, namespace);
    const label = `row-${index}`;
    const first = await party(firstKind, namespace, `${label}-first`);
    await at.synced(first.at, first.source.commit);
    const second = await party(secondKind, namespace, `${label}-second`);
    // A sync asks its source ten times a second.
    t.after(async () => {
      for (const one of [first, second]) await remove(one);
    });
    const [winner, loser] = has === 'first' ? [first, second] : [second, first];
    await conflicts(loser, winner);
    await at.synced(winner.at, winner.source.commit);
    await hasObject(winner, namespace);
    await eventually('the loser’s inventory is without it', async () => {
      const names = (await at.inventory(loser.at))?.map((ref) => ref.name) ?? [];
      return names.length > 0 && !names.includes('contested') ? true : undefined;
    });
    assert.ok(await at.configMap(`of-${winner === first ? `${label}-second` : `${label}-first`}`, namespace));

    // Taken out by the one that never had it, nothing becomes of it; declared again, it is reported again.
    await at.synced(loser.at, await loser.declare(false));
    await hasObject(winner, namespace);
    await loser.declare(true);
    await conflicts(loser, winner);

    // The one that has it lets it go: it is the other's.
    const without = await winner.declare(false);
    await at.synced(winner.at, without);
    await hasObject(loser, namespace);
    await at.synced(loser.at, await loser.source.repository.git('rev-parse', 'main'));
    assert.deepEqual((await at.configMap('contested', namespace))?.data, {
      of: winner === first ? `${label}-second` : `${label}-first`,
    });
  });

// S-973
test('TestConflictingDefinitions, guarded: the rules are the same while the admission webhook is on', async (t) => {
  await at.client.create(GUARD_CONFIGURATIONS, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: GUARD },
  });
  t.after(() => at.client.delete(GUARD_CONFIGURATIONS, { namespace: '', name: GUARD }));
  await createNamespace(at.client, 'guarded');
  const tenant = await party('Namespace', 'guarded', 'tenant');
  await at.synced(tenant.at, tenant.source.commit);
  const root = await party('Root', 'guarded', 'guarding');
  await at.synced(root.at, root.source.commit);
  await conflicts(tenant, root);
  const late = await party('Root', 'guarded', 'late');
  await conflicts(late, root);
  await hasObject(root, 'guarded');
});

// S-973
test('TestControllerValidationErrors: what no sync may be called, and where it may not be', async () => {
  const { url } = await sources.served({ 'a.yaml': configMapYaml('never', {}) });
  const long = 'x'.repeat(60);
  const rows: readonly [of: SyncName, make: () => Promise<unknown>, text: RegExp][] = [
    [
      ['default', 'placed'],
      () =>
        at.client.create(ROOT_SYNCS, {
          apiVersion: 'configsync.gke.io/v1beta1',
          kind: 'RootSync',
          metadata: { namespace: 'default', name: 'placed' },
          spec: { sourceFormat: 'unstructured', git: { repo: url, auth: 'none' } },
        }),
      /a RootSync lives in namespace config-management-system/,
    ],
    [
      [CONFIG_SYNC_NAMESPACE, 'placed'],
      () => at.repoSync(CONFIG_SYNC_NAMESPACE, 'placed', url),
      /a RepoSync does not live in namespace config-management-system/,
    ],
    [['default', long], () => at.repoSync('default', long, url), /its name is too long/],
  ];
  for (const [of, make, text] of rows) {
    await make();
    const isRoot = of[0] === 'default' && of[1] === 'placed';
    const stalled = await eventually(`${String(of)} is stalled`, async () => {
      const [namespace, name] = of as readonly [string, string];
      const sync = await at.find(isRoot ? ROOT_SYNCS : REPO_SYNCS, name, namespace);
      return condition(sync, 'Stalled')?.status === 'True' ? sync : undefined;
    });
    assert.equal(condition(stalled, 'Stalled')?.reason, 'Validation');
    assert.match(condition(stalled, 'Stalled')?.message ?? '', text);
  }
  assert.equal(await at.configMap('never'), undefined);
});
