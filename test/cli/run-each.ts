/** Runs the command line once for each list of words on its standard input, and writes what each said. See `workspace.ts`. */
import { text } from 'node:stream/consumers';
import { runProgram } from '../../packages/coracle/src/cli/run-program.ts';
import type { Outcome } from './workspace.ts';

const outcomes: Outcome[] = [];
// Each run listens to the errors of both.
for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
const write = process.stdout.write.bind(process.stdout);
for (const argv of JSON.parse(await text(process.stdin)) as string[][]) {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    process[name].write = (chunk: string | Uint8Array) => {
      said[name] += chunk.toString();
      return true;
    };
  outcomes.push({ code: await runProgram(argv), ...said });
}
write(JSON.stringify(outcomes));
