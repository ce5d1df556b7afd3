import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: ((how: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void) | undefined;

/**
 * Collects what is no longer used and gives its pages back to the system. The engine does so by itself only as far as memory is
 * asked for: a process that has done much and does nothing keeps what that took. It stops the thread for some hundred
 * milliseconds where that has a large heap, and is therefore for threads that nobody waits for. The heap is the thread's own.
 */
export function giveMemoryBack(): void {
  if (!collect) {
    // The one way to it but for a flag of the command line, which would show `gc` to all code; contexts made later show it. Code
    // that was compiled before fits no process with other flags of the engine; this one is no such flag. It is for all
    // threads, so that none may take it back while another one looks.
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as NonNullable<typeof collect>;
  }
  collect({ type: 'major', flavor: 'last-resort' });
}
