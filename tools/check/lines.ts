/** How large each package is: lines of TypeScript outside tests, as `npm run check` prints them. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Lines by package of the tree at `root`, the largest first. */
export function linesByPackage(root: string): readonly (readonly [name: string, lines: number])[] {
  const lines = new Map<string, number>();
  for (const file of globSync('packages/*/src/**/*.ts', { cwd: root })) {
    if (/\.(test|contract|fixture)\.ts$/.test(file)) continue;
    const name = file.split('/')[1] ?? '';
    const count = readFileSync(join(root, file), 'utf8').split('\n').length - 1;
    lines.set(name, (lines.get(name) ?? 0) + count);
  }
  return [...lines].sort((a, b) => b[1] - a[1]);
}

/** One line: each package, then all of them. */
export function linesText(lines: readonly (readonly [name: string, lines: number])[]): string {
  const all = lines.reduce((sum, [, count]) => sum + count, 0);
  return [...lines, ['all', all] as const].map(([name, count]) => `${name} ${count.toLocaleString('en')}`).join(', ');
}
