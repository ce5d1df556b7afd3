/**
 * Deletion by hand of what declared objects depend on: allowed, warned about or refused, as a sync or the object asks for it;
 * what a source, a namespace or an owner takes away is held up by nothing. On a server that decides in process.
 */
// test:full: every case of it, for a minute or more.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EVENTS, NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { createRepository, type GitRepository } from '../testkit/git-repository.ts';
import {
  codesOf,
  configMapYaml,
  createNamespace,
  type GitOpsCluster,
  startGitOpsCluster,
} from '../testkit/gitops-cluster.ts';

const MODE = 'coracle.dev/delete-with-dependents';
const DEPENDENTS = 'coracle.dev/dependents';
const POLICY = 'configsync.gke.io/deletion-propagation-policy';

let at: GitOpsCluster;
const repositories: GitRepository[] = [];
before(async () => {
  at = await startGitOpsCluster();
});
after(async () => {
  await at.stop();
  for (const { remove } of repositories) remove();
  assert.deepEqual(at.cluster.errors, []);
});

/** `a` is needed by `b`, in a namespace that the source does not declare. */
async function start(name: string, mode?: string, more: Record<string, string> = {}): Promise<GitRepository> {
  const repository = await createRepository();
  repositories.push(repository);
  await createNamespace(at.client, name);
  const commit = await repository.commit({
    'a.yaml': configMapYaml('a', { k: '1' }, { namespace: name, annotations: more }),
    'b.yaml': configMapYaml(
      'b',
      {},
      {
        namespace: name,
        annotations: { 'config.kubernetes.io/depends-on': `/namespaces/${name}/ConfigMap/a` },
      },
    ),
  });
  await at.rootSync(name, repository.url, {
    annotations: { [POLICY]: 'Foreground', ...(mode !== undefined && { [MODE]: mode }) },
  });
  await at.synced(name, commit);
  return repository;
}
const dependentsAt = async (namespace: string): Promise<string | undefined> =>
  (await at.configMap('a', namespace))?.metadata.annotations?.[DEPENDENTS];
const remove = (namespace: string, name: string, query = '') =>
  at.cluster.board.send('DELETE', `/api/v1/namespaces/${namespace}/configmaps/${name}${query}`);
const annotate = (namespace: string, name: string, value: string | null) =>
  at.cluster.board.send(
    'PATCH',
    `/api/v1/namespaces/${namespace}/configmaps/${name}`,
    { metadata: { annotations: { [MODE]: value } } },
    'application/merge-patch+json',
  );
const uidOf = async (namespace: string): Promise<string | undefined> =>
  (await at.configMap('a', namespace))?.metadata.uid;
const isMadeAnew = async (namespace: string, uid: string | undefined): Promise<void> => {
  await eventually('made anew', async () => {
    const now = await uidOf(namespace);
    return now !== undefined && now !== uid ? true : undefined;
  });
};

test('nothing is asked for: objects say nothing, deletions are allowed and put right', async () => {
  await start('plain');
  assert.equal(await dependentsAt('plain'), undefined);
  const uid = await uidOf('plain');
  const { status, warnings } = await remove('plain', 'a');
  assert.deepEqual([status, warnings], [200, '']);
  await isMadeAnew('plain', uid);
});

// S-970: The deletion by hand of what other objects of a source depend on is allowed, warned about or refused, as the
//   sync or the object says, in process and by the webhook; what is pruned, or goes with its sync, its namespace or its
//   owner, is never held up.
test('warn: the answer warns, the sync has an event, and the object is made anew', async () => {
  await start('warned', 'warn');
  assert.deepEqual(JSON.parse((await dependentsAt('warned')) ?? ''), {
    onDelete: 'warn',
    objects: ['ConfigMap, warned/b'],
  });
  const uid = await uidOf('warned');
  const { status, warnings } = await remove('warned', 'a');
  assert.equal(status, 200);
  assert.match(
    warnings,
    /ConfigMap, warned\/a is declared by RootSync warned, and objects .* depend on it: ConfigMap, warned\/b/,
  );
  await isMadeAnew('warned', uid);
  const event = await eventually('an event', async () =>
    (await at.client.list(EVENTS, { namespace: CONFIG_SYNC_NAMESPACE })).items.find(
      ({ reason }) => reason === 'DeletedWithDependents',
    ),
  );
  assert.match(event.message ?? '', /^ConfigMap, warned\/a was deleted while .*: ConfigMap, warned\/b$/);
});

