/** The way of a memory dump, from its request to the file on the claim (pkg/storage/memorydump): pure. */

import { type DeepReadonly, formatTime } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { ReadonlyVm, ReadonlyVmi, VirtualMachineStatus, Volume } from '../../kinds/kubevirt.ts';

export type DumpRequest = NonNullable<VirtualMachineStatus['memoryDumpRequest']>;

/** On a claim: the file of the dump, or that there is none. */
export const DUMP_FILE_ANNOTATION = 'kubevirt.io/memory-dump';
/** What that says of a dump that failed. */
export const FAILED_DUMP = 'Memory dump failed';
/** On an instance: UID of the claim that its dump goes to, by which its node knows the volume. */
export const DUMP_CLAIM_ANNOTATION = 'coracle.dev/memory-dump-claim';

/** Phases of the volume in the status of the instance. */
export const DUMP_PHASES = {
  inProgress: 'MemoryDumpInProgress',
  completed: 'MemoryDumpCompleted',
  failed: 'MemoryDumpFailed',
} as const;

export interface DumpFacts {
  readonly vm: ReadonlyVm;
  readonly vmi: ReadonlyVmi | undefined;
  readonly claim: ReadonlyClaim | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type DumpStep =
  | { readonly type: 'nothing' }
  /** Something that no watch tells: it is looked at again. */
  | { readonly type: 'wait' }
  /** The volume into the template of the machine. */
  | { readonly type: 'add-to-template'; readonly volume: Volume }
  /** A claim that waits for its consumer gets the node of the guest. */
  | { readonly type: 'bind'; readonly nodeName: string }
  /** The volume into the instance. */
  | { readonly type: 'add-to-instance'; readonly volume: Volume; readonly claimUid: string }
  /** The volume out of the instance. */
  | { readonly type: 'take-from-instance' }
  /** What the claim holds is written on it. */
  | { readonly type: 'note'; readonly text: string }
  | { readonly type: 'take-from-template' }
  /** The request as it goes on; undefined when it is over. */
  | { readonly type: 'request'; readonly request: DumpRequest | undefined };

type Volumes = readonly DeepReadonly<Volume>[] | undefined;

const holds = (volumes: Volumes, claimName: string): boolean =>
  volumes?.some(({ memoryDump }) => memoryDump?.claimName === claimName) ?? false;

const hasVolume = (vmi: DumpFacts['vmi'], claimName: string): boolean => holds(vmi?.spec.volumes, claimName);

/** The volumes without those for memory dumps of that claim. */
export const withoutDump = (volumes: Volumes, claimName: string): readonly DeepReadonly<Volume>[] =>
  (volumes ?? []).filter(({ memoryDump }) => memoryDump?.claimName !== claimName);

/** The volume of a dump, named as its claim. */
const volumeOf = (claimName: string): Volume => ({ name: claimName, memoryDump: { claimName, hotpluggable: true } });

/** The next step of a machine's request; it is asked again after each. */
export function nextDumpStep(facts: DumpFacts): DumpStep {
  const request = facts.vm.status?.memoryDumpRequest;
  if (!request) return { type: 'nothing' };
  switch (request.phase) {
    case 'Associating':
      return associate(facts, request);
    case 'InProgress':
      return follow(facts, request);
    case 'Unmounting':
      return unmount(facts, request);
    case 'Failed':
      return clearUp(facts, request) ?? { type: 'nothing' };
    case 'Dissociating':
      return dissociate(facts, request);
    default:
      return { type: 'nothing' };
  }
}

const failed = (request: DeepReadonly<DumpRequest>, message: string, now: number): DumpStep => ({
  type: 'request',
  request: { ...request, phase: 'Failed', message, endTimestamp: formatTime(now) },
});

/** Why the guest cannot be dumped any more. */
const lost = (vmi: DumpFacts['vmi']): string | undefined =>
  !vmi || isDeleting(vmi) || hasEnded(vmi) ? 'the guest ended before its memory was dumped' : undefined;

function associate({ vm, vmi, claim, now }: DumpFacts, request: DeepReadonly<DumpRequest>): DumpStep {
  const { claimName } = request;
  const end = lost(vmi);
  if (!vmi || end !== undefined) return failed(request, end ?? '', now);
  if (!claim) return failed(request, `claim ${claimName} is gone`, now);
  if (!holds(vm.spec.template.spec?.volumes, claimName))
    return { type: 'add-to-template', volume: volumeOf(claimName) };
  if (hasVolume(vmi, claimName)) return { type: 'request', request: { ...request, phase: 'InProgress' } };
  // What is left of the last dump must be gone from the status, or it would be taken for this one.
  if (vmi.status?.volumeStatus?.some(({ name }) => name === claimName)) return { type: 'wait' };
  if (claim.status?.phase !== 'Bound') return { type: 'bind', nodeName: vmi.status?.nodeName ?? '' };
  return { type: 'add-to-instance', volume: volumeOf(claimName), claimUid: claim.metadata.uid ?? '' };
}

function follow({ vmi, now }: DumpFacts, request: DeepReadonly<DumpRequest>): DumpStep {
  const volume = vmi?.status?.volumeStatus?.find(({ name }) => name === request.claimName);
  const { startTimestamp, endTimestamp, targetFileName } = volume?.memoryDumpVolume ?? {};
  const times = { ...(startTimestamp && { startTimestamp }), ...(endTimestamp && { endTimestamp }) };
  if (volume?.phase === DUMP_PHASES.completed)
    return { type: 'request', request: { ...request, ...times, phase: 'Unmounting', fileName: targetFileName ?? '' } };
  if (volume?.phase === DUMP_PHASES.failed)
    return { type: 'request', request: { ...request, ...times, phase: 'Failed', message: volume.message ?? '' } };
  const end = lost(vmi);
  if (end !== undefined) return failed(request, end, now);
  return startTimestamp && request.startTimestamp !== startTimestamp
    ? { type: 'request', request: { ...request, startTimestamp } }
    : { type: 'nothing' };
}

function unmount(facts: DumpFacts, request: DeepReadonly<DumpRequest>): DumpStep {
  return clearUp(facts, request) ?? { type: 'request', request: { ...request, phase: 'Completed' } };
}

/** What a dump that has ended leaves to be done. */
function clearUp({ vmi, claim }: DumpFacts, { claimName, fileName }: DeepReadonly<DumpRequest>): DumpStep | undefined {
  const text = fileName ?? FAILED_DUMP;
  if (claim && claim.metadata.annotations?.[DUMP_FILE_ANNOTATION] !== text) return { type: 'note', text };
  return hasVolume(vmi, claimName) ? { type: 'take-from-instance' } : undefined;
}

function dissociate({ vm, vmi }: DumpFacts, { claimName }: DeepReadonly<DumpRequest>): DumpStep {
  if (hasVolume(vmi, claimName)) return { type: 'take-from-instance' };
  if (holds(vm.spec.template.spec?.volumes, claimName)) return { type: 'take-from-template' };
  return { type: 'request', request: undefined };
}
