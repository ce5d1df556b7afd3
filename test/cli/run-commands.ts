/** Runs the command line for the list of words on each line of its standard input, and writes what each said. See `workspace.ts`. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createInterface } from 'node:readline';
import { runProgram } from '../../packages/coracle/src/cli/run-program.ts';

process.umask(0o077);
// Each run listens to its signals, and to the errors of its output.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);
/** What the command has said that writes. */
const saying = new AsyncLocalStorage<{ stdout: string; stderr: string }>();
const write = process.stdout.write.bind(process.stdout);
for (const name of ['stdout', 'stderr'] as const) {
  process[name].write = (chunk: string | Uint8Array) => {
    saying.getStore()![name] += chunk.toString();
    return true;
  };
}
for await (const line of createInterface({ input: process.stdin })) {
  const [id, argv] = JSON.parse(line) as [id: number, argv: string[]];
  const said = { stdout: '', stderr: '' };
  void saying.run(said, async () => {
    const code = await runProgram(argv);
    write(`${JSON.stringify([id, { code, ...said }])}\n`);
  });
}
