/** The watches that are open now, so that a shutdown or the end of a kind can end them in good order. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

export type OpenWatches = ReturnType<typeof createOpenWatches>;

export function createOpenWatches() {
  const open = new Map<() => void, ResourceInfo>();
  return {
    /** Registers a watch; `end` closes its stream normally. The returned function forgets it. */
    add(info: ResourceInfo, end: () => void): () => void {
      open.set(end, info);
      return () => open.delete(end);
    },
    /** Ends the watches of resources that are no longer served (or were replaced). */
    endOf(infos: readonly ResourceInfo[]): void {
      const gone = new Set(infos);
      for (const [end, info] of [...open]) if (gone.has(info)) end();
    },
    endAll(): void {
      for (const end of [...open.keys()]) end();
    },
    get size(): number {
      return open.size;
    },
  };
}
