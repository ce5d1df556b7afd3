/**
 * A guest that goes on from a saved state: whether it may and can, and the way from a QEMU that waits to a guest that
 * runs.
 */
import { join } from 'node:path';
import type { VirtualMachineInstance } from '../../../api/kinds/kubevirt/kinds.ts';
import type { DeepReadonly } from '../../../api/meta/object.ts';
import { abortable } from '../../../base/signal/abortable.ts';
import { createLinkedController } from '../../../base/signal/linked-controller.ts';
import type { MachinePlan } from '../../../domain/machine/machine-plan.ts';
import { machinePlan } from '../../../domain/machine/plan.ts';
import { hostOf, resumeDifference } from '../../../domain/memory-state/resume-plan.ts';
import { parseResumeFrom, RESUME_FALLBACK, RESUME_FROM } from '../../../domain/memory-state/resume-request.ts';
import { isUid } from '../../disk/vm-directory.ts';
import { VolumeError } from '../../disk/volume-request.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { Guest } from '../guest.ts';
import { followEvents, isMigrationStatus } from '../migration/qmp-events.ts';
import type { VmRecord } from '../vm-record.ts';
import { hostProcessor } from './host-processor.ts';
import { feedStream } from './memory-stream.ts';
import { markUsed, RAM_FILE, readState, type SavedState, stateDirectory, userOf } from './state-files.ts';

type ReadonlyVmi = DeepReadonly<VirtualMachineInstance>;

/** A state that an instance goes on from. */
export interface Resume {
  readonly saved: SavedState;
  readonly ticket: string;
}

const RESUME_MS = 120_000;
const FALLBACK_BOOT = 'Boot';

/** The guest is not resumed, and not booted instead. `reason` of the Pod and the instance: FailedResume. */
export class ResumeError extends VolumeError {
  constructor(message: string) {
    super('FailedResume', '', `the guest is not resumed: ${message}`);
    this.name = 'ResumeError';
  }
}

/**
 * The state that this instance asks for; undefined where it asks for none, has used it before, or is to boot when it
 * cannot be used (`onFallback` is told why). Throws ResumeError.
 */
export async function resumeOf(
  environment: AgentEnvironment,
  vmi: ReadonlyVmi,
  onFallback: (why: string) => void,
): Promise<Resume | undefined> {
  const { metadata } = vmi;
  const text = metadata.annotations?.[RESUME_FROM];
  if (text === undefined) return undefined;
  const ticket = parseResumeFrom(text)?.ticket ?? ownerOf(vmi);
  try {
    const saved = await usableState(environment, vmi, text);
    const user = await userOf(environment.memoryDirectory, saved.state, ticket);
    if (user !== undefined) return undefined;
    return { saved, ticket };
  } catch (error) {
    if (!(error instanceof ResumeError) || metadata.annotations?.[RESUME_FALLBACK] !== FALLBACK_BOOT) throw error;
    onFallback(error.message);
    return undefined;
  }
}

/** The machine that owns the instance, else the instance itself: what uses a state once. */
function ownerOf({ metadata }: ReadonlyVmi): string {
  const uid = metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
  return uid !== undefined && isUid(uid) ? uid : (metadata.uid ?? '');
}

async function usableState(environment: AgentEnvironment, vmi: ReadonlyVmi, text: string): Promise<SavedState> {
  const { namespace, name } = vmi.metadata;
  const request = parseResumeFrom(text);
  if (!request) throw new ResumeError(`annotation ${RESUME_FROM} names no state`);
  const saved = await readState(environment.memoryDirectory, request.state);
  // One text for both: whoever may not have a state does not learn that there is one.
  if (!saved || saved.namespace !== namespace)
    throw new ResumeError(`node ${environment.nodeName} has no state ${request.state} of namespace ${namespace}`);
  let plan: MachinePlan;
  try {
    plan = machinePlan(vmi, environment.facts);
  } catch (error) {
    throw new ResumeError(`${name} makes no machine: ${(error as Error).message}`);
  }
  const host = hostOf(plan, environment.facts, await hostProcessor());
  const difference = resumeDifference(saved, { plan, host }) ?? diskDifference(saved, vmi, plan);
  if (difference !== undefined) throw new ResumeError(`state ${saved.state} does not fit: ${difference}`);
  return saved;
}

/** A disk that was the guest's own is so still, and one of a claim is one of a claim. */
function diskDifference(saved: SavedState, vmi: ReadonlyVmi, plan: MachinePlan): string | undefined {
  for (const { name, hasVolume } of plan.disks) {
    const volume = vmi.spec.volumes?.find((candidate) => candidate.name === name);
    if (!hasVolume || !volume) continue;
    const isElsewhere =
      volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined || volume.hostDisk !== undefined;
    if (isElsewhere === Object.hasOwn(saved.disks, name)) return `disk ${name} is of another kind of volume`;
  }
  return undefined;
}

/** Gives a QEMU that waits the memory and devices of the state; the guest stands still when this resolves. */
export async function loadMemory(
  environment: AgentEnvironment,
  guest: Guest,
  options: { readonly directory: string; readonly resume: Resume; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, memoryDirectory } = environment;
  const { directory, resume } = options;
  const life = createLinkedController(options.signal, environment.signal);
  const stopTimer = clock.schedule(RESUME_MS, () =>
    life.abort(new Error(`memory was not loaded within ${RESUME_MS / 1000} s`)),
  );
  const events = followEvents(guest, clock);
  try {
    const qmp = guest.qmp();
    await qmp.execute('migrate-set-capabilities', { capabilities: [{ capability: 'events', state: true }] });
    await qmp.execute('migrate-incoming', { uri: `unix:${VM_FILES.resumeIn}` });
    const path = join(stateDirectory(memoryDirectory, resume.saved.state), RAM_FILE);
    const end = events.wait('memory', isMigrationStatus('completed', 'failed'), life.signal);
    const fed = feedStream(directory, { path, clock, signal: life.signal });
    // A QEMU that cannot load it closes the line: why, it says itself.
    fed.catch(() => {});
    const { data } = await abortable(end, life.signal);
    if (data['status'] !== 'completed') throw new Error('QEMU cannot load it');
    await fed;
  } catch (error) {
    options.signal.throwIfAborted();
    environment.signal.throwIfAborted();
    const said = (await guest.output()).split('\n').slice(-2).join('; ');
    throw new ResumeError(`${(error as Error).message}${said && `: ${said}`}`);
  } finally {
    stopTimer();
    life.release();
    events.close();
  }
}

/** From here on the state is used: the guest goes on with its disks. */
export async function letGuestGoOn(environment: AgentEnvironment, guest: Guest, record: VmRecord): Promise<void> {
  const { resuming, vmiUid } = record;
  if (!resuming) return;
  // Before it runs: it must never go on a second time over disks that it has written to.
  await markUsed(environment.memoryDirectory, resuming.state, resuming.ticket, vmiUid);
  await guest.qmp().execute('cont');
  await guest.refresh();
}
