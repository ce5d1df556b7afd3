/** Test files as suites of one process: what the modules call that `batches.ts` writes. */
import { type AsyncHook, createHook } from 'node:async_hooks';
import { describe } from 'node:test';
import { pathToFileURL } from 'node:url';

/**
 * Runs `files`, one after the other, each in a suite of its name.
 *
 * While tests are declared, node:test finds the suite that a test belongs to by a hook on every promise; that hook would add a
 * third or more to what a request costs, and ends when all files are loaded. What a test leaves behind and fails later is then a failure of the
 * process, no longer of that test; a file that runs alone says which one it was.
 */
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

/** Those that are enabled from now on. */
function enabledHooks(): ReadonlySet<AsyncHook> {
  const enabled = new Set<AsyncHook>();
  const prototype = Object.getPrototypeOf(createHook({})) as AsyncHook;
  const enable = prototype.enable;
  prototype.enable = function (this: AsyncHook): AsyncHook {
    enabled.add(this);
    return enable.call(this);
  };
  return enabled;
}
