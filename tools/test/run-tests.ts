/**
 * `npm test`: set-up of what the tests need (QEMU, the tiny guest), then every test file on node:test. Units and
 * features run side by side; the files that boot QEMU or drive kubectl run after them, one at a time.
 * Arguments pick files: `npm test -- src/api test/features/patch.test.ts`.
 */
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensurePrograms, KUBECTL_PROGRAM, QEMU_PROGRAMS } from '../setup/host-packages.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const wanted = process.argv.slice(2);
const all = globSync(['src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts', 'bench/**/*.test.ts'], {
  cwd: root,
}).sort();
const chosen = all.filter((file) => wanted.length === 0 || wanted.some((prefix) => file.startsWith(prefix)));
const heavy = (file: string): boolean => /^(test\/(node|compat|faults|tour|cli)|tools\/guest)\//.test(file);

const run = (files: readonly string[], concurrency: number): Promise<number> =>
  new Promise((done) => {
    if (files.length === 0) return done(0);
    const child = spawn(
      process.execPath,
      ['--test', `--test-concurrency=${concurrency}`, '--test-timeout=180000', '--test-reporter=spec', ...files],
      { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    );
    child.on('close', (code) => done(code ?? 1));
  });

/** What the heavy tests drive: QEMU, kubectl, the tiny guest. Where it cannot be had, those tests skip and say why. */
async function setUp(): Promise<void> {
  const note = (line: string): void => void process.stderr.write(`${line}\n`);
  const missing = ensurePrograms({ ...QEMU_PROGRAMS, ...KUBECTL_PROGRAM }, note);
  if (missing.some((name) => Object.values(QEMU_PROGRAMS).includes(name))) return;
  const { ensureGuest } = await import('../guest/build-guest.ts');
  await ensureGuest({ log: (line: string) => note(`set-up: ${line}`) }).catch((error: Error) =>
    note(`set-up: the tiny guest cannot be built here: ${error.message}`),
  );
}

if (chosen.length === 0) {
  console.error(`error: no test file begins with ${wanted.join(', ')}`);
  process.exitCode = 1;
} else {
  if (chosen.some(heavy)) await setUp();
  const light = await run(
    chosen.filter((file) => !heavy(file)),
    2,
  );
  const rest = await run(chosen.filter(heavy), 1);
  process.exitCode = light === 0 && rest === 0 ? 0 : 1;
}
