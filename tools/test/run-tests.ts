/**
 * `npm test`: set-up of what the tests need (QEMU, the tiny guest), then the test files on node:test. The files that boot
 * QEMU or drive kubectl run three at a time: every board has directories, ports and addresses of its own. Much of their time
 * is waiting, in which the units and features run, many files to a process, and are reported when all of them are through.
 * `npm run test:full` (`--full`) runs the long ones that `npm test` leaves out: chaos, fuzzing, fault matrices.
 * `--record` keeps how long heavy files took, for the order of later runs.
 * Arguments pick files, long ones too: `npm test -- packages/cel test/features/patch.test.ts`. Two runs make the same choices,
 * unless CORACLE_SEED says otherwise (`test/testkit/seed.ts`).
 */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { distrustCache } from '../../packages/coracle/src/config/trusted-dir.ts';
import { seed } from '../../test/testkit/seed.ts';
import { bundle } from '../build/bundle.ts';
import { ensureClientBinaries } from '../setup/client-binaries.ts';
import {
  ensurePrograms,
  FIRMWARE_PROGRAMS,
  ISO_READER,
  KUBECTL_PROGRAM,
  QEMU_PROGRAMS,
} from '../setup/host-packages.ts';
import { writeBatches } from './batches.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
process.env['CORACLE_SEED'] = String(seed);
// Stripped and compiled sources are kept, where the program keeps its own: else each file compiles half the tree anew.
process.env['NODE_COMPILE_CACHE'] ??= join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'coracle/compile',
);
if (distrustCache(process.env['NODE_COMPILE_CACHE']) !== undefined) delete process.env['NODE_COMPILE_CACHE'];
const seeded = pathToFileURL(resolve(root, 'test/testkit/seed-properties.ts')).href;
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const full = process.argv.includes('--full');
const record = process.argv.includes('--record');

/** A line of its own in a test file that only `npm run test:full` runs, unless it is named. */
const LONG = /^\/\/ test:full: \S/m;

const all = globSync(['packages/*/src/**/*.test.ts', 'test/**/*.test.ts', 'tools/**/*.test.ts', 'bench/**/*.test.ts'], {
  cwd: root,
}).sort();
const existing = new Set(all);
const isLong = (file: string): boolean => LONG.test(readFileSync(resolve(root, file), 'utf8'));
const chosen = all.filter((file) =>
  wanted.length === 0
    ? isLong(file) === full
    : wanted.some((prefix) => file.startsWith(prefix)) && (!full || isLong(file)),
);
/** Those of `test/gitops` spend half of their time loading the server, but for the long ones. */
const heavy = (file: string): boolean =>
  /^(test\/(node|compat|faults|history|fuzz|tour|cli)|tools\/guest)\//.test(file) ||
  (full && file.startsWith('test/gitops/'));

/**
 * Seconds that heavy files took, as `--record` wrote them: those that take longest begin first, for begun last one would run
 * on alone. A file that is not in it is new, and takes as long as most.
 */
const DURATIONS = resolve(root, 'tools/test/durations.json');
const recorded = JSON.parse(readFileSync(DURATIONS, 'utf8')) as Readonly<Record<string, number>>;
const NEW_FILE_SECONDS = 30;
const durationOf = (file: string): number => recorded[file] ?? NEW_FILE_SECONDS;

/** Heavy files that wait for the light ones, when there is room for them. */
const AFTER_LIGHT = /^test\/(cli|tour|compat\/helm)/;

/** Light files that look at their whole process, what it loads or holds: they have one of their own. */
const ALONE = ['test/features/described-types.test.ts'];

/** Longest a test may take that names no limit of its own: ten times what the longest takes where nothing else runs. */
const TEST_MS = 600_000;
/** Files whose time is printed at the end. */
const SHOWN = 15;

/** How long each file took. */
const seconds: [file: string, seconds: number][] = [];
/** Tests that failed, with why: what they printed may stand far above. */
const failures: string[] = [];
/** Of what a failure says; states that were waited for in vain can be long. */
const FAILURE_CHARACTERS = 4_000;

