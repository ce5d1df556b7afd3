/** Test files as suites of one process: what the modules call that `batches.ts` writes. */
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';
import { enabledHooks } from '../../test/testkit/promise-hooks.ts';

/** Runs `files`, one after the other, each in a suite of its name; the hooks of node:test on promises end when all are loaded. */
export function runAsSuites(files: readonly (readonly [name: string, path: string])[]): void {
  const hooks = enabledHooks();
  let loading = files.length;
  for (const [name, path] of files)
    describe(name, async () => {
      await import(pathToFileURL(path).href);
      loading -= 1;
      if (loading === 0) for (const hook of hooks) hook.disable();
    });
}
