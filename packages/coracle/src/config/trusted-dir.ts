/** Whether a directory and all above it are this user's: code is loaded, and state kept, in no other (as ssh's StrictModes). */
import { lstatSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const WRITABLE_BY_OTHERS = 0o022;
const STICKY = 0o1000;

/**
 * Why somebody else could change what lies in the directory, in one line; undefined when nobody can. It must be this
 * user's, and those above it this user's or root's; none may be writable for a group or for others, but for ones with
 * the sticky bit above it (/tmp). One that is missing is checked by those above it. Links are followed.
 */
export function distrust(path: string): string | undefined {
  const uid = process.getuid?.() ?? 0;
  const wanted = resolve(path);
  let at = nearest(wanted);
  const isThere = at === wanted;
  at = realpathSync(at);
  for (let isItself = isThere; ; isItself = false) {
    const { mode, uid: owner } = lstatSync(at);
    if (owner !== uid && (isItself || owner !== 0)) return `${at} belongs to another user (uid ${owner})`;
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && (isItself || (mode & STICKY) === 0))
      return `${at} may be written by other users (mode ${(mode & 0o7777).toString(8)}; chmod go-w ${at})`;
    if (dirname(at) === at) return undefined;
    at = dirname(at);
  }
}

/** As `distrust`, for a cache of code: what lies in it already must be this user's too. */
export function distrustCache(path: string): string | undefined {
  const problem = distrust(path);
  if (problem !== undefined) return problem;
  for (const name of lstatSync(path, { throwIfNoEntry: false }) ? readdirSync(path) : []) {
    const inside = distrust(join(path, name));
    if (inside !== undefined) return inside;
  }
  return undefined;
}

/** The path, or the first directory above it that exists. */
function nearest(path: string): string {
  return lstatSync(path, { throwIfNoEntry: false }) || dirname(path) === path ? path : nearest(dirname(path));
}
