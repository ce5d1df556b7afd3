/**
 * A guest that goes on from a saved state: whether it may and can, and the way from a QEMU that waits to a guest that
 * runs.
 */

import { stat } from 'node:fs/promises';
import { controllerOf } from '@coracle/apimachinery/meta/controller-reference';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import { machinePlan } from '@coracle/kubevirt/rules/machine/plan';
import { FORKED_FROM } from '@coracle/kubevirt/rules/memory-state/fork';
import { hostOf, resumeDifference } from '@coracle/kubevirt/rules/memory-state/resume-plan';
import { parseResumeFrom, RESUME_FALLBACK, RESUME_FROM } from '@coracle/kubevirt/rules/memory-state/resume-request';
import { INPUT_FD } from '@coracle/runtime/process/spawn-detached';
import { isUid } from '../../disk/vm-directory.ts';
import { VolumeError } from '../../disk/volume-request.ts';
import type { AgentEnvironment } from '../environment.ts';
import type { Guest } from '../guest/guest.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { hostProcessor } from './host-processor.ts';
import { markUsed, nextState, ramFile, readState, type SavedState, userOf } from './state-files.ts';

/** A state that an instance goes on from. */
export interface Resume {
  readonly saved: SavedState;
  readonly ticket: string;
}

/** A fork may be here before the memory that it goes on from: it waits as long as saving may take, and a little. */
const SAVE_MS = 150_000;
/** States are looked for this often without news: an agent of another process may have saved one. */
const LOOK_MS = 500;
/** How long QEMU may take to load a guest. */
const RESUME_MS = 120_000;
const POLL_MS = 10;
const FALLBACK_BOOT = 'Boot';

/** The guest is not resumed, and not booted instead. `reason` of the Pod and the instance: FailedResume. */
export class ResumeError extends VolumeError {
  constructor(message: string) {
    super('FailedResume', '', `the guest is not resumed: ${message}`);
    this.name = 'ResumeError';
  }
}

export interface ResumeOptions {
  readonly vmi: ReadonlyVmi;
  /** Ends a wait. */
  readonly signal: AbortSignal;
  /** The guest boots although it was to be resumed, and why. */
  readonly onFallback: (why: string) => void;
}

/**
 * The state that this instance asks for; undefined where it asks for none, has used it before, or is to boot when it
 * cannot be used (`onFallback` gets the reason). A fork waits until its state is there. Throws ResumeError, or the signal's
 * reason.
 */
export async function resumeOf(
  environment: AgentEnvironment,
  { vmi, signal, onFallback }: ResumeOptions,
): Promise<Resume | undefined> {
  const { metadata } = vmi;
  const text = metadata.annotations?.[RESUME_FROM];
  if (text === undefined) return undefined;
  const ticket = parseResumeFrom(text)?.ticket ?? ownerOf(vmi);
  try {
    const saved = await usableState(environment, { vmi, signal, text });
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
function ownerOf(vmi: ReadonlyVmi): string {
  const uid = controllerOf(vmi)?.uid;
  return uid !== undefined && isUid(uid) ? uid : (vmi.metadata.uid ?? '');
}

async function usableState(
  environment: AgentEnvironment,
  { vmi, signal, text }: { readonly vmi: ReadonlyVmi; readonly signal: AbortSignal; readonly text: string },
): Promise<SavedState> {
  const { namespace, name } = vmi.metadata;
  const request = parseResumeFrom(text);
  if (!request) throw new ResumeError(`annotation ${RESUME_FROM} names no state`);
  const isFork = vmi.metadata.annotations?.[FORKED_FROM] !== undefined;
  const saved = isFork
    ? await awaitState(environment, { state: request.state, namespace: namespace ?? '' }, signal)
    : await readState(environment.memoryDirectory, request.state);
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
  const size = await stat(ramFile(environment.memoryDirectory, saved.state)).then(
    (found) => found.size,
    () => undefined,
  );
  if (size !== saved.bytes) throw new ResumeError(`state ${saved.state} is damaged: its memory is not whole`);
  const difference = resumeDifference(saved, { plan, host }) ?? diskDifference(saved, vmi, plan);
  if (difference !== undefined) throw new ResumeError(`state ${saved.state} does not fit: ${difference}`);
  return saved;
}

/** The state, once it is there; undefined when it does not come. */
async function awaitState(
  { memoryDirectory, clock }: AgentEnvironment,
  { state, namespace }: Pick<SavedState, 'state' | 'namespace'>,
  signal: AbortSignal,
): Promise<SavedState | undefined> {
  const deadline = clock.monotonic() + SAVE_MS;
  for (;;) {
    const news = nextState();
    const saved = await readState(memoryDirectory, state);
    // One of another namespace is waited for like one that is not there: how long it takes tells nobody of it.
    if (saved?.namespace === namespace || clock.monotonic() > deadline) return saved;
    await Promise.race([news, clock.sleep(LOOK_MS, signal)]);
  }
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

/**
 * Has QEMU read memory and devices of the state that it was started with, in one piece: it answers nothing meanwhile. The
 * guest stands still afterwards.
 */
export async function loadMemory(environment: AgentEnvironment, guest: Guest, signal: AbortSignal): Promise<void> {
  const { clock } = environment;
  const deadline = clock.monotonic() + RESUME_MS;
  try {
    await guest.qmp().execute('migrate-incoming', { uri: `fd:${INPUT_FD}` }, { timeoutMs: RESUME_MS });
    for (;;) {
      signal.throwIfAborted();
      const { status } = await guest.qmp().execute('query-migrate', undefined, { timeoutMs: RESUME_MS });
      if (status === 'failed') throw new Error('QEMU cannot load it');
      await guest.refresh();
      if (status === 'completed' && guest.state.runState !== 'inmigrate') return;
      if (clock.monotonic() > deadline) throw new Error(`memory was not loaded within ${RESUME_MS / 1000} s`);
      await clock.sleep(POLL_MS, environment.signal);
    }
  } catch (error) {
    signal.throwIfAborted();
    environment.signal.throwIfAborted();
    const said = (await guest.output()).split('\n').slice(-2).join('; ');
    throw new ResumeError(`${(error as Error).message}${said && `: ${said}`}`);
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
