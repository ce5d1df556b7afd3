/**
 * Layers on their way into the store, one file for each digest of a repository. Images of a repository share layers, and
 * one image may be wanted twice for different files of it: a layer is written by one pull at a time and stays while any
 * pull still reads it. Another repository that names the digest of a layer has to give all of it: the name of a private
 * layer opens nothing.
 */
import { hash } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';

/** A download nobody has continued for this long is given up. */
const MAX_AGE_MS = 24 * 3600_000;

const partName = (repository: string, digest: string): string =>
  `layer-${hash('sha256', JSON.stringify([repository, digest]))}`;

/** `maxBytes`: of all parts together that no pull holds. */
export function createLayerParts(directory: string, options: { readonly clock: Clock; readonly maxBytes: number }) {
  const holders = new Map<string, number>();
  /** The end of the last work on a layer, by the name of its file. */
  const tails = new Map<string, Promise<void>>();
  const pathOf = (name: string): string => join(directory, name);

  const alone = (name: string, work: () => Promise<void>): Promise<void> => {
    const run = (tails.get(name) ?? Promise.resolve()).then(work);
    const tail = run
      .catch(() => {})
      .then(() => {
        if (tails.get(name) === tail) tails.delete(name);
      });
    tails.set(name, tail);
    return run;
  };

  return {
    /** The layers of one pull from `repository` (with its registry), kept until it releases them. */
    hold(repository: string, digests: readonly string[]) {
      const held = [...new Set(digests.map((digest) => partName(repository, digest)))];
      for (const name of held) holders.set(name, (holders.get(name) ?? 0) + 1);
      return {
        /** Runs `fill` on the file of a held layer, never beside another `fill` of the same layer; resolves to its path. */
        async fill(digest: string, fill: (path: string) => Promise<void>): Promise<string> {
          const name = partName(repository, digest);
          await alone(name, () => fill(pathOf(name)));
          return pathOf(name);
        },
        /** `done`: the layers have served; they go unless another pull holds them. Else they stay for the next try. */
        async release(done: boolean): Promise<void> {
          for (const name of held) {
            const others = (holders.get(name) ?? 1) - 1;
            if (others > 0) holders.set(name, others);
            else holders.delete(name);
          }
          if (!done) return;
          for (const name of held)
            await alone(name, async () => {
              if (!holders.has(name)) await rm(pathOf(name), { force: true });
            });
        },
      };
    },
    /** Removes what no pull holds and is a day old, and what is over the bound, oldest first; or all no pull holds. */
    async prune(all = false): Promise<void> {
      const idle: { path: string; size: number; age: number }[] = [];
      for (const name of await readdir(directory)) {
        if (holders.has(name)) continue;
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

export type LayerParts = ReturnType<typeof createLayerParts>;
