/** The names of the cluster, found by name and by address. */
import type { NameRecord } from './name-server.ts';
import { reverseAddress } from './name-server.ts';
import { BETWEEN_ENDPOINTS_MS } from './service-table.ts';
import type { NetworkName } from './switch-state.ts';

/** `100-64-0-9.default.pod` */
const POD_NAME = /^(\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\.[^.]+\.pod$/;

export interface NameTable {
  set(name: NetworkName): void;
  delete(name: string): void;
  clear(): void;
  lookup(name: string): NameRecord | undefined;
}

/** Makes an empty one. `now`: ms of a clock that only goes forward. */
export function createNameTable(now: () => number): NameTable {
  const names = new Map<string, NetworkName>();
  /** What names led to whose last address has gone: an entry a name at most, the oldest first. */
  const former = new Map<string, { readonly entry: NetworkName; readonly at: number }>();
  const isOver = (at: number): boolean => now() - at >= BETWEEN_ENDPOINTS_MS;
  const remember = (entry: NetworkName | undefined): void => {
    for (const [name, { at }] of former) if (isOver(at)) former.delete(name);
    if (entry && entry.addresses.length > 0) former.set(entry.name, { entry, at: now() });
  };
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
  const recent = (name: string): NetworkName | undefined => {
    const found = former.get(name);
    return found && !isOver(found.at) ? found.entry : undefined;
  };
  return {
    set(entry) {
      if (entry.addresses.length > 0 || entry.alias !== undefined) former.delete(entry.name);
      else remember(names.get(entry.name));
      forget(entry.name);
      names.set(entry.name, entry);
      if (!entry.isOwn) return;
      for (const address of entry.addresses)
        pointers.set(address, (pointers.get(address) ?? new Set()).add(entry.name));
    },
    delete(name) {
      remember(names.get(name));
      forget(name);
    },
    clear() {
      former.clear();
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
      return recent(name) ?? names.get(name) ?? (pod === undefined ? undefined : { addresses: [pod] });
    },
  };
}
