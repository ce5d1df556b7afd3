/** `coracle doctor`: what this host offers and lacks, each with the mend. */
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { run } from '../../base/process/run.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';
import { isOnPath } from './on-path.ts';

type Verdict = 'PASS' | 'WARN' | 'FAIL';

interface Finding {
  readonly check: string;
  readonly verdict: Verdict;
  readonly detail: string;
  readonly mend?: string;
}

const GIB = 1024 ** 3;
const TOOL_MS = 5_000;
const DEFAULT_PORT = 16443;

/** Exit code 1 when a check fails; warnings leave it 0. */
export async function doctor({ flags, environment, print, signal }: CommandContext): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const findings = await Promise.all([
    acceleration(signal),
    tool('QEMU', ['qemu-system-x86_64', '--version'], { missing: 'FAIL', install: 'qemu-system-x86', signal }),
    tool('qemu-img', ['qemu-img', '--version'], { missing: 'FAIL', install: 'qemu-utils', signal }),
    tool('xorriso', ['xorriso', '--version'], { missing: 'WARN', install: 'xorriso', signal }),
    tool('git', ['git', '--version'], { missing: 'WARN', install: 'git', signal }),
    disk(dir.root),
    port(dir),
  ]);
  if (flags['json'] === true) print(JSON.stringify(findings));
  else {
    const width = Math.max(...findings.map(({ check }) => check.length)) + 2;
    print(
      findings
        .map(
          ({ verdict, check, detail, mend }) =>
            `${verdict}  ${check.padEnd(width)}${detail}${mend ? `\n      ${''.padEnd(width)}mend: ${mend}` : ''}`,
        )
        .join('\n'),
    );
  }
  return findings.some(({ verdict }) => verdict === 'FAIL') ? 1 : 0;
}

async function tool(
  check: string,
  argv: readonly string[],
  options: { readonly missing: Verdict; readonly install: string; readonly signal: AbortSignal },
): Promise<Finding> {
  if (!isOnPath(argv[0]!))
    return {
      check,
      verdict: options.missing,
      detail: 'not found in PATH',
      mend: `install ${options.install} (for example: sudo apt-get install ${options.install})`,
    };
  const result = await run(argv, { timeoutMs: TOOL_MS, signal: options.signal });
  if (!result.ok)
    return {
      check,
      verdict: options.missing,
      detail: `does not run: ${result.message}`,
      mend: `reinstall ${options.install}`,
    };
  return {
    check,
    verdict: 'PASS',
    detail: versionOf(new TextDecoder().decode(result.stdout)),
  };
}

async function acceleration(signal: AbortSignal): Promise<Finding> {
  const check = 'acceleration';
  if (!isOnPath('qemu-system-x86_64')) return { check, verdict: 'WARN', detail: 'cannot tell without QEMU' };
  const { probeKvm } = await import('../../node/qemu/kvm-probe.ts');
  const directory = mkdtempSync(join(tmpdir(), 'coracle-doctor-'));
  const { works, why } = await probeKvm('qemu-system-x86_64', { directory, signal }).finally(() =>
    rmSync(directory, { recursive: true, force: true }),
  );
  return works
    ? { check, verdict: 'PASS', detail: 'kvm runs guest code' }
    : {
        check,
        verdict: 'WARN',
        detail: `emulation only (${firstClause(why)}); guests run several times slower`,
        mend: 'enable virtualisation in the firmware and give this user access to /dev/kvm',
      };
}

function disk(root: string): Finding {
  const check = 'disk';
  for (let place = root; ; place = dirname(place)) {
    try {
      const { bavail, bsize } = statfsSync(place);
      const free = (bavail * bsize) / GIB;
      const detail = `${free.toFixed(1)} GiB free at ${place}`;
      if (free < 0.5) return { check, verdict: 'FAIL', detail, mend: 'free some space, or choose another --data-dir' };
      return free < 5
        ? { check, verdict: 'WARN', detail, mend: 'images and guest disks will want more' }
        : { check, verdict: 'PASS', detail };
    } catch {
      if (place === dirname(place)) return { check, verdict: 'FAIL', detail: `${root} cannot be looked at` };
    }
  }
}

async function port(dir: ReturnType<typeof dataDirAt>): Promise<Finding> {
  const check = 'port';
  const running = await findRunning(dir);
  if (running) return { check, verdict: 'PASS', detail: `${running.url} (running)` };
  const taken = await new Promise<boolean>((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(true));
    server.listen(DEFAULT_PORT, '127.0.0.1', () => server.close(() => resolve(false)));
  });
  return taken
    ? { check, verdict: 'WARN', detail: `${DEFAULT_PORT} is taken`, mend: 'start with --port N, or --port 0' }
    : { check, verdict: 'PASS', detail: `${DEFAULT_PORT} is free` };
}

const versionOf = (output: string): string =>
  /(?:version\s+|xorriso\s+)(\d[\w.]*)/.exec(output)?.[1] ?? output.split('\n')[0]!.trim();

/** Why, without the tool's own chatter: up to the first line's second colon. */
const firstClause = (why: string): string => why.split('\n')[0]!.split(': ').slice(0, 2).join(': ');
