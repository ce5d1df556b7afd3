/**
 * Loaded before each test file (`node --import`): properties of fast-check draw from the seed of `seed.ts`; sources load fast;
 * and node:test has no hook on promises any more once the first test begins.
 */
import '../../packages/coracle/src/config/resolve-sources.ts';
import { beforeEach } from 'node:test';
import { isMainThread } from 'node:worker_threads';
import fc from 'fast-check';
import { enabledHooks } from './promise-hooks.ts';
import { seed } from './seed.ts';

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });

// Not in threads that a test starts, nor where many files are loaded one after the other: `tools/test/suites.ts` does it there.
if (isMainThread && process.env['NODE_TEST_CONTEXT'] !== undefined && process.argv[1]?.endsWith('.test.ts')) {
  const hooks = enabledHooks();
  beforeEach(() => {
    for (const hook of hooks) hook.disable();
  });
}
