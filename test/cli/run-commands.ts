/** Runs the command line for the list of words on each line of its standard input, and writes what each said. See `workspace.ts`. */
import { createInterface } from 'node:readline';
import { runProgram } from '../../packages/coracle/src/cli/run-program.ts';

process.umask(0o077);
// Each run listens to the errors of both.
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
const write = process.stdout.write.bind(process.stdout);
for await (const line of createInterface({ input: process.stdin })) {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = (chunk: string | Uint8Array) => {
      said[name] += chunk.toString();
      return true;
    };
  const code = await runProgram(JSON.parse(line) as string[]);
  write(`${JSON.stringify({ code: process.exitCode || code, ...said })}\n`);
  process.exitCode = undefined;
}
