/** The way from a bound Pod to a running QEMU: plan, volumes, address, record, spawn, ports, go. */
import { hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { logsSerialConsole } from '@coracle/kubevirt/rules/launcher/guest-console-log';
import { guestGraceSeconds } from '@coracle/kubevirt/rules/launcher/launcher-pod';
import { podShortfall } from '@coracle/kubevirt/rules/launcher/pod-shortfall';
import { podCard } from '@coracle/kubevirt/rules/machine/interfaces';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import { machinePlan } from '@coracle/kubevirt/rules/machine/plan';
import { resumedPlan } from '@coracle/kubevirt/rules/memory-state/resume-plan';
import { plainEnv } from '@coracle/runtime/process/run';
import { spawnDetached } from '@coracle/runtime/process/spawn-detached';
import { type PreparedVolumes, prepareVolumes } from '../../disk/prepare.ts';
import { openVmDirectory } from '../../disk/vm-directory.ts';
import type { ImageEvent } from '../../disk/volume-request.ts';
import { claimAddress } from '../../network/address-pool.ts';
import { qemuArgv, VM_FILES } from '../../qemu/argv.ts';
import { clockZone } from '../../qemu/clock-zone.ts';
import { startTpm, TPM_PROGRAM, tpmFacts, tpmSocket } from '../../tpm/swtpm.ts';
import type { AgentEnvironment } from '../environment.ts';
import { type Guest, openGuest } from '../guest/guest.ts';
import { filesOfImage, volumesOfGuest } from '../guest/guest-volumes.ts';
import { keepNetFilter } from '../guest/net-filter.ts';
import { letGuestGoOn, loadMemory, type Resume, resumeOf } from '../memory/resume-memory.ts';
import { ramFile, savedFilesOf } from '../memory/state-files.ts';
import { joinNetworks } from '../network/join-networks.ts';
import { clusterSettings } from './cluster-settings.ts';
import { imageContainer } from './pod-status.ts';
import { writeNamespace } from './vm-namespace.ts';
import { type MigrationRecord, type VmRecord, writeRecord } from './vm-record.ts';

export interface StartRequest {
  readonly vmi: ReadonlyVmi;
  readonly pod: ReadonlyPod;
  /** Ends the preparation; QEMU, once spawned, is left to the caller. */
  readonly signal: AbortSignal;
  readonly onImage: (event: ImageEvent) => void;
  readonly onChange: () => void;
  /** Called when the guest boots although it was to be resumed, and why. */
  readonly onNotResumed?: (why: string) => void;
  /** Called when QEMU answers, and a guest that was saved is about to be loaded. */
  readonly onLoading?: (record: VmRecord) => void;
}

interface StartedVm {
  readonly record: VmRecord;
  readonly guest: Guest;
}

const ANSWER_MS = 20_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** QEMU ended before it answered; its last words are the message. */
export class SpawnError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SpawnError';
  }
}

/** What stands ready before QEMU is spawned. */
export interface PreparedVm {
  readonly plan: MachinePlan;
  readonly directory: string;
  readonly volumes: PreparedVolumes;
  /** Image ids by container name. */
  readonly imageIds: Readonly<Record<string, string>>;
}

