/**
 * Runs a tool on input that nobody vouches for: no program in its PATH, no environment but what is named, limits of memory,
 * time and file size set by `prlimit` (util-linux) where the host has it.
 */
import { programPath } from './program.ts';
import { type RunOptions, type RunResult, run } from './run.ts';

export interface ConfinedOptions extends Omit<RunOptions, 'env'> {
  /** Private to the run; also HOME and the place of temporary files. */
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Memory that the tool may take; 1 GiB when not said. */
  readonly maxMemory?: number;
  /** Of one file that it writes; 64 MiB when not said. */
  readonly maxFile?: number;
}

const MAX_MEMORY = 1024 ** 3;
const MAX_FILE = 64 * 1024 ** 2;

/** As `run`; `argv[0]` is a path. */
export function runConfined(
  argv: readonly string[],
  { env = {}, maxMemory = MAX_MEMORY, maxFile = MAX_FILE, ...options }: ConfinedOptions,
): Promise<RunResult> {
  const prlimit = programPath('prlimit');
  const seconds = Math.ceil(options.timeoutMs / 1000);
  // Data and not address space: programs in Go reserve far more of that than they use.
  const limits = [`--data=${maxMemory}`, `--fsize=${maxFile}`, `--cpu=${seconds}`, '--core=0', '--'];
  return run(prlimit === undefined ? argv : [prlimit, ...limits, ...argv], {
    ...options,
    env: {
      // A directory that is not there: what the tool would start, it does not find.
      PATH: '/nonexistent',
      LC_ALL: 'C',
      HOME: options.cwd,
      TMPDIR: options.cwd,
      KUBECONFIG: '/dev/null',
      ...env,
    },
  });
}
