/**
 * `npm run check`: types, lint, format, import order, the words of docs/glossary.md, READMEs and the pages
 * that are printed from the tests. Prints what is wrong; exit code 1 when anything is.
 */
import { spawn } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkDeclaredTypes } from '../descriptors/declare-types.ts';
import { checkDocs } from '../docs/docs.ts';
import { linesByPackage, linesText, NEWER_ROOMS, sinceText, YOUNGER_FILES } from './lines.ts';
import { checkPackages } from './packages.ts';
import { checkReadmes } from './readmes.ts';
import { checkWords } from './words.ts';

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

const inProcess = (name: string, violations: readonly string[]): boolean => {
  for (const line of violations) console.log(line);
  console.log(`${name}: ${violations.length === 0 ? 'ok' : 'FAILED'}`);
  return violations.length === 0;
};

console.log(`lines: ${linesText(linesByPackage(root))}`);
console.log(`lines in the rooms of 6f59d08e: ${sinceText(linesByPackage(root, NEWER_ROOMS))}`);
console.log(`without younger files: ${sinceText(linesByPackage(root, [...NEWER_ROOMS, ...YOUNGER_FILES]))}`);
const isOrdered = inProcess('packages', checkPackages(root));
const isPlain = inProcess('words', checkWords(root));
const isReadable = inProcess('readmes', checkReadmes(root));
const isDeclared = inProcess('declared types', checkDeclaredTypes(root));
const isPrinted = inProcess('docs', checkDocs(root));
const results = await Promise.all([
  run('types', [resolve(root, 'node_modules/.bin/tsc'), '--noEmit', '-p', root]),
  run('lint and format', [resolve(root, 'node_modules/.bin/biome'), 'check', '--error-on-warnings', root]),
]);
process.exitCode = isOrdered && isPlain && isReadable && isDeclared && isPrinted && results.every(Boolean) ? 0 : 1;
