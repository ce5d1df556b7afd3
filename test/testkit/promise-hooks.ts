/**
 * While tests are declared, node:test finds the suite that a test belongs to by a hook on every promise. Left on, the hook adds
 * a third or more to what a request costs in the process of a test. Without it, what a test leaves behind and fails later is a failure
 * of the file, no longer of that test.
 */
import { type AsyncHook, createHook } from 'node:async_hooks';

/** The hooks on promises that are enabled from now on. */
export function enabledHooks(): ReadonlySet<AsyncHook> {
  const enabled = new Set<AsyncHook>();
  const prototype = Object.getPrototypeOf(createHook({})) as AsyncHook;
  const enable = prototype.enable;
  prototype.enable = function (this: AsyncHook): AsyncHook {
    enabled.add(this);
    return enable.call(this);
  };
  return enabled;
}
