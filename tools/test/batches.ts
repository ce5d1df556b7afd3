/**
 * Test files that share a process. A process for each costs more than most files take: starting Node, loading the server.
 * Each file is a suite of that process, so its hooks are its own.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** Files to a process: few enough that what one leaves in memory does not weigh on the others. */
const BATCH_FILES = 48;

const SUITES = JSON.stringify(import.meta.resolve('./suites.ts'));

export interface Batches {
  /** Modules to run in place of the files. */
  readonly modules: readonly string[];
  /** Removes them. */
  remove(): void;
}

/** Writes modules that run `files`, named from `root`, in their order. Neighbours share a process: they load the same. */
export function writeBatches(root: string, files: readonly string[]): Batches {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-tests-'));
  const modules: string[] = [];
  for (let start = 0; start < files.length; start += BATCH_FILES) {
    const suites = files.slice(start, start + BATCH_FILES).map((file) => [file, resolve(root, file)]);
    const path = join(directory, `batch-${String(modules.length + 1).padStart(2, '0')}.mjs`);
    writeFileSync(
      path,
      `import { runAsSuites } from ${SUITES};\nrunAsSuites(${JSON.stringify(suites, undefined, 2)});\n`,
    );
    modules.push(path);
  }
  return { modules, remove: () => rmSync(directory, { recursive: true, force: true }) };
}
