/** The helms that tests drive: that of PATH, and those that set-up fetched of other major versions. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { clientBinariesDir } from '../../tools/setup/client-binaries.ts';

export interface Helm {
  readonly path: string;
  readonly major: number;
}

/** Newest first; of each major version one. */
export function findHelms(): readonly Helm[] {
  const onPath = (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, 'helm'));
  const fetched = ['helm.4', 'helm.3'].map((name) => join(clientBinariesDir(), name));
  const own = onPath.find((path) => existsSync(path));
  const found = new Map<number, Helm>();
  for (const path of [...(own === undefined ? [] : [own]), ...fetched.filter((path) => existsSync(path))]) {
    const text = execFileSync(path, ['version', '--template', '{{.Version}}'], { encoding: 'utf8', timeout: 30_000 });
    const major = Number(/^v(\d+)\./.exec(text)?.[1]);
    if (!found.has(major)) found.set(major, { path, major });
  }
  return [...found.values()].filter(({ major }) => major >= 3).sort((a, b) => b.major - a.major);
}
