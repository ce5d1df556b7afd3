/**
 * The component dies before and after the write of each object of an attempt and of an end, one kill each, and begins anew:
 * nothing is orphaned, nothing that Git has is gone, nobody else's object is touched, and every end is reached.
 */
// test:full: a kill at each step.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import { CONFIG_MAPS, ROLES, SECRETS, SERVICE_ACCOUNTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { CONFIG_SYNC_NAMESPACE, ROOT_SYNCS } from '../../packages/gitops/src/kinds/kinds.ts';
import { aborted } from '../../packages/runtime/src/signal/abortable.ts';
import { createDeferred, type Deferred } from '../../packages/runtime/src/signal/deferred.ts';
import { createRepository } from '../testkit/git-repository.ts';
import { type GitOpsCluster, startGitOpsCluster } from '../testkit/gitops-cluster.ts';

const DEPENDS_ON = 'config.kubernetes.io/depends-on';
const POLICY = 'configsync.gke.io/deletion-propagation-policy';
const MANAGER = 'configsync.gke.io/manager';

interface Death {
  /** Number of the write to an object, from 1. */
  readonly at: number;
  /** The server has done it, and the process has not heard of it. */
  readonly isDone: boolean;
  readonly died: Deferred<void>;
}
let death: Death | undefined;
let writes = 0;
let isDead = false;

/** A client whose process dies at a write: from then on nothing is answered any more. */
function mortal(client: Client, writesObjects = false): Client {
  const call = async <T>(signal: AbortSignal | undefined, isWrite: boolean, act: () => Promise<T>): Promise<T> => {
    const hang = async (): Promise<never> => {
      if (signal) await aborted(signal);
      throw new Error('died');
    };
    if (isDead) return hang();
    if (!isWrite || !death || ++writes !== death.at) return act();
    if (death.isDone) await act();
    isDead = true;
    death.died.resolve();
    return hang();
  };
  return {
    ...client,
    impersonating: (user) => mortal(client.impersonating(user), true),
    get: (type, key, options) => call(options?.signal, false, () => client.get(type, key, options)),
    create: (type, object, options) => call(options?.signal, false, () => client.create(type, object, options)),
    update: (type, object, options) => call(options?.signal, false, () => client.update(type, object, options)),
    patch: (type, key, body, options) =>
      call(options?.signal, writesObjects && !options?.dryRun, () => client.patch(type, key, body, options)),
    delete: (type, key, options) => call(options?.signal, writesObjects, () => client.delete(type, key, options)),
  };
}

let at: GitOpsCluster;
before(async () => {
  at = await startGitOpsCluster({ wrapClient: (client) => mortal(client) });
});
after(() => at.stop());

const TYPES = [CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, ROLES] as unknown as ResourceType<KubeObject>[];
const [maps, secrets, accounts, roles] = TYPES as [
  ResourceType<KubeObject>,
  ResourceType<KubeObject>,
  ResourceType<KubeObject>,
  ResourceType<KubeObject>,
];
interface Member {
  readonly name: string;
  readonly type: ResourceType<KubeObject>;
  readonly needs?: string;
}
/** Six, of four kinds, three of them in a row by depends-on. */
const membersOf = (prefix: string): readonly Member[] => [
  { name: `${prefix}-a`, type: maps },
  { name: `${prefix}-b`, type: maps, needs: `${prefix}-a` },
  { name: `${prefix}-c`, type: maps, needs: `${prefix}-b` },
  { name: `${prefix}-d`, type: secrets },
  { name: `${prefix}-e`, type: accounts },
  { name: `${prefix}-f`, type: roles },
];
const yamlOf = ({ name, type, needs }: Member): string =>
  JSON.stringify({
    apiVersion: type.group === '' ? type.version : `${type.group}/${type.version}`,
    kind: type.kind,
    metadata: {
      name,
      namespace: 'default',
      ...(needs !== undefined && { annotations: { [DEPENDS_ON]: `/namespaces/default/ConfigMap/${needs}` } }),
    },
    ...(type === roles && { rules: [] }),
  });
const filesOf = (members: readonly Member[], isThere: boolean): Record<string, string | null> =>
  Object.fromEntries(members.map((one) => [`${one.name}.yaml`, isThere ? yamlOf(one) : null]));
