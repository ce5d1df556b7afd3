/**
 * How large each package is: lines of TypeScript outside tests, as `npm run check` prints them. What is generated from data
 * (`*.generated.ts`) does not count: nobody writes or reads it.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import younger from './younger-files.json' with { type: 'json' };

/**
 * Lines of commit 6f59d08e, before volumes, snapshots, identity, protection, backups and syncs were built: what is counted of
 * today is compared with it room by room, without those that have come since.
 */
export const LINES_BEFORE = 124_738;

/** Rooms, in `packages`, that are younger than that commit. */
export const NEWER_ROOMS: readonly string[] = [
  'cluster-rules/src/claims',
  'cluster-rules/src/storage',
  'cluster-rules/src/volume-snapshot',
  'coracle/src/backup',
  'coracle/src/cli/machines',
  'coracle/src/cli/nomos',
  'coracle/src/cli/sync',
  'coracle/src/upload-proxy',
  'gitops/src',
  'kube-controllers/src/storage',
  'kubevirt/src/controllers/backup',
  'kubevirt/src/controllers/bin',
  'kubevirt/src/controllers/clone',
  'kubevirt/src/controllers/data-volume',
  'kubevirt/src/controllers/export',
  'kubevirt/src/controllers/kubevirt',
  'kubevirt/src/controllers/memory',
  'kubevirt/src/controllers/pool',
  'kubevirt/src/controllers/protection',
  'kubevirt/src/controllers/replica-set',
  'kubevirt/src/controllers/snapshot',
  'kubevirt/src/rules/access-credentials',
  'kubevirt/src/rules/backend-storage',
  'kubevirt/src/rules/backup',
  'kubevirt/src/rules/bin',
  'kubevirt/src/rules/clone',
  'kubevirt/src/rules/data-volume',
  'kubevirt/src/rules/deletion-preview',
  'kubevirt/src/rules/export',
  'kubevirt/src/rules/identity',
  'kubevirt/src/rules/memory-state',
  'kubevirt/src/rules/metrics',
  'kubevirt/src/rules/object-graph',
  'kubevirt/src/rules/probe',
  'kubevirt/src/rules/protection',
  'kubevirt/src/rules/sets',
  'kubevirt/src/rules/snapshot',
  'node-agent/src/agent/backup',
  'node-agent/src/agent/credentials',
  'node-agent/src/agent/memory',
  'node-agent/src/agent/network',
  'node-agent/src/agent/probes',
  'node-agent/src/export',
  'node-agent/src/fill',
  'node-agent/src/network/switch',
  'node-agent/src/storage',
  'node-agent/src/tpm',
];

/**
 * Files of other rooms, by the commit that brought them, that are younger too. One stands here when
 * - its commit brought a feature, a bound or a limit that src/ did not have: a commit that splits, moves or rewrites what was
 *   there, or corrects how it behaves, has no entry, and its files count as what was there, however new their text;
 * - git finds no file that it was copied or renamed from (`git log -M40% -C`);
 * - less than a fifth of its lines stood anywhere in src/ then (`lines.test.ts`).
 * What later features added to files that were there counts as growth of these.
 */
export const YOUNGER_FILES: readonly string[] = younger.flatMap(({ files }) => files);

type Lines = readonly (readonly [name: string, lines: number])[];

/** Lines by package of the tree at `root`, the largest first; without those of the rooms and files `without`. */
export function linesByPackage(root: string, without: readonly string[] = []): Lines {
  const lines = new Map<string, number>();
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root })) {
    if (/\.(test|contract|fixture|generated)\.ts$/.test(file)) continue;
    if (without.some((path) => `${file}/`.startsWith(`packages/${path}/`))) continue;
    const name = file.split('/')[1] ?? '';
    const count = readFileSync(join(root, file), 'utf8').split('\n').length - 1;
    lines.set(name, (lines.get(name) ?? 0) + count);
  }
  return [...lines].sort((a, b) => b[1] - a[1]);
}

const sumOf = (lines: Lines): number => lines.reduce((sum, [, count]) => sum + count, 0);
const printed = (count: number): string => count.toLocaleString('en');

/** One line: each package, then all of them. */
export const linesText = (lines: Lines): string =>
  [...lines, ['all', sumOf(lines)] as const].map(([name, count]) => `${name} ${printed(count)}`).join(', ');

/** What is counted of then and of now. */
export const sinceText = (now: Lines): string =>
  `${printed(LINES_BEFORE)} then, ${printed(sumOf(now))} now (${sumOf(now) < LINES_BEFORE ? '' : '+'}${printed(sumOf(now) - LINES_BEFORE)})`;
