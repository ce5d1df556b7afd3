/** `npm run check`: types, lint, format and import order in one word. Prints what is wrong; exit code 1 when anything is. */
import { spawn } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkFloors } from './floors.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');

const run = (name: string, argv: readonly string[]): Promise<boolean> =>
  new Promise((done) => {
    const child = spawn(argv[0]!, argv.slice(1), { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => output.push(chunk));
    child.on('error', (error) => {
      console.log(`${name}: cannot start: ${error.message}`);
      done(false);
    });
    child.on('close', (code) => {
      if (code !== 0) process.stdout.write(Buffer.concat(output));
      console.log(`${name}: ${code === 0 ? 'ok' : 'FAILED'}`);
      done(code === 0);
    });
  });

const violations = checkFloors(root);
for (const line of violations) console.log(line);
console.log(`floors: ${violations.length === 0 ? 'ok' : 'FAILED'}`);
const results = await Promise.all([
  run('types', [resolve(root, 'node_modules/.bin/tsc'), '--noEmit', '-p', root]),
  run('lint and format', [resolve(root, 'node_modules/.bin/biome'), 'check', '--error-on-warnings', root]),
]);
process.exitCode = violations.length === 0 && results.every(Boolean) ? 0 : 1;