const live = ({ type, name }: Member) => at.find(type, name, 'default');

/** What carries the metadata of a sync is in its inventory. */
async function nothingIsOrphaned(sync: string): Promise<void> {
  const named = new Set((await at.inventory(sync))?.map(({ kind, name }) => `${kind}/${name}`));
  for (const type of TYPES)
    for (const { metadata } of (await at.client.list(type, { namespace: 'default' })).items)
      if (metadata.annotations?.[MANAGER] === `:root_${sync}`)
        assert.ok(named.has(`${type.kind}/${metadata.name}`), `${type.kind} ${metadata.name} is orphaned`);
}
/** Begins what is to be killed, waits for the death, looks, and begins anew. */
async function dieAt(number: number, isDone: boolean, sync: string, begin: () => Promise<unknown>): Promise<void> {
  writes = 0;
  death = { at: number, isDone, died: createDeferred() };
  await begin();
  await death.died.promise;
  await nothingIsOrphaned(sync);
  await at.cluster.restart(async () => {
    death = undefined;
    isDead = false;
  });
}

const COUNT = 6;
for (const isDone of [false, true])
  for (let number = 1; number <= COUNT; number++) {
    const when = `${isDone ? 'after' : 'before'} write ${number}`;
    const sync = `kill-${isDone ? 'done' : 'asked'}-${number}`;

    // S-978: A component that dies before or after the write of any object, of an apply, a prune or an end, leaves no
    //   object without an entry and deletes nothing that Git has; the next one ends it.
    test(`${when} of an apply, of a prune, and of a deletion with policy Foreground`, async (t) => {
      const repository = await createRepository();
      t.after(repository.remove);
      const stays: Member = { name: `${sync}-stays`, type: maps };
      const members = membersOf(sync);
      const first = await repository.commit(filesOf([stays], true));
      await at.rootSync(sync, repository.url, { annotations: { [POLICY]: 'Foreground' } });
      await at.synced(sync, first);
      const { uid } = (await live(stays))!.metadata;
      const foreign: Member = { name: `${sync}-foreign`, type: maps };
      await at.client.create(maps, JSON.parse(yamlOf(foreign)) as KubeObject);

      let commit = '';
      await dieAt(number, isDone, sync, async () => {
        commit = await repository.commit(filesOf(members, true));
      });
      await at.synced(sync, commit);
      for (const one of members) assert.ok(await live(one), `${one.name} was not made`);
      assert.equal((await at.inventory(sync))?.length, COUNT + 1);

      await dieAt(number, isDone, sync, async () => {
        commit = await repository.commit(filesOf(members, false));
      });
      await at.synced(sync, commit);
      for (const one of members) await at.gone(one.type, one.name, 'default');
      assert.equal((await live(stays))?.metadata.uid, uid, 'what Git has was made anew');

      await at.synced(sync, await repository.commit(filesOf(members, true)));
      await dieAt(number, isDone, sync, () =>
        at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name: sync }),
      );
      await at.gone(ROOT_SYNCS, sync, CONFIG_SYNC_NAMESPACE);
      for (const one of [...members, stays]) assert.equal(await live(one), undefined, `${one.name} was left`);
      assert.ok(await live(foreign), 'what nobody declared is gone');
      assert.equal(await at.inventory(sync), undefined);
    });

    // S-978
    test(`${when} of a deletion with policy Orphan, and of objects that are let go`, async (t) => {
      const repository = await createRepository();
      t.after(repository.remove);
      const name = `${sync}-orphan`;
      const members = membersOf(name);
      await at.rootSync(name, repository.url, { annotations: { [POLICY]: 'Orphan' } });
      await at.synced(name, await repository.commit(filesOf(members, true)));
      const uids = await Promise.all(members.map(async (one) => (await live(one))?.metadata.uid));
      await dieAt(number, isDone, name, () => at.client.delete(ROOT_SYNCS, { namespace: CONFIG_SYNC_NAMESPACE, name }));
      await at.gone(ROOT_SYNCS, name, CONFIG_SYNC_NAMESPACE);
      for (const [index, one] of members.entries()) {
        const left = await live(one);
        assert.equal(left?.metadata.uid, uids[index]);
        assert.equal(left?.metadata.annotations?.[MANAGER], undefined);
      }
    });
  }
