/**
 * How far an upload is, on its claim: what CDI copies there from the Pod that would take it, and what `virtctl image-upload`
 * waits for.
 */
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import type { DataVolumeOutcome } from './data-volume-status.ts';

export const POD_PHASE = 'cdi.kubevirt.io/storage.pod.phase';
export const POD_READY = 'cdi.kubevirt.io/storage.pod.ready';
const POD_RESTARTS = 'cdi.kubevirt.io/storage.pod.restarts';
/** Why it is not further. */
export const RUNNING_MESSAGE = 'cdi.kubevirt.io/storage.condition.running.message';

/** How many uploads to the claim have failed. */
export const uploadAttempt = ({ metadata }: ReadonlyClaim): number => {
  const count = Number(metadata.annotations?.[POD_RESTARTS] ?? 0);
  return Number.isSafeInteger(count) ? count : 0;
};

/** True for a claim that was bound before anybody asked for an upload to it. */
export const isBoundOtherwise = ({ metadata, status }: ReadonlyClaim): boolean =>
  status?.phase === 'Bound' && metadata.annotations?.[POD_PHASE] === undefined;

/** The claim after a pass. */
export function withUploadAnnotations(claim: ReadonlyClaim, outcome: DataVolumeOutcome): ReadonlyClaim {
  const wanted = annotationsOf(claim, outcome);
  return { ...claim, metadata: { ...claim.metadata, annotations: { ...claim.metadata.annotations, ...wanted } } };
}

function annotationsOf(claim: ReadonlyClaim, outcome: DataVolumeOutcome): Readonly<Record<string, string>> {
  const pod = (phase: string, isReady: boolean, message: string) => ({
    [POD_PHASE]: phase,
    [POD_READY]: String(isReady),
    [RUNNING_MESSAGE]: message,
  });
  switch (outcome.type) {
    case 'bound':
      return isBoundOtherwise(claim)
        ? { [POD_READY]: 'false', [RUNNING_MESSAGE]: BOUND_OTHERWISE }
        : pod('Succeeded', false, '');
    case 'filled':
      return pod('Running', false, '');
    case 'failed':
      return { ...pod('Running', true, outcome.message), [POD_RESTARTS]: String(uploadAttempt(claim) + 1) };
    case 'running':
      // Why the last one failed stays until the next one is sent.
      return outcome.report.step === 'waiting'
        ? pod('Running', true, claim.metadata.annotations?.[RUNNING_MESSAGE] ?? '')
        : pod('Running', true, '');
    case 'waiting':
      return pod('Pending', false, outcome.message);
    case 'no-consumer':
    case 'pausing':
      return pod('Pending', false, '');
    default:
      return outcome satisfies never;
  }
}

export const BOUND_OTHERWISE =
  'the claim is bound already: an upload fills claims that carry cdi.kubevirt.io/storage.upload.target from the start';
