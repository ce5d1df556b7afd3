/** How many watch what: a write costs by those who are notified of it (apiserver util/flowcontrol/watch_tracker.go). */
import type { RequestInfo } from '../request-info.ts';

export interface Watched {
  readonly group: string;
  readonly resource: string;
  /** '' = all namespaces, or cluster-scoped. */
  readonly namespace: string;
  /** '' = all objects. */
  readonly name: string;
}

export function createWatchCounts() {
  /** By resource, then by what of it is watched. Bounded by the watches that are open. */
  const counts = new Map<string, Map<string, number>>();
  let open = 0;
  return {
    /** One more; the returned function takes it away again. */
    add({ group, resource, namespace, name }: Watched): () => void {
      const key = `${group}/${resource}`;
      const scope = `${namespace}/${name}`;
      const ofResource = counts.get(key) ?? new Map<string, number>();
      counts.set(key, ofResource);
      ofResource.set(scope, (ofResource.get(scope) ?? 0) + 1);
      open++;
      return () => {
        open--;
        const left = ofResource.get(scope)! - 1;
        if (left > 0) ofResource.set(scope, left);
        else ofResource.delete(scope);
        if (ofResource.size === 0) counts.delete(key);
      };
    },
    /** Those that may be notified of a write. Watches with selectors count: somebody has to look for them. */
    interested({ group, resource, namespace, name }: RequestInfo): number {
      if (open === 0) return 0;
      const ofResource = counts.get(`${group}/${resource}`);
      if (ofResource === undefined) return 0;
      let found = ofResource.get('/') ?? 0;
      if (namespace !== '') found += ofResource.get(`${namespace}/`) ?? 0;
      if (name !== '') found += ofResource.get(`${namespace}/${name}`) ?? 0;
      return found;
    },
  };
}