/** Makes the plan and the files. Throws PlanError, VolumeError, or what the file system says. */
export async function prepareVm(
  environment: AgentEnvironment,
  request: StartRequest,
  resume?: Resume,
): Promise<PreparedVm> {
  const { vmi, pod, signal } = request;
  const { smbios, podSizing } = await clusterSettings(environment.client, signal);
  const plan = machinePlan(vmi, environment.facts, { smbios, serialLog: logsSerialConsole(pod) });
  const short = podShortfall(pod, vmi, { memoryBytes: plan.memoryBytes, ...podSizing });
  if (short !== undefined) throw new Error(`the guest is not started, its pod is too small for it: ${short}`);
  if (plan.tpm && !tpmFacts().tpm)
    throw new Error(`the guest has a TPM, and this node has no emulator for one: install ${TPM_PROGRAM}`);
  plan.interfaces = await joinNetworks(environment, plan.interfaces, signal);
  const directory = await openVmDirectory(environment.vmsDirectory, vmi.metadata.uid ?? '');
  await writeNamespace(directory, vmi.metadata.namespace ?? '');
  const imageIds: Record<string, string> = {};
  const volumes = await prepareVolumes(
    {
      vmi,
      pod,
      directory,
      images: environment.images,
      client: environment.client,
      clock: environment.clock,
      signal,
      hostDiskRoots: environment.hostDiskRoots,
      pool: environment.pool,
      nodeName: environment.nodeName,
      ...(resume && { saved: savedFilesOf(environment.memoryDirectory, resume.saved) }),
      onImage: (event) => {
        if (event.digest !== '')
          imageIds[imageContainer(event.volume)] = `${event.image.replace(/[:@][^/]*$/, '')}@${event.digest}`;
        request.onImage(event);
      },
    },
    plan,
  );
  if (!resume) return { plan, directory, volumes, imageIds };
  const { saved } = resume;
  return { plan: resumedPlan(saved.plan, plan), directory, volumes, imageIds: { ...saved.imageIds, ...imageIds } };
}

interface SpawnRequest {
  readonly vmi: ReadonlyVmi;
  readonly pod: ReadonlyPod;
  readonly prepared: PreparedVm;
  readonly address: string;
  /** Set when QEMU shall wait for the guest of another node. */
  readonly migration?: MigrationRecord;
  /** Set when QEMU shall wait for a guest that was saved. */
  readonly resuming?: NonNullable<VmRecord['resuming']>;
  readonly onChange: () => void;
  /** Called with what was written, so that a failure later on finds it. */
  readonly onRecord?: (record: VmRecord) => void;
  readonly onGuest?: (guest: Guest) => void;
}

/** Records and spawns QEMU; it answers and is stopped when this resolves. Throws SpawnError. */
export async function spawnVm(environment: AgentEnvironment, request: SpawnRequest): Promise<StartedVm> {
  const { vmi, pod, address, prepared, migration, resuming } = request;
  const { plan, directory, volumes, imageIds } = prepared;
  const { clock } = environment;
  const argv = qemuArgv(plan, {
    binary: environment.binary,
    pidFile: join(directory, VM_FILES.pid),
    ...volumes,
    ...(plan.tpm && { tpmSocket: tpmSocket(directory) }),
    ...((migration || resuming) && { incoming: true }),
  });
  let record: VmRecord = {
    version: 1,
    node: environment.nodeName,
    vmiUid: vmi.metadata.uid ?? '',
    podUid: pod.metadata.uid ?? '',
    namespace: vmi.metadata.namespace ?? '',
    name: vmi.metadata.name ?? '',
    podName: pod.metadata.name ?? '',
    address,
    bootId: environment.bootId,
    startedAt: clock.now(),
    plan,
    argvDigest: hash('sha256', argv.join('\0')),
    imageIds,
    portProblems: [],
    files: [...volumes.disks.values()].flatMap(filesOfImage).filter((file) => isAbsolute(file)),
    volumes: volumesOfGuest(volumes.disks),
    graceSeconds: vmi.spec.terminationGracePeriodSeconds ?? guestGraceSeconds(pod),
    disks: Object.fromEntries(volumes.disks),
    ...(migration && { migration }),
    ...(resuming && { resuming }),
  };
  for (const name of [VM_FILES.qmp, VM_FILES.serial, VM_FILES.vnc, VM_FILES.guestAgent])
    await rm(join(directory, name), { force: true });
  // On disk before there is a process: whatever happens from here on, the next agent knows of it.
  await writeRecord(environment.vmsDirectory, record);
  request.onRecord?.(record);
  const spawnError = (error: Error): never => {
    throw new SpawnError(error.message);
  };
  // QEMU connects to it as soon as it starts.
  const lasting = volumes.tpmState !== undefined && { lastingState: volumes.tpmState };
  if (plan.tpm) await startTpm({ directory, clock, signal: environment.signal, ...lasting }).catch(spawnError);
  const zone = clockZone(plan, clock.now());
  const child = await spawnDetached(argv, {
    cwd: directory,
    ...(zone !== undefined && { env: { ...plainEnv(), TZ: zone } }),
    outputFile: join(directory, VM_FILES.output),
    // A guest can make QEMU say things without end.
    maxOutputBytes: MAX_OUTPUT_BYTES,
    ...(resuming && { inputFile: ramFile(environment.memoryDirectory, resuming.state) }),
  }).catch(spawnError);
  record = { ...record, process: child.identity };
  await writeRecord(environment.vmsDirectory, record);
  request.onRecord?.(record);
  const guest = openGuest({
    directory,
    plan,
    address,
    identity: child.identity,
    exited: child.exited,
    clock,
    log: environment.log.with({ vmi: `${record.namespace}/${record.name}` }),
    signal: environment.signal,
    onChange: request.onChange,
  });
  request.onGuest?.(guest);
  await guest.ready(ANSWER_MS);
  if (guest.state.exit !== undefined)
    throw new SpawnError(`QEMU did not start: ${(await guest.output()) || 'it said nothing'}`);
  // Before it runs: without its filter a guest would reach the host's loopback.
  await keepNetFilter(guest, { directory, plan, address, clock, log: environment.log }).catch((error: Error) => {
    throw new SpawnError(`the network of the guest cannot be filtered: ${error.message}`);
  });
  return { record, guest };
}