// S-970
test('refuse: by name and in a collection, not in a dry run; what nobody depends on goes; the object lets one through', async () => {
  await start('refused', 'refuse');
  const { status, json } = await remove('refused', 'a');
  assert.deepEqual([status, json.reason], [403, 'Forbidden']);
  assert.match(
    json.message,
    /denied the request: ConfigMap, refused\/a is declared by RootSync refused, .*: ConfigMap, refused\/b\. Take it out of the source, or annotate it with coracle.dev\/delete-with-dependents=allow/,
  );
  assert.equal((await at.cluster.board.send('DELETE', '/api/v1/namespaces/refused/configmaps')).status, 403);
  assert.equal((await remove('refused', 'a', '?dryRun=All')).status, 200);
  assert.equal((await remove('refused', 'b')).status, 200);
  await eventually('b is made anew', () => at.configMap('b', 'refused'));
  const uid = await uidOf('refused');
  await annotate('refused', 'a', 'allow');
  assert.equal((await remove('refused', 'a')).status, 200);
  await isMadeAnew('refused', uid);
  assert.equal((await remove('refused', 'a')).status, 403, 'made anew it does not say allow');
});

// S-970
test('who depends on it is put back, follows commits and the annotation of the sync', async () => {
  const repository = await start('follows', 'refuse');
  const written = await dependentsAt('follows');
  await at.cluster.board.send(
    'PATCH',
    '/api/v1/namespaces/follows/configmaps/a',
    { metadata: { annotations: { [DEPENDENTS]: null } } },
    'application/merge-patch+json',
  );
  await eventually('it is put back', async () => ((await dependentsAt('follows')) === written ? true : undefined));
  const key = { namespace: CONFIG_SYNC_NAMESPACE, name: 'follows' };
  const say = (mode: string | null) =>
    at.client.patch(ROOT_SYNCS, key, { type: 'merge', body: { metadata: { annotations: { [MODE]: mode } } } });
  await say(null);
  await eventually('it says nothing', async () => ((await dependentsAt('follows')) === undefined ? true : undefined));
  await say('often');
  const stalled = await at.until('follows', 'stalled', ({ status }) =>
    Boolean(status?.conditions?.some(({ type, status: value }) => type === 'Stalled' && value === 'True')),
  );
  assert.match(
    stalled.status?.conditions?.find(({ type }) => type === 'Stalled')?.message ?? '',
    /annotation coracle.dev\/delete-with-dependents is "often"; it is allow, warn or refuse/,
  );
  await say('refuse');
  await eventually('it says so again', async () => ((await dependentsAt('follows')) === written ? true : undefined));
  const commit = await repository.commit({ 'b.yaml': null });
  await at.synced('follows', commit);
  assert.equal(await dependentsAt('follows'), undefined);
  assert.equal((await remove('follows', 'a')).status, 200);
});

test('one object asks for it, or declares what it may not', async () => {
  const repository = await start('single', undefined, { [MODE]: 'refuse' });
  assert.equal((await remove('single', 'a')).status, 403);
  await repository.commit({
    'c.yaml': configMapYaml('c', {}, { namespace: 'single', annotations: { [MODE]: 'perhaps' } }),
    'd.yaml': configMapYaml('d', {}, { namespace: 'single', annotations: { [DEPENDENTS]: '{}' } }),
  });
  assert.deepEqual(codesOf(await at.failing('single', ['1010', '1054'])), ['1010', '1054']);
});

test('an object that ignores mutations says it too, and no longer when that is over', async () => {
  await start('ignores', 'refuse', { 'client.lifecycle.config.k8s.io/mutation': 'ignore' });
  assert.equal((await remove('ignores', 'a')).status, 403);
  await at.client.patch(
    ROOT_SYNCS,
    { namespace: CONFIG_SYNC_NAMESPACE, name: 'ignores' },
    { type: 'merge', body: { metadata: { annotations: { [MODE]: 'allow' } } } },
  );
  await eventually('it says nothing', async () => ((await dependentsAt('ignores')) === undefined ? true : undefined));
});

// S-970
test('nothing else is held up: pruned, deleted with the sync, let go, with the namespace', async () => {
  const names = ['pruned', 'ended', 'let-go', 'emptied'] as const;
  const [repository] = await Promise.all(names.map((name) => start(name, 'refuse')));
  const key = (name: string) => ({ namespace: CONFIG_SYNC_NAMESPACE, name });
  const commit = await repository!.commit({
    'a.yaml': null,
    'b.yaml': null,
    'c.yaml': configMapYaml('c', {}, { namespace: 'pruned' }),
  });
  await at.client.delete(ROOT_SYNCS, key('ended'));
  await at.client.patch(ROOT_SYNCS, key('let-go'), {
    type: 'merge',
    body: { metadata: { annotations: { [POLICY]: 'Orphan' } } },
  });
  await at.client.delete(ROOT_SYNCS, key('let-go'));
  await at.client.delete(NAMESPACES, { namespace: '', name: 'emptied' });
  await at.synced('pruned', commit);
  assert.equal(await at.configMap('a', 'pruned'), undefined);
  await at.gone(ROOT_SYNCS, 'ended', CONFIG_SYNC_NAMESPACE);
  assert.equal(await at.configMap('a', 'ended'), undefined);
  await at.gone(ROOT_SYNCS, 'let-go', CONFIG_SYNC_NAMESPACE);
  assert.equal(await dependentsAt('let-go'), undefined);
  assert.equal((await remove('let-go', 'a')).status, 200);
  await at.gone(NAMESPACES, 'emptied');
});
