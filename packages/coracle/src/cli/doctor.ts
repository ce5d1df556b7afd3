/** `coracle doctor`: what this host offers and lacks, and machines that are one to others, each with the way out. */
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { findSharedUuids, machineText, type SharedUuid } from '@coracle/kubevirt/rules/identity/shared-uuids';
import { isProgram } from '@coracle/runtime/process/program';
import { run } from '@coracle/runtime/process/run';
import { clusterFrom } from '../config/cluster.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';

type Verdict = 'PASS' | 'WARN' | 'FAIL';

interface Finding {
  readonly check: string;
  readonly verdict: Verdict;
  readonly detail: string;
  readonly remedy?: string;
}

const GIB = 1024 ** 3;
const TOOL_MS = 5_000;
const DEFAULT_PORT = 16443;
/** A port and an address that nothing else uses, to see whether this user may take low ports. */
const [LOW_PORT, LOW_ADDRESS] = [1023, '127.127.127.127'];

/** Exit code 1 when a check fails; warnings leave it 0. */
export async function doctor({ flags, environment, print, signal }: CommandContext): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const findings = await Promise.all([
    acceleration(signal),
    tool('QEMU', ['qemu-system-x86_64', '--version'], { missing: 'FAIL', install: 'qemu-system-x86', signal }),
    tool('qemu-img', ['qemu-img', '--version'], { missing: 'FAIL', install: 'qemu-utils', signal }),
    tool('xorriso', ['xorriso', '--version'], { missing: 'WARN', install: 'xorriso', signal }),
    firmware(),
    tool('TPM emulator', ['swtpm', '--version'], { missing: 'WARN', install: 'swtpm', signal }),
    tool('kubectl', ['kubectl', 'version', '--client'], { missing: 'WARN', install: 'kubectl', signal }),
    disk(dir.root),
    port(dir),
    lowPorts(),
    firmwareUuids(dir, environment),
  ]);
  if (flags['json'] === true) print(JSON.stringify(findings));
  else {
    const width = Math.max(...findings.map(({ check }) => check.length)) + 2;
    print(
      findings
        .map(
          ({ verdict, check, detail, remedy }) =>
            `${verdict}  ${check.padEnd(width)}${detail}${remedy ? `\n      ${''.padEnd(width)}remedy: ${remedy}` : ''}`,
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
  if (!isProgram(argv[0]!))
    return {
      check,
      verdict: options.missing,
      detail: 'not found in PATH',
      remedy: `install ${options.install} (for example: sudo apt-get install ${options.install})`,
    };
  const result = await run(argv, { timeoutMs: TOOL_MS, signal: options.signal });
  if (!result.ok)
    return {
      check,
      verdict: options.missing,
      detail: `does not run: ${result.message}`,
      remedy: `reinstall ${options.install}`,
    };
  return {
    check,
    verdict: 'PASS',
    detail: versionOf(new TextDecoder().decode(result.stdout)),
  };
}

async function acceleration(signal: AbortSignal): Promise<Finding> {
  const check = 'acceleration';
  if (!isProgram('qemu-system-x86_64')) return { check, verdict: 'WARN', detail: 'cannot tell without QEMU' };
  const { CANNOT_OPEN, probeKvm } = await import('@coracle/node-agent/qemu/kvm-probe');
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
        remedy: kvmRemedy({ exists: existsSync('/dev/kvm'), opens: why !== CANNOT_OPEN }),
      };
}

/** What to do about a KVM that runs no guest: each obstacle has its own remedy. */
export function kvmRemedy({ exists, opens }: { readonly exists: boolean; readonly opens: boolean }): string {
  if (!exists)
    return 'enable virtualisation in the firmware (in a virtual machine: nested virtualisation, on its host), and load kvm_intel or kvm_amd';
  if (!opens) return 'give this user access to /dev/kvm: sudo usermod -aG kvm "$USER", then log in again';
  return '/dev/kvm opens, but the processor that it is given runs no guest code: where this host is a virtual machine, enable nested virtualisation on its host, or use a host that has it; permissions are not the trouble';
}

async function firmware(): Promise<Finding> {
  const check = 'UEFI firmware';
  const { efiOf } = await import('@coracle/node-agent/qemu/node-facts');
  const { efi } = await efiOf();
  return efi
    ? { check, verdict: 'PASS', detail: efi.code }
    : {
        check,
        verdict: 'WARN',
        detail: 'OVMF not found; guests that ask for UEFI boot by BIOS',
        remedy: 'install ovmf (for example: sudo apt-get install ovmf)',
      };
}

/** Guests need none of them: only who asks for a port under its own number (coracle.dev/host-ports) may need one. */
async function lowPorts(): Promise<Finding> {
  const check = 'low ports';
  const code = await new Promise<string | undefined>((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    server.listen(LOW_PORT, LOW_ADDRESS, () => server.close(() => resolve(undefined)));
  });
  return code === 'EACCES'
    ? {
        check,
        verdict: 'WARN',
        detail:
          'this user may take no port below 1024; guests are reached by high ones, coracle.dev/host-ports by none below',
        remedy:
          'sudo sysctl net.ipv4.ip_unprivileged_port_start=0, or run as root; nothing where no machine asks for low ports',
      }
    : { check, verdict: 'PASS', detail: 'ports below 1024 can be given to guests that ask for them' };
}

function disk(root: string): Finding {
  const check = 'disk';
  for (let place = root; ; place = dirname(place)) {
    try {
      const { bavail, bsize } = statfsSync(place);
      const free = (bavail * bsize) / GIB;
      const detail = `${free.toFixed(1)} GiB free at ${place}`;
      if (!isWritable(place))
        return { check, verdict: 'FAIL', detail: `${place} cannot be written to`, remedy: 'choose another --data-dir' };
      if (free < 0.5)
        return { check, verdict: 'FAIL', detail, remedy: 'free some space, or choose another --data-dir' };
      return free < 5
        ? { check, verdict: 'WARN', detail, remedy: 'images and guest disks will want more' }
        : { check, verdict: 'PASS', detail };
    } catch {
      if (place === dirname(place)) return { check, verdict: 'FAIL', detail: `${root} cannot be looked at` };
    }
  }
}

function isWritable(place: string): boolean {
  try {
    accessSync(place, constants.W_OK);
    return true;
  } catch {
    return false;
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
    ? { check, verdict: 'WARN', detail: `${DEFAULT_PORT} is taken`, remedy: 'start with --port N, or --port 0' }
    : { check, verdict: 'PASS', detail: `${DEFAULT_PORT} is free` };
}

/** Machines of the running server that share a firmware UUID. */
async function firmwareUuids(
  dir: ReturnType<typeof dataDirAt>,
  environment: CommandContext['environment'],
): Promise<Finding> {
  const check = 'firmware UUIDs';
  if (!(await findRunning(dir))) return { check, verdict: 'PASS', detail: 'not looked at: no server runs' };
  try {
    await using cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
    const [vms, vmis] = await Promise.all([
      cluster.client.list(VIRTUAL_MACHINES),
      cluster.client.list(VIRTUAL_MACHINE_INSTANCES),
    ]);
    return uuidFinding(findSharedUuids(vms.items, vmis.items), vms.items.length);
  } catch (error) {
    return { check, verdict: 'WARN', detail: `cannot ask the server: ${(error as Error).message.split('\n')[0]}` };
  }
}

/** Shared UUIDs that are listed; `coracle identity audit` lists all. */
const MOST_UUIDS = 10;

export function uuidFinding(shared: readonly SharedUuid[], machines: number): Finding {
  const check = 'firmware UUIDs';
  if (shared.length === 0)
    return { check, verdict: 'PASS', detail: `no two of ${machines} virtual machines have the same` };
  const listed = shared
    .slice(0, MOST_UUIDS)
    .map(({ uuid, machines: all }) => `${uuid} is that of ${all.map(machineText).join(' and ')}`);
  const rest = shared.length - listed.length;
  if (rest > 0) listed.push(`${rest} more (coracle identity audit)`);
  return {
    check,
    verdict: 'WARN',
    detail: listed.join('; '),
    remedy: `give all but one of each another: kubectl patch vm NAME -n NAMESPACE --type merge -p '{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":"'$(cat /proc/sys/kernel/random/uuid)'"}}}}}}', then restart it; its guest will want its licences anew`,
  };
}

const versionOf = (output: string): string =>
  /(?:version:?,?\s+v?|xorriso\s+)(\d[\w.]*)/i.exec(output)?.[1] ?? output.split('\n')[0]!.trim();

/** Why, without the tool's own chatter: up to the first line's second colon. */
const firstClause = (why: string): string => why.split('\n')[0]!.split(': ').slice(0, 2).join(': ');