/** Starts the VM. Throws PlanError, VolumeError, SpawnError, or what the file system says. */
export async function startVm(environment: AgentEnvironment, request: StartRequest): Promise<StartedVm> {
  const { vmi, pod, signal } = request;
  const resume = await resumeOf(environment, { vmi, signal, onFallback: request.onNotResumed ?? (() => {}) });
  const prepared = await prepareVm(environment, request, resume);
  const address = await claimAddress(environment.addressesDirectory, vmi.metadata.uid ?? '');
  request.signal.throwIfAborted();
  const resuming = resume && { state: resume.saved.state, ticket: resume.ticket };
  const wanted = { vmi, pod, prepared, address, onChange: request.onChange };
  const started = await spawnVm(environment, { ...wanted, ...(resuming && { resuming }) });
  const { guest } = started;
  if (resume) {
    request.onLoading?.(started.record);
    await loadMemory(environment, guest, signal);
  }
  const record = { ...started.record, portProblems: await connectNetwork(guest, started.record) };
  await writeRecord(environment.vmsDirectory, record);
  if (!resume) {
    await letRun(guest, record);
    return { record, guest };
  }
  await letGuestGoOn(environment, guest, record);
  const { resuming: _, ...running } = record;
  await writeRecord(environment.vmsDirectory, running);
  return { record: running, guest };
}

/** Forwards the ports and pulls the cables that shall be down. Returns what could not be forwarded. */
export async function connectNetwork(guest: Guest, { plan }: VmRecord): Promise<string[]> {
  for (const nic of plan.interfaces)
    if (!nic.linkUp) await guest.qmp().execute('set_link', { name: nic.id, up: false });
  // Those under their own number are `keepPorts`' to get.
  const problems = await guest.forwarder?.forward(podCard(plan)?.ports ?? [], []);
  return (problems ?? []).filter(({ declared }) => declared).map(({ message }) => message);
}

/** Lets a prepared guest run, unless it shall start paused. */
export async function letRun(guest: Guest, { plan }: VmRecord): Promise<void> {
  if (plan.startPaused) return;
  await guest.qmp().execute('cont');
  await guest.refresh();
}
