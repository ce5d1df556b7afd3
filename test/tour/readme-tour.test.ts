import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { test } from 'node:test';
import { isInstalled, KUBECTL_PROGRAM, QEMU_PROGRAMS } from '../../tools/setup/host-packages.ts';

const root = resolve(import.meta.dirname, '../..');
/** The port the tour's `up` takes. */
const PORT = 16443;

interface Block {
  readonly interactive: boolean;
  readonly script: string;
}

const tour: Block[] = [
  ...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```sh tour( interactive)?\n([\s\S]*?)^```$/gm),
].map(([, interactive, script]) => ({ interactive: interactive !== undefined, script: script! }));

/** The keyboard is the shell's file 3. */
const atTheKeyboard = (script: string): string =>
  `timeout 120 ${script} <&3 & echo "at the keyboard: $!"; wait $! || true`;
const SCREEN = 5901;

/** What a server of ours says first. */
const greeting = (port: number): Promise<string> =>
  new Promise((done, failed) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', failed);
    socket.once('data', (bytes) => {
      socket.destroy();
      done(bytes.toString());
    });
  });

/** Runs a script. The user presses Ctrl-] once the guest asks who is there, and Ctrl-C once the screen has been seen. */
function bash(
  script: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; output: string; screen: string | undefined }> {
  return new Promise((done) => {
    const child = spawn('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const keyboard = child.stdio[3] as Writable;
    keyboard.on('error', () => {}); // nobody reads once the script is over
    let output = '';
    let screen: string | undefined;
    let isLooking = false;
    const look = async (): Promise<void> => {
      isLooking = true;
      screen = await greeting(SCREEN).catch((error: Error) => error.message);
      process.kill(Number(/.*at the keyboard: (\d+)/s.exec(output)?.[1]), 'SIGINT');
    };
    const collect = (chunk: Buffer): void => {
      output = (output + chunk.toString()).slice(-65_536);
      if (!isLooking && /:5901 is the screen of/.test(output)) void look();
      if (!keyboard.writableEnded && /web login:/.test(output)) keyboard.end('\x1d');
    };
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', collect);
    // A guest that has asked before asks again at an Enter.
    const enter = setInterval(() => {
      if (/at the keyboard/.test(output) && !keyboard.writableEnded) keyboard.write('\n');
    }, 1000);
    child.on('close', (code) => {
      clearInterval(enter);
      done({ code, output, screen });
    });
  });
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((done) => {
    const server = createServer();
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });

// S-095: Every command of the README's tour works as printed.
test("every command of the README's tour works as printed", { timeout: 600_000 }, async (t) => {
  const missing = [...Object.keys({ ...QEMU_PROGRAMS, ...KUBECTL_PROGRAM }), 'ssh'].filter(
    (program) => !isInstalled(program),
  );
  if (missing.length > 0) return t.skip(`not on this host: ${missing.join(', ')}`);
  if (!(await isFree(PORT))) return t.skip(`port ${PORT} is taken`);
  assert.ok(tour.length >= 6, 'the README has a tour');
  const home = mkdtempSync(join(tmpdir(), 'coracle-tour-'));
  const picture = join(root, 'screen.png');
  const { KUBECONFIG: _own, XDG_DATA_HOME: _data, ...rest } = process.env;
  const env = {
    ...rest,
    HOME: home,
    // The guest's cache is the user's: building it anew is another test's business.
    XDG_CACHE_HOME: process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
  };
  t.after(async () => {
    await bash('./coracle down', env);
    rmSync(home, { recursive: true, force: true });
    for (const made of [join(root, 'tiny-guest'), picture]) rmSync(made, { recursive: true, force: true });
  });
  // One shell for all, as in one terminal: the export must reach the later commands.
  const script = tour
    .map(({ interactive, script: lines }) => (interactive ? atTheKeyboard(lines.trim()) : lines))
    .join('\n');
  const { code, output, screen } = await bash(script, env);
  assert.equal(code, 0, output);
  assert.match(output, /^ready in \d+\.\d+s {2}https:\/\/127\.0\.0\.1:16443 {2}kubeconfig .*\/kubeconfig$/m);
  assert.match(output, /web login:/, 'the console');
  assert.match(output, /^hello, tiny on web$/m);
  assert.match(output, /virtualmachine\.kubevirt\.io\/web\s+\S+\s+Running\s+True/);
  assert.match(output, /^virtctl stop web -n default$/m);
  assert.match(output, /^hostname: web$/m, 'the second machine reaches the first by name');
  assert.match(screen ?? '', /^RFB 003\./);
  assert.equal(readFileSync(picture).subarray(1, 4).toString(), 'PNG');
  assert.match(output, /^kept$/m, 'what was written outlives a restart');
  assert.match(output, /^default +client +Running /m);
  assert.match(output, /^stopped$/m);
});
