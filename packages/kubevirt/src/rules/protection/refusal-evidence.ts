/**
 * What is left behind of a refusal that protects something: the words of events and of the audit annotation, and the
 * reasons by which refusals are counted. Pure.
 */
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import type { Refusal } from './decide-deletion.ts';

/** Why, in one word: a label of the counter, and part of the audit annotation. */
export type RefusalReason =
  | 'DeleteProtected'
  | Refusal['reason']
  | 'KruiseDeleteProtected'
  | 'NotStopped'
  | 'UnprotectForbidden';

/** A refusal, by whatever rule. */
export interface ProtectionRefusal {
  /** What refused: a policy, a webhook's name, or the name of a plug-in. */
  readonly policy: string;
  readonly reason: RefusalReason;
  /** For people. */
  readonly message: string;
  /** Machines that block it; where the object is itself the machine there are none. */
  readonly blockers?: readonly MachineName[];
}

interface MachineName {
  readonly namespace: string;
  readonly name: string;
  /** What of the machine refers to the object; '' when it is the machine itself that would go. */
  readonly why?: string;
}

/** The request that was refused. */
export interface RefusedRequest {
  readonly kind: string;
  readonly metadata: DeepReadonly<ObjectMeta>;
  readonly username: string;
}

/** Annotation of the audit event of the request. */
export const REFUSAL_ANNOTATION = 'protection.coracle.dev/refusal';

/** Of the object that was to be deleted, or to lose its protection. */
export const REFUSAL_EVENTS: Readonly<Record<'deletion' | 'unprotect' | 'part', string>> = {
  deletion: 'DeletionRefused',
  unprotect: 'UnprotectRefused',
  /** Of a machine, about an object that it stands on or in. */
  part: 'DependencyDeletionRefused',
};

const nameOf = ({ kind, metadata: { namespace = '', name = '' } }: RefusedRequest): string =>
  `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;

/** The event of the object itself. */
export function refusalEvent(
  { reason, message }: ProtectionRefusal,
  { username }: RefusedRequest,
): { readonly reason: string; readonly message: string } {
  if (reason === 'UnprotectForbidden')
    return { reason: REFUSAL_EVENTS.unprotect, message: `its protection was not switched off: ${message}` };
  return { reason: REFUSAL_EVENTS.deletion, message: `not deleted, as ${JSON.stringify(username)} asked: ${message}` };
}

/** The event of a machine that blocks it. */
export function blockerEvent(
  { why = '' }: MachineName,
  request: RefusedRequest,
): { readonly reason: string; readonly message: string } {
  const because = why === '' ? 'this machine is protected' : `this machine needs it (${why})`;
  return {
    reason: REFUSAL_EVENTS.part,
    message: `${nameOf(request)} was not deleted, as ${JSON.stringify(request.username)} asked: ${because}`,
  };
}

/** The value of the audit annotation, JSON: which policy, why, of what, and the machines that block it. */
export function refusalAnnotation(
  { policy, reason, blockers = [] }: ProtectionRefusal,
  request: RefusedRequest,
): string {
  const machines = blockers.map(({ namespace, name }) => `${namespace}/${name}`);
  return JSON.stringify({
    policy,
    decision: 'deny',
    reason,
    object: nameOf(request),
    ...(machines.length > 0 && { blockers: machines }),
  });
}
