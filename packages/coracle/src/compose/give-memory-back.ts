import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: ((how: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void) | undefined;

/**
 * Collects what is no longer used and gives its pages back to the system. The engine does so by itself only as far as memory is
 * asked for: a process that has done much and does nothing keeps what that took. It stops the process for some hundred
 * milliseconds, and is therefore for processes that nobody waits for.
 */
export function giveMemoryBack(): void {
  if (!collect) {
    // The one way to it but for a flag of the command line, which would show `gc` to all code.
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as NonNullable<typeof collect>;
    setFlagsFromString('--no-expose-gc');
  }
  collect({ type: 'major', flavor: 'last-resort' });
}
