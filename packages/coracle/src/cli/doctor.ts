/** `coracle doctor`: what this host offers and lacks, and machines that are one to others, each with the way out. */
import { accessSync, constants, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import { findSharedUuids, machineText, type SharedUuid } from '@coracle/kubevirt/rules/identity/shared-uuids';
import { isProgram } from '@coracle/runtime/process/program';
import { run } from '@coracle/runtime/process/run';
import { clusterFrom } from '../config/cluster.ts';
import { type DataDir, dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { findRunning } from '../config/running.ts';
import { type CommandContext, textFlag } from './command.ts';
import { listenError } from './listen-error.ts';
import { DEFAULT_PORT } from './up-flags.ts';

interface Outcome {
  readonly verdict: 'PASS' | 'WARN' | 'FAIL';
  readonly detail: string;
  readonly remedy?: string;
}

const pass = (detail: string): Outcome => ({ verdict: 'PASS', detail });
const warn = (detail: string, remedy?: string): Outcome => ({ verdict: 'WARN', detail, ...(remedy && { remedy }) });
const fail = (detail: string, remedy?: string): Outcome => ({ ...warn(detail, remedy), verdict: 'FAIL' });

const GIB = 1024 ** 3;
const TOOL_MS = 5_000;
/** A port and an address that nothing else uses, to see whether this user may take low ports. */
const [LOW_PORT, LOW_ADDRESS] = [1023, '127.127.127.127'];

/** Exit code 1 when a check fails; warnings leave it 0. */
export async function doctor({ flags, environment, print, signal }: CommandContext): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const checks: Readonly<Record<string, Promise<Outcome> | Outcome>> = {
    acceleration: acceleration(signal),
    QEMU: tool(['qemu-system-x86_64', '--version'], { missing: fail, install: 'qemu-system-x86', signal }),
    'qemu-img': tool(['qemu-img', '--version'], { missing: fail, install: 'qemu-utils', signal }),
    'UEFI firmware': firmware(),
    'TPM emulator': tool(['swtpm', '--version'], { missing: warn, install: 'swtpm', signal }),
    kubectl: tool(['kubectl', 'version', '--client'], { missing: warn, install: 'kubectl', signal }),
    disk: disk(dir.root),
    port: port(dir),
    'low ports': lowPorts(),
    'firmware UUIDs': firmwareUuids(dir, environment),
  };
  const findings = await Promise.all(
    Object.entries(checks).map(async ([check, outcome]) => ({ check, ...(await outcome) })),
  );
  if (flags['json'] === true) print(JSON.stringify(findings));
  else {
    const width = Math.max(...findings.map(({ check }) => check.length)) + 2;
    const lines = findings.flatMap(({ verdict, check, detail, remedy }) => [
      `${verdict}  ${check.padEnd(width)}${detail}`,
      ...(remedy ? [`      ${''.padEnd(width)}remedy: ${remedy}`] : []),
    ]);
    print(lines.join('\n'));
  }
  return findings.some(({ verdict }) => verdict === 'FAIL') ? 1 : 0;
}

async function tool(
  argv: readonly string[],
  options: { readonly missing: typeof warn; readonly install: string; readonly signal: AbortSignal },
): Promise<Outcome> {
  const { missing, install, signal } = options;
  if (!isProgram(argv[0]!))
    return missing('not found in PATH', `install ${install} (for example: sudo apt-get install ${install})`);
  const result = await run(argv, { timeoutMs: TOOL_MS, signal });
  return result.ok
    ? pass(versionOf(new TextDecoder().decode(result.stdout)))
    : missing(`does not run: ${result.message}`, `reinstall ${install}`);
}

async function acceleration(signal: AbortSignal): Promise<Outcome> {
  if (!isProgram('qemu-system-x86_64')) return warn('cannot tell without QEMU');
  const { CANNOT_OPEN, probeKvm } = await import('@coracle/node-agent/qemu/kvm-probe');
  const directory = mkdtempSync(join(tmpdir(), 'coracle-doctor-'));
  const { works, why } = await probeKvm('qemu-system-x86_64', { directory, signal }).finally(() =>
    rmSync(directory, { recursive: true, force: true }),
  );
  return works
    ? pass('kvm runs guest code')
    : warn(
        `emulation only (${firstClause(why)}); guests run several times slower`,
        kvmRemedy({ exists: existsSync('/dev/kvm'), opens: why !== CANNOT_OPEN }),
      );
}

/** What to do about a KVM that runs no guest: each obstacle has its own remedy. */
export function kvmRemedy({ exists, opens }: { readonly exists: boolean; readonly opens: boolean }): string {
  if (!exists)
    return 'enable virtualisation in the firmware (in a virtual machine: nested virtualisation, on its host), and load kvm_intel or kvm_amd';
  if (!opens) return 'give this user access to /dev/kvm: sudo usermod -aG kvm "$USER", then log in again';
  return '/dev/kvm opens, but the processor that it is given runs no guest code: where this host is a virtual machine, enable nested virtualisation on its host, or use a host that has it; permissions are not the trouble';
}

async function firmware(): Promise<Outcome> {
  const { efiOf } = await import('@coracle/node-agent/qemu/node-facts');
  const { efi } = await efiOf();
  return efi
    ? pass(efi.code)
    : warn(
        'OVMF not found; guests that ask for UEFI boot by BIOS',
        'install ovmf (for example: sudo apt-get install ovmf)',
      );
}

/** Guests need none of them: only who asks for a port under its own number (coracle.dev/host-ports) may need one. */
async function lowPorts(): Promise<Outcome> {
  return (await listenError(LOW_PORT, LOW_ADDRESS)) === 'EACCES'
    ? warn(
        'this user may take no port below 1024; guests are reached by high ones, coracle.dev/host-ports by none below',
        'sudo sysctl net.ipv4.ip_unprivileged_port_start=0, or run as root; nothing where no machine asks for low ports',
      )
    : pass('ports below 1024 can be given to guests that ask for them');
}

function disk(root: string): Outcome {
  for (let place = root; ; place = dirname(place)) {
    try {
      const { bavail, bsize } = statfsSync(place);
      const free = (bavail * bsize) / GIB;
      const detail = `${free.toFixed(1)} GiB free at ${place}`;
      if (!isWritable(place)) return fail(`${place} cannot be written to`, 'choose another --data-dir');
      if (free < 0.5) return fail(detail, 'free some space, or choose another --data-dir');
      return free < 5 ? warn(detail, 'images and guest disks will want more') : pass(detail);
    } catch {
      if (place === dirname(place)) return fail(`${root} cannot be looked at`);
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

async function port(dir: DataDir): Promise<Outcome> {
  const running = await findRunning(dir);
  if (running) return pass(`${running.url} (running)`);
  return (await listenError(DEFAULT_PORT, '127.0.0.1')) === undefined
    ? pass(`${DEFAULT_PORT} is free`)
    : warn(`${DEFAULT_PORT} is taken`, 'start with --port N, or --port 0');
}

/** Machines of the running server that share a firmware UUID. */
async function firmwareUuids(dir: DataDir, environment: CommandContext['environment']): Promise<Outcome> {
  if (!(await findRunning(dir))) return pass('not looked at: no server runs');
  try {
    await using cluster = await clusterFrom({ flags: { 'data-dir': dir.root }, environment });
    const [vms, vmis] = await Promise.all([
      cluster.client.list(VIRTUAL_MACHINES),
      cluster.client.list(VIRTUAL_MACHINE_INSTANCES),
    ]);
    return uuidFinding(findSharedUuids(vms.items, vmis.items), vms.items.length);
  } catch (error) {
    return warn(`cannot ask the server: ${(error as Error).message.split('\n')[0]}`);
  }
}

/** Shared UUIDs that are listed; `coracle identity audit` lists all. */
const MOST_UUIDS = 10;

function uuidFinding(shared: readonly SharedUuid[], machines: number): Outcome {
  if (shared.length === 0) return pass(`no two of ${machines} virtual machines have the same`);
  const listed = shared
    .slice(0, MOST_UUIDS)
    .map(({ uuid, machines: all }) => `${uuid} is that of ${all.map(machineText).join(' and ')}`);
  const rest = shared.length - listed.length;
  if (rest > 0) listed.push(`${rest} more (coracle identity audit)`);
  return warn(
    listed.join('; '),
    `give all but one of each another: kubectl patch vm NAME -n NAMESPACE --type merge -p '{"spec":{"template":{"spec":{"domain":{"firmware":{"uuid":"'$(cat /proc/sys/kernel/random/uuid)'"}}}}}}', then restart it; its guest may need to be licensed again`,
  );
}

const versionOf = (output: string): string =>
  /version:?,?\s+v?(\d[\w.]*)/i.exec(output)?.[1] ?? output.split('\n')[0]!.trim();

/** Why, without the tool's own chatter: up to the first line's second colon. */
const firstClause = (why: string): string => why.split('\n')[0]!.split(': ').slice(0, 2).join(': ');
