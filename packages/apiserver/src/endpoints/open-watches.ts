/** The watches that are open now, so that a shutdown or the end of a kind can end them in good order. */
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

export interface OpenWatches {
  /** Registers a watch; `end` closes its stream normally. The returned function forgets it. */
  add(info: ResourceInfo, end: () => void): () => void;
  /** Ends the watches of resources that are no longer served (or were replaced). */
  endOf(infos: readonly ResourceInfo[]): void;
  endAll(): void;
  readonly size: number;
}

export function createOpenWatches(): OpenWatches {
  const open = new Map<() => void, ResourceInfo>();
  return {
    add(info, end) {
      open.set(end, info);
      return () => open.delete(end);
    },
    endOf(infos) {
      const gone = new Set(infos);
      for (const [end, info] of [...open]) if (gone.has(info)) end();
    },
    endAll() {
      for (const end of [...open.keys()]) end();
    },
    get size() {
      return open.size;
    },
  };
}
