/** The write of an object with all that goes into its commit: what plug-ins have added, and what its kind writes with it. */

import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { CommitPart, ResourceName, ResourceStrategy } from '@coracle/apimachinery/types/strategy';
import type { Companion } from '../admission/plugin.ts';
import type { Decision, StoredObject, StoreKey, StoreWrite } from '../cache/object-store.ts';
import { builtinResource } from '../kinds/builtin/builtin-resources.ts';
import { deletionDecision, deletionEffect } from './graceful-deletion.ts';
import { fillSystemMetadata } from './object-metadata.ts';
import type { Registry } from './write-contract.ts';

/** All or nothing. Throws ApiError as the strategy's `commitWith` and the decision do. */
export function writeObject(
  registry: Registry,
  write: StoreWrite & { readonly info: ResourceInfo },
  companions?: () => readonly StoreWrite[],
): Promise<StoredObject | undefined> {
  const { commitWith } = write.info.strategy;
  if (commitWith) return writeWithParts(registry, { ...write, commitWith }, companions);
  const { store } = registry;
  return companions ? store.writeTogether(write, companions) : store.write(write.key, write.decide);
}

async function writeWithParts(
  registry: Registry,
  { key, decide, commitWith }: StoreWrite & Required<Pick<ResourceStrategy, 'commitWith'>>,
  companions: (() => readonly StoreWrite[]) | undefined,
): Promise<StoredObject | undefined> {
  const { store } = registry;
  const { namespace, name } = key;
  for (;;) {
    let found: StoreKey | undefined;
    let parts: readonly CommitPart[] = [];
    const exists = (of: ResourceName, ...place: [namespace: string, name: string]): boolean => {
      const asked = keyOf(of, ...place);
      const isThere = store.peek(asked) !== undefined;
      if (isThere) found = asked;
      return isThere;
    };
    const decideAll = (current: StoredObject | undefined): Decision => {
      const decision = decide(current);
      if (decision.type === 'keep') return decision;
      const after = decision.type === 'put' ? decision.object : undefined;
      parts = commitWith({ namespace, name, before: current?.object, after, exists });
      return decision;
    };
    try {
      const others = () => [...parts.map((part) => partWrite(registry, part)), ...(companions?.() ?? [])];
      return await store.writeTogether({ key, decide: decideAll }, others);
    } catch (error) {
      // A "no" that rests on a write still on its way is reported when that is durable.
      const durable = found === undefined ? undefined : store.settled(found);
      if (!durable || (await durable)) throw error;
    }
  }
}

const keyOf = ({ group, resource }: ResourceName, namespace: string, name: string): StoreKey => ({
  prefix: storagePrefix({ group, resource }),
  namespace,
  name,
});

/** The write of one part, decided against what is there. */
export function partWrite(registry: Registry, part: CommitPart): StoreWrite {
  const info = builtinResource(part.of);
  if (info === undefined) throw new TypeError(`${part.of.resource} of ${part.of.group} is not a built-in resource`);
  return part.type === 'create' ? createPart(registry, info, part) : deletePart(registry, info, part);
}

/** The writes of what plug-ins of admission have added; undefined when there is nothing. */
export function companionWrites(
  registry: Registry,
  companions: readonly Companion[],
): (() => readonly StoreWrite[]) | undefined {
  if (companions.length === 0) return undefined;
  return () => companions.map((companion) => createPart(registry, companion.info, companion));
}

/** One whose name is taken stays. */
function createPart(
  registry: Registry,
  info: ResourceInfo,
  { object, manager }: Pick<Companion, 'object' | 'manager'>,
): StoreWrite {
  const { metadata } = object;
  const now = registry.clock.now();
  return {
    key: { prefix: storagePrefix(info), namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
    decide(current) {
      if (current) return { type: 'keep' };
      fillSystemMetadata(info, metadata, now);
      // Nobody owned anything of it before, so there is no other version to ask a webhook for.
      void registry.fields?.track({ info, subresource: '', manager, live: undefined, now }, object);
      return { type: 'put', object };
    },
  };
}

function deletePart(
  registry: Registry,
  info: ResourceInfo,
  { of, namespace, name, isMeant }: Extract<CommitPart, { type: 'delete' }>,
): StoreWrite {
  return {
    key: keyOf(of, namespace, name),
    decide(current) {
      if (!current || isMeant?.(current.object) === false) return { type: 'keep' };
      const effect = deletionEffect(info, current.object, { options: {}, now: registry.clock.now() });
      return deletionDecision(effect, current);
    },
  };
}
