/** Starts a program as a process of its own, which goes on without the agent. */
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plainEnv } from '@coracle/runtime/process/run';
import { type DetachedProcess, spawnDetached } from '@coracle/runtime/process/spawn-detached';

/** Where each lies among the sources; a build has all programs in one folder. */
const PROGRAMS = {
  'filter-process': './filter-process.ts',
  'switch-process': './switch/switch-process.ts',
  'thaw-process': '../agent/guest/thaw-process.ts',
} as const;

export interface ProgramOptions {
  /** Its working directory, where its files are. */
  readonly cwd: string;
  /** MiB that its old generation may have. */
  readonly heapMiB: number;
  readonly outputFile: string;
  /** Of that file. */
  readonly maxOutputBytes?: number;
}

/** Resolves when it runs. Rejects when it cannot be started. */
export function startProgram(
  name: keyof typeof PROGRAMS,
  { heapMiB, ...options }: ProgramOptions,
): Promise<DetachedProcess> {
  const file = import.meta.url.endsWith('.ts') ? PROGRAMS[name] : `./${name}.js`;
  const cache = getCompileCacheDir();
  const flags = ['--disable-warning=ExperimentalWarning', '--v8-pool-size=0', `--max-old-space-size=${heapMiB}`];
  return spawnDetached([process.execPath, ...flags, fileURLToPath(new URL(file, import.meta.url))], {
    ...options,
    // Without the cache each would load a TypeScript compiler to read its few files.
    env: { ...plainEnv(), ...(cache !== undefined && { NODE_COMPILE_CACHE: dirname(cache) }) },
  });
}
