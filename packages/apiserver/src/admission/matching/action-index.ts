import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import type { AdmissionOperation } from '../plugin.ts';

/**
 * What concerns an action on a resource, worked out by `find` when it is first asked for: on every write after that it is
 * two look-ups. As large as the resources that are served, times their actions; `clear` it when an answer may change.
 */
export class ActionIndex<T> {
  readonly #find: (operation: AdmissionOperation, info: ResourceInfo, subresource: string) => T;
  #byResource = new WeakMap<ResourceInfo, Map<string, T>>();

  constructor(find: (operation: AdmissionOperation, info: ResourceInfo, subresource: string) => T) {
    this.#find = find;
  }

  get(operation: AdmissionOperation, info: ResourceInfo, subresource: string): T {
    const action = `${operation}/${subresource}`;
    const known = this.#byResource.get(info);
    if (known?.has(action)) return known.get(action) as T;
    const found = this.#find(operation, info, subresource);
    getOrInsert(this.#byResource, info, () => new Map()).set(action, found);
    return found;
  }

  clear(): void {
    this.#byResource = new WeakMap();
  }
}
