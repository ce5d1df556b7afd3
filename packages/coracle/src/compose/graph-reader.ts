/** Reads stored objects for an object graph, with the rights of the user who asks for it. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject, ObjectKey } from '@coracle/apimachinery/meta/object';
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Authorizer, UserInfo } from '@coracle/apiserver/auth/identity';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import type { ResourceSource } from '@coracle/apiserver/registry/resource-catalog';
import type { GraphReader } from '@coracle/kubevirt/controllers/virt-api/virt-api';
import { nextTurn } from '@coracle/runtime/clock/next-turn';

/** Objects of one kind that a graph looks at; where a namespace has more, nothing is shown of that kind. */
const MAX_LISTED = 20_000;
/** Objects that are looked at without a pause. */
const PAGE = 500;

/** Makes the reader of one user. */
export function graphReader(
  {
    store,
    resources,
    authorize,
  }: {
    readonly store: Pick<ObjectStore, 'get' | 'list'>;
    readonly resources: Pick<ResourceSource, 'lookup'>;
    readonly authorize: Authorizer;
  },
  user: UserInfo,
): GraphReader {
  const may = async (verb: 'get' | 'list', type: ResourceType, { namespace, name }: ObjectKey): Promise<boolean> => {
    const { group, version, resource } = type;
    const asked = { type: 'resource', verb, group, version, resource, subresource: '', namespace, name } as const;
    return (await authorize(user, asked)).allowed;
  };
  const prefixOf = ({ group, version, resource }: ResourceType): string | undefined => {
    const info = resources.lookup(group, version, resource);
    return info && storagePrefix(info);
  };
  return {
    async get(type, { namespace, name }) {
      if (!(await may('get', type, { namespace, name }))) return 'forbidden';
      const prefix = prefixOf(type);
      return (prefix !== undefined && store.get({ prefix, namespace, name })?.object) || 'missing';
    },
    async list<T extends KubeObject>(type: ResourceType<T>, namespace: string) {
      const prefix = prefixOf(type);
      if (prefix === undefined) return [];
      if (!(await may('list', type, { namespace, name: '' }))) return 'forbidden';
      const found: DeepReadonly<T>[] = [];
      for (let after: string | undefined; ; ) {
        const { items, next } = store.list(prefix, { namespace, limit: PAGE, ...(after !== undefined && { after }) });
        for (const { object } of items) found.push(object as unknown as DeepReadonly<T>);
        if (next === undefined) return found;
        if (found.length >= MAX_LISTED) return 'forbidden';
        after = next;
        await nextTurn();
      }
    },
  };
}
