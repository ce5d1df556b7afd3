/**
 * Layers on their way into the store, one file for each digest. Images share layers, and one image may be wanted twice
 * for different files of it: a layer is written by one pull at a time and stays while any pull still reads it.
 */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock/clock.ts';
import { fileNameOf } from './store-entries.ts';

export interface LayerParts {
  /** The layers of one pull, kept until it releases them. */
  hold(digests: readonly string[]): HeldLayers;
  /** Removes what no pull holds and is a day old, and what is over the bound, oldest first; or all no pull holds. */
  prune(all?: boolean): Promise<void>;
}

export interface HeldLayers {
  /** Runs `fill` on the file of a held layer, never beside another `fill` of the same layer; resolves to its path. */
  fill(digest: string, fill: (path: string) => Promise<void>): Promise<string>;
  /** `done`: the layers have served; they go unless another pull holds them. Else they stay for the next try. */
  release(done: boolean): Promise<void>;
}

/** A download nobody has continued for this long is given up. */
const MAX_AGE_MS = 24 * 3600_000;

/** `maxBytes`: of all parts together that no pull holds. */
export function createLayerParts(
  directory: string,
  options: { readonly clock: Clock; readonly maxBytes: number },
): LayerParts {
  const holders = new Map<string, number>();
  /** The end of the last work on a digest. */
  const tails = new Map<string, Promise<void>>();
  const pathOf = (digest: string): string => join(directory, fileNameOf(digest));

  const alone = (digest: string, work: () => Promise<void>): Promise<void> => {
    const run = (tails.get(digest) ?? Promise.resolve()).then(work);
    const tail = run
      .catch(() => {})
      .then(() => {
        if (tails.get(digest) === tail) tails.delete(digest);
      });
    tails.set(digest, tail);
    return run;
  };

  return {
    hold(digests) {
      const held = [...new Set(digests)];
      for (const digest of held) holders.set(digest, (holders.get(digest) ?? 0) + 1);
      return {
        async fill(digest, fill) {
          await alone(digest, () => fill(pathOf(digest)));
          return pathOf(digest);
        },
        async release(done) {
          for (const digest of held) {
            const others = (holders.get(digest) ?? 1) - 1;
            if (others > 0) holders.set(digest, others);
            else holders.delete(digest);
          }
          if (!done) return;
          for (const digest of held)
            await alone(digest, async () => {
              if (!holders.has(digest)) await rm(pathOf(digest), { force: true });
            });
        },
      };
    },
    async prune(all = false) {
      const held = new Set([...holders.keys()].map(fileNameOf));
      const idle: { path: string; size: number; age: number }[] = [];
      for (const name of await readdir(directory)) {
        if (held.has(name)) continue;
        const path = join(directory, name);
        const found = await stat(path).catch(() => undefined);
        if (found) idle.push({ path, size: found.size, age: options.clock.now() - found.mtimeMs });
      }
      idle.sort((a, b) => a.age - b.age);
      let total = 0;
      for (const { path, size, age } of idle) {
        total += size;
        if (all || age > MAX_AGE_MS || total > options.maxBytes) await rm(path, { force: true });
      }
    },
  };
}