/** Runs `modules` in this order, `concurrency` at a time; true when all passed. `printAtEnd`: in one piece, not as they end. */
async function runModules(
  modules: readonly string[],
  { concurrency, printAtEnd = false }: { readonly concurrency: number; readonly printAtEnd?: boolean },
): Promise<boolean> {
  if (modules.length === 0) return true;
  const stream = run({
    files: modules.map((module) => resolve(root, module)),
    concurrency,
    cwd: root,
    execArgv: [`--import=${seeded}`, `--test-timeout=${TEST_MS}`],
  });
  let passed = false;
  stream.on('test:summary', ({ file, success }) => {
    // One for each module, then one for all.
    if (file === undefined) passed = success;
  });
  stream.on('test:complete', ({ name, details }) => {
    // A file is a module of its own, or a suite of one.
    const file = relative(root, resolve(root, name));
    if (chosen.includes(file)) seconds.push([file, details.duration_ms / 1000]);
  });
  stream.on('test:fail', ({ name, file, details }) => {
    // Suites and files fail with their tests, which say why.
    if ((details.error as { failureType?: string }).failureType === 'subtestsFailed') return;
    const failure = `failed: ${relative(root, file ?? '')}: ${name}\n${reasonOf(details.error)}`;
    failures.push(failure);
    process.stderr.write(`${failure}\n`);
  });
  const report = stream.compose(spec);
  if (printAtEnd) process.stdout.write((await report.toArray()).join(''));
  else await pipeline(report, process.stdout, { end: false });
  return passed;
}

function reasonOf({ cause, message }: Error): string {
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause ?? message);
  return text.slice(0, FAILURE_CHARACTERS).replaceAll(/^/gm, '    ');
}

/** Takes modules one at a time, until none is left. */
async function runQueue(queue: string[]): Promise<boolean> {
  let passed = true;
  for (let module = queue.shift(); module !== undefined; module = queue.shift())
    passed = (await runModules([module], { concurrency: 1, printAtEnd: true })) && passed;
  return passed;
}

function summarize(): void {
  seconds.sort((a, b) => b[1] - a[1]);
  for (const [file, taken] of seconds.slice(0, SHOWN)) console.log(`${taken.toFixed(1).padStart(7)} s ${file}`);
  for (const failure of failures) console.log(failure);
  if (!record) return;
  const taken = seconds.filter(([file]) => heavy(file)).map(([file, each]) => [file, Math.round(each)] as const);
  const all = Object.entries({ ...recorded, ...Object.fromEntries(taken) }).filter(([file]) => existing.has(file));
  writeFileSync(DURATIONS, `${JSON.stringify(Object.fromEntries(all.sort()), undefined, 2)}\n`);
}

/** Builds the program for the tests that start it (`test/testkit/program.ts`); gives the folder to remove. */
async function buildProgram(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'coracle-built-'));
  await bundle(root, folder, { 'run-commands': 'test/cli/run-commands.ts' });
  process.env['CORACLE_TEST_BUILD'] = folder;
  return folder;
}

/** What the heavy tests drive: QEMU, kubectl, helm, the tiny guest. Where it cannot be had, those tests skip and say why. */
async function setUp(): Promise<void> {
  const note = (line: string): void => void process.stderr.write(`${line}\n`);
  const programs = { ...QEMU_PROGRAMS, ...FIRMWARE_PROGRAMS, ...KUBECTL_PROGRAM, ...ISO_READER };
  const missing = ensurePrograms(programs, note);
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
  const built = chosen.some(heavy) ? await buildProgram() : undefined;
  const light = chosen.filter((file) => !heavy(file));
  const batches = writeBatches(
    root,
    light.filter((file) => !ALONE.includes(file)),
  );
  const longestFirst = chosen.filter(heavy).sort((a, b) => durationOf(b) - durationOf(a));
  const beside = longestFirst.filter((file) => !AFTER_LIGHT.test(file));
  const queue = [
    ...batches.modules,
    ...light.filter((file) => ALONE.includes(file)),
    ...longestFirst.filter((file) => AFTER_LIGHT.test(file)),
  ];
  try {
    // One core's worth of light tests beside the heavy ones, which mostly wait; two when those are through. What comes late
    // takes the place of the light ones: the last of the others may run on alone for a minute. The long ones keep the processors
    // busy by themselves, and have to end in time.
    const besidePassed = runModules(beside, { concurrency: full ? 2 : 3 });
    const passed = await Promise.all([besidePassed, runQueue(queue), besidePassed.then(() => runQueue(queue))]);
    process.exitCode = passed.every(Boolean) ? 0 : 1;
  } finally {
    batches.remove();
    if (built !== undefined) rmSync(built, { recursive: true, force: true });
    summarize();
  }
}
