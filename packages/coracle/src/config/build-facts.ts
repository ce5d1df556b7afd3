/** What `/version` tells of this program: the commit of the checkout it runs from, and what runs it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { VersionFacts } from '@coracle/apimachinery/meta/version-info';
import { BUILT_COMMIT } from './program-files.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const COMMIT = /^[0-9a-f]{40,64}$/;

/** Of the running program; `root` is where it lies. A build knows its commit; else, outside a checkout, nobody does. */
export function buildFacts(root: string = ROOT): VersionFacts {
  const commit = BUILT_COMMIT ?? commitOf(join(root, '.git'));
  return { ...(commit && { commit }), engine: `node ${process.version}` };
}

/** The commit that is checked out, as Git's own files say; undefined where there is none to be read. */
function commitOf(git: string): string | undefined {
  const head = lines(join(git, 'HEAD'))[0] ?? '';
  const ref = /^ref: (refs\/[^\s]+)$/.exec(head)?.[1];
  if (ref === undefined) return COMMIT.test(head) ? head : undefined;
  const loose = lines(join(git, ref))[0] ?? '';
  if (COMMIT.test(loose)) return loose;
  const packed = lines(join(git, 'packed-refs')).find((line) => line.endsWith(` ${ref}`));
  const commit = packed?.slice(0, packed.indexOf(' ')) ?? '';
  return COMMIT.test(commit) ? commit : undefined;
}

function lines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n');
  } catch {
    return [];
  }
}
