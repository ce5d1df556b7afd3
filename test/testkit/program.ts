/**
 * The program that tests start. A run that starts it often builds it first (`tools/test/run-tests.ts`), from the sources as
 * they are: loading a thousand of them is half of a start. Without a build it is the sources.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
/** The command line among the sources, for tests that change how they behave. */
export const SOURCES_MAIN: string = join(root, 'packages/coracle/src/main.ts');

const build = process.env['CORACLE_TEST_BUILD'];
/** What Node is given to run the command line. */
export const MAIN_FILE: string = build === undefined ? SOURCES_MAIN : join(build, 'lib/main.js');
/** The script that users call, of the same program. */
export const LAUNCHER_FILE: string = join(build ?? root, 'coracle');
/** The command line for many commands in one process: see `test/cli/run-commands.ts`. */
export const COMMANDS_FILE: string =
  build === undefined ? join(root, 'test/cli/run-commands.ts') : join(build, 'lib/run-commands.js');
/** The program's compiled code, shared by all tests: a home of its own for each would compile it anew. */
export const COMPILED: string =
  build === undefined
    ? (process.env['NODE_COMPILE_CACHE'] ?? join(homedir(), '.cache/coracle/compile'))
    : join(build, 'compiled');
