/**
 * What this host's QEMU can do. Asked of QEMU itself over QMP on an empty machine, plus one experiment: whether KVM
 * runs guest code at all. Kept in a file, valid for one boot, kernel and QEMU binary.
 */
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { arch, release } from 'node:os';
import { join } from 'node:path';
import type { NodeFacts } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { bootId } from '@coracle/runtime/process/identity';
import { run } from '@coracle/runtime/process/run';
import { spawnDetached } from '@coracle/runtime/process/spawn-detached';
import { terminate } from '@coracle/runtime/process/terminate';
import { connectQmp, type QmpConnection, QmpError } from '../qmp/qmp-connection.ts';
import { SANDBOX } from './argv.ts';
import { probeKvm } from './kvm-probe.ts';

interface FactsOptions {
  /** Where the answer is kept, and where the probe works. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** QEMU's name or path. Default qemu-system-x86_64. */
  readonly binary?: string | undefined;
  /** Leaves KVM out even where it works. */
  readonly accelerator?: 'auto' | 'tcg' | undefined;
}

const FORMAT = 4;
const EFI_IMAGES: readonly { readonly code: string; readonly vars: string }[] = [
  { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', vars: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
  { code: '/usr/share/OVMF/OVMF_CODE.fd', vars: '/usr/share/OVMF/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', vars: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
  { code: '/usr/share/edk2/x64/OVMF_CODE.4m.fd', vars: '/usr/share/edk2/x64/OVMF_VARS.4m.fd' },
];

export const DEFAULT_BINARY = 'qemu-system-x86_64';
/** Also where the host has much else to do: a node that gives up is not tried again. */
const ANSWER_MS = 60_000;

/** The facts, from the file when it fits this boot. Throws when there is no usable QEMU, saying how to install it. */
export async function readNodeFacts(options: FactsOptions): Promise<NodeFacts> {
  const binary = options.binary ?? DEFAULT_BINARY;
  const version = await run([binary, '--version'], { signal: options.signal, timeoutMs: ANSWER_MS });
  if (!version.ok)
    throw new Error(
      `QEMU is needed to run virtual machines: ${version.message} (Debian: apt-get install qemu-system-x86)`,
    );
  const key = JSON.stringify([
    FORMAT,
    await bootId(),
    release(),
    arch(),
    binary,
    new TextDecoder().decode(version.stdout).split('\n')[0],
    options.accelerator ?? 'auto',
  ]);
  const path = join(options.directory, 'qemu-facts.json');
  const kept = await readKept(path, key);
  if (kept) return { ...kept, ...(await efiOf()) };

  const asked = await askQemu(binary, options);
  const kvm = options.accelerator === 'tcg' ? { works: false, why: 'switched off' } : await probeKvm(binary, options);
  options.log.info('accelerator probed', { accelerator: kvm.works ? 'kvm' : 'tcg', why: kvm.why });
  if (asked.postCopyObstacle !== undefined)
    options.log.warn('guests cannot come here in post-copy', { why: asked.postCopyObstacle });
  const facts: NodeFacts = {
    ...asked,
    accelerator: kvm.works ? 'kvm' : 'tcg',
    ...(kvm.works && { offeredCpuFeatures: await hostFeatures(asked.cpuFeatures) }),
  };
  await writeFile(path, JSON.stringify({ key, facts }), { mode: 0o600 }).catch((error: Error) =>
    options.log.warn('qemu facts not kept', { error: error.message }),
  );
  return { ...facts, ...(await efiOf()) };
}

/** Properties of a processor of QEMU that tell QEMU how to behave; the rest are features of the processor. */
const BEHAVIOUR =
  /^(check|enforce|migratable|hypervisor|host-.*|hv-.*|kvm.*|tcg-.*|x-.*|.*-cache|.*-auto-level|fill-mtrr-mask|cpuid-0xb|vmware-cpuid-freq|pmu)$/;

/** What an emulated processor can have: QEMU's names of the properties that are on, aliases too. */
const processorFeatures = (props: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(props)
    .filter((name) => props[name] === true && !BEHAVIOUR.test(name))
    .sort();

/** What an accelerated processor can have: QEMU's names of what the host's own has. */
async function hostFeatures(known: readonly string[]): Promise<string[]> {
  const plain = (name: string): string => name.replace(/[._]/g, '-');
  const [, line = ''] = /^flags\s*:(.*)$/m.exec(await readFile('/proc/cpuinfo', 'utf8')) ?? [];
  const flags = line.trim().split(/\s+/);
  // Linux says pni where everybody else says sse3.
  const offered = new Set([...flags.map(plain), ...(flags.includes('pni') ? ['sse3'] : [])]);
  return known.filter((name) => offered.has(plain(name)) && !BEHAVIOUR.test(name));
}

async function readKept(path: string, key: string): Promise<NodeFacts | undefined> {
  try {
    const kept = JSON.parse(await readFile(path, 'utf8')) as { key: string; facts: NodeFacts };
    return kept.key === key ? kept.facts : undefined;
  } catch {
    return undefined;
  }
}

/** The UEFI firmware of this host, if it has one. */
export async function efiOf(): Promise<Pick<NodeFacts, 'efi'>> {
  for (const image of EFI_IMAGES) {
    const sizes = await Promise.all([stat(image.code), stat(image.vars)]).catch(() => undefined);
    if (sizes) return { efi: image };
  }
  return {};
}

/** Starts a machine without processors' work to do and asks it. Tried with the sandbox first, then without. */
async function askQemu(binary: string, options: FactsOptions): Promise<Omit<NodeFacts, 'accelerator'>> {
  try {
    return { ...(await askOnce(binary, ['-sandbox', SANDBOX], options)), sandbox: true };
  } catch (error) {
    options.signal.throwIfAborted();
    options.log.warn('qemu does not start with its sandbox', { error: String(error) });
    return { ...(await askOnce(binary, [], options)), sandbox: false };
  }
}

/** QEMU refuses where the kernel does not let it handle page faults (userfaultfd, `vm.unprivileged_userfaultfd`). */
async function postCopyObstacle(qmp: QmpConnection): Promise<{ readonly postCopyObstacle?: string }> {
  try {
    await qmp.execute('migrate-set-capabilities', { capabilities: [{ capability: 'postcopy-ram', state: true }] });
    return {};
  } catch (error) {
    if (error instanceof QmpError && error.failure === 'refused') return { postCopyObstacle: error.message };
    throw error;
  }
}

async function askOnce(
  binary: string,
  extra: readonly string[],
  options: FactsOptions,
): Promise<Omit<NodeFacts, 'accelerator' | 'sandbox'>> {
  const directory = await mkdtemp(join(options.directory, 'probe-'));
  const child = await spawnDetached(
    [
      binary,
      ...['-machine', 'none', '-accel', 'tcg', '-nodefaults', '-no-user-config', '-display', 'none'],
      // Waits for a guest that never comes: only so does QEMU say whether one could come in post-copy.
      ...['-incoming', 'defer'],
      ...extra,
      ...['-chardev', 'socket,id=qmp,path=qmp.sock,server=on,wait=off', '-mon', 'chardev=qmp,mode=control'],
    ],
    { cwd: directory, outputFile: join(directory, 'output') },
  );
  let qmp: QmpConnection | undefined;
  try {
    const deadline = options.clock.monotonic() + ANSWER_MS;
    while (!qmp) {
      try {
        qmp = await connectQmp(join(directory, 'qmp.sock'), { clock: options.clock, signal: options.signal });
      } catch (error) {
        options.signal.throwIfAborted();
        if (options.clock.monotonic() > deadline) throw error;
        const ended = await Promise.race([child.exited, options.clock.sleep(20, options.signal)]);
        if (ended) throw new Error((await readFile(join(directory, 'output'), 'utf8')).slice(-1000));
      }
    }
    const { qemu } = await qmp.execute('query-version');
    const machines = await qmp.execute('query-machines');
    const models = await qmp.execute('query-cpu-definitions');
    const types = await qmp.execute('qom-list-types', { implements: 'device', abstract: false });
    const cpu = await qmp
      .execute('query-cpu-model-expansion', { type: 'full', model: { name: 'max' } })
      .catch(() => undefined);
    return {
      architecture: 'amd64',
      qemuVersion: `${qemu.major}.${qemu.minor}.${qemu.micro}`,
      machineTypes: machines.map((machine) => machine.name).sort(),
      machineAliases: Object.fromEntries(
        machines.flatMap(({ alias, name }) => (alias === undefined ? [] : [[alias, name]])),
      ),
      cpuModels: models.map((model) => model.name).sort(),
      cpuFeatures: Object.keys(cpu?.model.props ?? {}).sort(),
      offeredCpuFeatures: processorFeatures(cpu?.model.props ?? {}),
      devices: types.map((type) => type.name).sort(),
      ...(await postCopyObstacle(qmp)),
    };
  } finally {
    qmp?.close();
    await terminate(child.identity, { clock: options.clock, signal: new AbortController().signal, graceMs: 2000 });
    await rm(directory, { recursive: true, force: true });
  }
}
