/** The `coracle` program: finds the command, reads its words, turns failures into one line and an exit code. */
import { enableCompileCache } from 'node:module';

// Stripped and compiled sources are kept between runs: it halves the time to the first line.
enableCompileCache();
const { runProgram } = await import('./cli/run-program.ts');
process.exitCode = await runProgram(process.argv.slice(2));
