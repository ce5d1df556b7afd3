/**
 * `npm test`: set-up of what the tests need (QEMU, the tiny guest), then every test file on node:test. Units and
 * features run side by side; the files that boot QEMU or drive kubectl run after them, three at a time: much of their time
 * is waiting, and every board has directories, ports and addresses of its own.
 * Arguments pick files: `npm test -- src/api test/features/patch.test.ts`. Two runs make the same choices, unless
 * CORACLE_SEED says otherwise (`test/testkit/seed.ts`).
 */
import { globSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { seed } from '../../test/testkit/seed.ts';
import { ensureClientBinaries } from '../setup/client-binaries.ts';
import { ensurePrograms, KUBECTL_PROGRAM, QEMU_PROGRAMS } from '../setup/host-packages.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
process.env['CORACLE_SEED'] = String(seed);
// Stripped and compiled sources are kept, where the program keeps its own: else each file compiles half the tree anew.
process.env['NODE_COMPILE_CACHE'] ??= join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'coracle/compile',
);
const seeded = pathToFileURL(resolve(root, 'test/testkit/seed-properties.ts')).href;
const wanted = process.argv.slice(2);
const all = globSync(['src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts', 'bench/**/*.test.ts'], {
  cwd: root,
}).sort();
const chosen = all.filter((file) => wanted.length === 0 || wanted.some((prefix) => file.startsWith(prefix)));
const heavy = (file: string): boolean =>
  /^(test\/(node|compat|faults|history|fuzz|tour|cli)|tools\/guest)\//.test(file);

/** Heavy files that take longest, longest first: begun last, one would run on alone. `npm test` prints how long each took. */
const LONGEST = [
  'test/node/post-copy.test.ts',
  'test/node/live-migration.test.ts',
  'test/fuzz/every-route.test.ts',
  'test/faults/drain-chaos.test.ts',
  'test/faults/control-plane-kill.test.ts',
  'test/faults/silent-node.test.ts',
  'test/node/drain.test.ts',
  'test/compat/kubectl.test.ts',
  'test/compat/kubectl-verbs.test.ts',
  'test/node/vm-lifecycle.test.ts',
  'test/cli/command-line.test.ts',
  'test/node/down.test.ts',
  'test/node/agent.test.ts',
  'test/node/live-update.test.ts',
  'test/faults/guests-survive.test.ts',
  'test/tour/readme-tour.test.ts',
  'tools/guest/guest.test.ts',
  'test/node/machine.test.ts',
  'test/node/volumes.test.ts',
  'test/tour/demo.test.ts',
];

/** Longest a test may take that names no limit of its own. */
const TEST_MS = 180_000;
/** Files whose time is printed at the end. */
const SHOWN = 15;

/** Runs `files` in this order, `concurrency` at a time; true when all passed. */
async function runFiles(files: readonly string[], concurrency: number): Promise<boolean> {
  if (files.length === 0) return true;
  const stream = run({
    files: files.map((file) => resolve(root, file)),
    concurrency,
    cwd: root,
    execArgv: [`--import=${seeded}`, `--test-timeout=${TEST_MS}`],
  });
  let passed = false;
  const seconds: [file: string, seconds: number][] = [];
  stream.on('test:summary', ({ file, success }) => {
    // One for each file, then one for all.
    if (file === undefined) passed = success;
  });
  stream.on('test:complete', ({ name, details }) => {
    const file = relative(root, name);
    if (files.includes(file)) seconds.push([file, details.duration_ms / 1000]);
  });
  await pipeline(stream.compose(spec), process.stdout, { end: false });
  seconds.sort((a, b) => b[1] - a[1]);
  for (const [file, taken] of seconds.slice(0, SHOWN)) console.log(`${taken.toFixed(1).padStart(7)} s ${file}`);
  return passed;
}

/** What the heavy tests drive: QEMU, kubectl, helm, the tiny guest. Where it cannot be had, those tests skip and say why. */
async function setUp(): Promise<void> {
  const note = (line: string): void => void process.stderr.write(`${line}\n`);
  const missing = ensurePrograms({ ...QEMU_PROGRAMS, ...KUBECTL_PROGRAM }, note);
  if (chosen.some((file) => file.startsWith('test/compat/'))) await ensureClientBinaries(note);
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
  const light = await runFiles(
    chosen.filter((file) => !heavy(file)),
    2,
  );
  const long = LONGEST.filter((file) => chosen.includes(file));
  const rest = await runFiles([...long, ...chosen.filter((file) => heavy(file) && !long.includes(file))], 3);
  process.exitCode = light && rest ? 0 : 1;
}
