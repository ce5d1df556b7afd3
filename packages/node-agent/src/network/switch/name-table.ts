/** The names of the cluster, found by name and by address. */
import type { NameRecord } from './name-server.ts';
import { reverseAddress } from './name-server.ts';
import type { NetworkName } from './switch-state.ts';

/** `100-64-0-9.default.pod` */
const POD_NAME = /^(\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\.[^.]+\.pod$/;

export interface NameTable {
  set(name: NetworkName): void;
  delete(name: string): void;
  clear(): void;
  lookup(name: string): NameRecord | undefined;
}

/** Makes an empty one. */
export function createNameTable(): NameTable {
  const names = new Map<string, NetworkName>();
  /** By address: the names that stand for it alone. */
  const pointers = new Map<string, Set<string>>();
  const forget = (name: string): void => {
    for (const address of names.get(name)?.addresses ?? []) {
      const held = pointers.get(address);
      held?.delete(name);
      if (held?.size === 0) pointers.delete(address);
    }
    names.delete(name);
  };
  return {
    set(entry) {
      forget(entry.name);
      names.set(entry.name, entry);
      if (!entry.isOwn) return;
      for (const address of entry.addresses)
        pointers.set(address, (pointers.get(address) ?? new Set()).add(entry.name));
    },
    delete: forget,
    clear() {
      names.clear();
      pointers.clear();
    },
    lookup(name) {
      const address = reverseAddress(name);
      if (address !== undefined) {
        const found = pointers.get(address);
        return found && { addresses: [], pointers: [...found] };
      }
      const pod = POD_NAME.exec(name)?.[1]?.replaceAll('-', '.');
      return names.get(name) ?? (pod === undefined ? undefined : { addresses: [pod] });
    },
  };
}
