/** The `coracle` program: finds the command, reads its words, turns failures into one line and an exit code. */
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import './config/resolve-sources.ts';
import { distrustCache } from './config/trusted-dir.ts';

// Everything this program and its guests write is for its owner: state, images, disks, sockets, logs.
process.umask(0o077);
// Stripped and compiled sources are kept between runs: it halves the time to the first line. Among the user's own files:
// whoever can write to that directory decides what runs. In the environment, so that a detached child has it from its
// first file on.
process.env['NODE_COMPILE_CACHE'] ??= join(
  isAbsolute(process.env['XDG_CACHE_HOME'] ?? '') ? process.env['XDG_CACHE_HOME']! : join(homedir(), '.cache'),
  'coracle',
  'compile',
);
if (distrustCache(process.env['NODE_COMPILE_CACHE']) === undefined)
  enableCompileCache(process.env['NODE_COMPILE_CACHE']);
else {
  delete process.env['NODE_COMPILE_CACHE'];
  process.env['NODE_DISABLE_COMPILE_CACHE'] = '1';
}
const { runProgram } = await import('./cli/run-program.ts');
const code = await runProgram(process.argv.slice(2));
process.exitCode ||= code; // set already where the output could not be written
// A handle that a failed command left open must not keep the process: what is written by now is written.
setTimeout(() => process.exit(), 2_000).unref();
