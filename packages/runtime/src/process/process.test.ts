import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../clock/clock.ts';
import { findProcesses, identify, isRunning, parseStat, signalProcess } from './identity.ts';
import { run } from './run.ts';
import { spawnDetached } from './spawn-detached.ts';
import { terminate } from './terminate.ts';

const signal = new AbortController().signal;
const node = process.execPath;
const script = (code: string): string[] => [node, '-e', code];

// S-111: No shell between us and a tool, no inherited environment.
test('run() returns stdout, and passes arguments untouched by any shell', async () => {
  const hostile = '$(touch /tmp/x); `id` "\'\n*';
  const result = await run([node, '-e', 'process.stdout.write(process.argv[1])', hostile], {
    signal,
    timeoutMs: 20_000,
  });
  assert.equal(result.ok, true);
  assert.equal(new TextDecoder().decode(result.stdout), hostile);
});

test('run() reports each way to fail as a value', async () => {
  const aborter = new AbortController();
  setTimeout(() => aborter.abort(), 100);
  const cases: [string, Awaited<ReturnType<typeof run>>, string][] = [
    [
      'exit',
      await run(script('console.error("why"); process.exit(3)'), { signal, timeoutMs: 20_000 }),
      'exit code 3: why',
    ],
    ['spawn', await run(['coracle-no-such-tool'], { signal, timeoutMs: 1000 }), 'not found in PATH'],
    ['spawn', await run([node, 'a\0b'], { signal, timeoutMs: 1000 }), 'NUL'],
    ['timeout', await run(script('setInterval(()=>{},1000)'), { signal, timeoutMs: 100 }), 'longer than 100 ms'],
    [
      'aborted',
      await run(script('setInterval(()=>{},1000)'), { signal: aborter.signal, timeoutMs: 20_000 }),
      'cancelled',
    ],
    ['aborted', await run(script('0'), { signal: AbortSignal.abort(), timeoutMs: 20_000 }), 'cancelled'],
    [
      'output',
      await run(script('process.stdout.write("x".repeat(100000))'), { signal, timeoutMs: 20_000, maxStdout: 1000 }),
      'more than 1000 bytes',
    ],
  ];
  for (const [reason, result, text] of cases) {
    assert.equal(result.ok, false);
    if (result.ok) continue;
    assert.equal(result.reason, reason);
    assert.ok(result.message.includes(text), `${reason}: ${result.message}`);
  }
});

// S-111
test('run() inherits no environment beyond PATH and locale, and feeds stdin', async () => {
  process.env['CORACLE_TEST_SECRET'] = 'canary';
  const result = await run(
    script('process.stdin.on("data",d=>process.stdout.write(d+String(process.env.CORACLE_TEST_SECRET)))'),
    {
      signal,
      timeoutMs: 20_000,
      input: new TextEncoder().encode('in:'),
    },
  );
  delete process.env['CORACLE_TEST_SECRET'];
  assert.equal(new TextDecoder().decode(result.stdout), 'in:undefined');
});

// S-822: What a guest makes QEMU say, or writes to its console, takes two MiB of disk each at most, also while no agent
//   runs.
test('a detached process that floods its output fills no disk; what it said last is kept, also while nobody looks', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-flood-'));
  t.after(() => rm(dir, { recursive: true }));
  const maxOutputBytes = 64 * 1024;
  // 12 MB and a last word without a newline; nobody of ours takes part in it.
  const flood =
    'yes "virtio: zero sized buffers are not allowed" | head -c 3000000 >&2; printf "the last of it"; exit 3';
  const child = await spawnDetached(['sh', '-c', flood], {
    cwd: dir,
    outputFile: join(dir, 'out'),
    maxOutputBytes,
  });
  let most = 0;
  const sizes = async (): Promise<number> => {
    const all = await Promise.all(
      ['out', 'out.1'].map((name) =>
        stat(join(dir, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    );
    return all.reduce((sum, size) => sum + size, 0);
  };
  let ended = false;
  void child.exited.then(() => {
    ended = true;
  });
  while (!ended) {
    most = Math.max(most, await sizes());
    await systemClock.sleep(5, signal);
  }
  assert.deepEqual(await child.exited, { code: 3, signal: null });
  assert.ok(most > 0 && most <= 2 * maxOutputBytes, `${most} bytes`);
  assert.ok((await sizes()) <= 2 * maxOutputBytes);
  const text = await readFile(join(dir, 'out'), 'utf8');
  assert.match(text, /the last of it$/);
  assert.equal((await stat(join(dir, 'out'))).mode & 0o777, 0o600);
  assert.deepEqual((await readdir(dir)).sort(), ['out', 'out.1']);
  // The process behind the pipe has ended with it.
  assert.deepEqual(await findProcesses((argv) => argv.includes(join(dir, 'out'))), []);
});

test('parseStat() survives a command name with parentheses and spaces', () => {
  const tail = Array.from({ length: 49 }, (_, i) => String(i + 4)).join(' ');
  assert.deepEqual(parseStat(`12 (a) b) (c) S ${tail}`), { state: 'S', startTime: '22' });
  assert.equal(parseStat('garbage'), undefined);
});

test('processes are looked for by many at once in one look, and each is shown what runs by then', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-process-'));
  const marker = `many-${process.pid}`;
  let shown = new Set<readonly string[]>();
  const find = () =>
    findProcesses((argv) => {
      if (argv.includes(marker)) shown.add(argv);
      return argv.includes(marker);
    });
  // Under way when the process is started: it does not answer for it.
  const before = find();
  const child = await spawnDetached([node, '-e', 'setInterval(()=>{},1000)', marker], {
    cwd: dir,
    outputFile: join(dir, 'out'),
  });
  try {
    await before;
    shown = new Set();
    const found = await Promise.all(Array.from({ length: 20 }, find));
    for (const pids of found) assert.deepEqual(pids, [child.identity.pid]);
    assert.equal(shown.size, 1, 'one look for all of them');
    const during = find();
    const [one, other] = await Promise.all([during, new Promise((wake) => setImmediate(wake)).then(find)]);
    assert.deepEqual([one, other], [[child.identity.pid], [child.identity.pid]]);
  } finally {
    await terminate(child.identity, { clock: systemClock, signal, graceMs: 200 });
  }
  assert.deepEqual(await find(), []);
  await rm(dir, { recursive: true });
});

// S-063: A process is distinguished from another that reuses its pid.
test('a detached process is found, distinguished from a reused pid, and ended by the ladder', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'coracle-process-'));
  const marker = `marker-${process.pid}`;
  const child = await spawnDetached(
    [node, '-e', 'process.on("SIGTERM",()=>{});console.log("up");setInterval(()=>{},1000)', marker],
    { cwd: dir, outputFile: join(dir, 'out') },
  );
  try {
    assert.deepEqual(await findProcesses((argv) => argv.includes(marker)), [child.identity.pid]);
    assert.equal(await isRunning(child.identity), true);
    const reused = { ...child.identity, startTime: '1' };
    assert.equal(await isRunning(reused), false);
    assert.equal(await signalProcess(reused, 'SIGKILL'), false);
    assert.equal(await isRunning({ ...child.identity, bootId: 'another boot' }), false);
    while (!(await readFile(join(dir, 'out'), 'utf8')).includes('up')) await systemClock.sleep(20, signal);
  } finally {
    await terminate(child.identity, { clock: systemClock, signal, graceMs: 200 });
  }
  assert.deepEqual(await child.exited, { code: null, signal: 'SIGKILL' });
  assert.equal(await identify(child.identity.pid), undefined);
  await rm(dir, { recursive: true });
});
