/** Objects that plug-ins of admission have created in the commit of another write. */
import { storagePrefix } from '@coracle/apimachinery/types/resource';
import type { Companion } from '../admission/plugin.ts';
import type { StoreWrite } from '../cache/object-store.ts';
import { fillSystemMetadata } from './object-metadata.ts';
import type { Registry } from './write-contract.ts';

/** The writes of all of them, for `writeObject`; undefined when there are none. */
export function companionWrites(
  registry: Registry,
  companions: readonly Companion[],
): (() => readonly StoreWrite[]) | undefined {
  if (companions.length === 0) return undefined;
  return () => companions.map((companion) => companionWrite(registry, companion));
}

/** One whose name is taken is left out. */
function companionWrite(registry: Registry, { info, object, manager }: Companion): StoreWrite {
  const { metadata } = object;
  const now = registry.clock.now();
  fillSystemMetadata(info, metadata, now);
  // Nobody owned anything of it before, so there is no other version to ask a webhook for.
  void registry.fields?.track({ info, subresource: '', manager, live: undefined, now }, object);
  return {
    key: { prefix: storagePrefix(info), namespace: metadata.namespace ?? '', name: metadata.name ?? '' },
    decide: (current) => (current ? { type: 'keep' } : { type: 'put', object }),
  };
}
