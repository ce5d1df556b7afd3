/** Objects that plug-ins of admission have created in the commit of another write. */
import type { Companion } from '../admission/plugin.ts';
import type { StoreWrite } from '../cache/object-store.ts';
import type { Registry } from './write-contract.ts';
import { createPart } from './write-object.ts';

/** The writes of all of them, for `writeObject`; undefined when there are none. */
export function companionWrites(
  registry: Registry,
  companions: readonly Companion[],
): (() => readonly StoreWrite[]) | undefined {
  if (companions.length === 0) return undefined;
  return () => companions.map((companion) => createPart(registry, companion.info, companion));
}
