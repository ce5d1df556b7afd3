/** Groups of the Kubernetes community may only be extended with a word of approval (KEP-1111). */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { invalid, required } from '@coracle/apimachinery/validation/field-errors';
import type { Crd, CrdCondition } from './crd.ts';

const ANNOTATION = 'api-approved.kubernetes.io';
const SEE = 'see https://github.com/kubernetes/enhancements/pull/1111';

type Approval = 'approved' | 'bypassed' | 'missing' | 'invalid';

const isProtected = (group: string): boolean => /(^|\.)(k8s|kubernetes)\.io$/.test(group);

function approvalOf(crd: Crd): { readonly state: Approval; readonly reason: string } {
  const text = crd.metadata.annotations?.[ANNOTATION] ?? '';
  if (text === '') {
    return { state: 'missing', reason: `protected groups must have approval annotation "${ANNOTATION}", ${SEE}` };
  }
  if (text.startsWith('unapproved')) return { state: 'bypassed', reason: `not approved: ${JSON.stringify(text)}` };
  if (URL.canParse(text) && new URL(text).host !== '') return { state: 'approved', reason: `approved in ${text}` };
  return {
    state: 'invalid',
    reason: `protected groups must have approval annotation "${ANNOTATION}" with either a URL or a reason starting with "unapproved", ${SEE}`,
  };
}

/** Errors of the annotation; what was so before may stay so. */
export function approvalErrors(crd: Crd, old: Crd | undefined): FieldError[] {
  if (!isProtected(crd.spec.group ?? '')) return [];
  const { state, reason } = approvalOf(crd);
  if (old !== undefined && approvalOf(old).state === state) return [];
  const field = `metadata.annotations[${ANNOTATION}]`;
  if (state === 'missing') return [required(field, reason)];
  return state === 'invalid' ? [invalid(field, crd.metadata.annotations?.[ANNOTATION], reason)] : [];
}

const CONDITION: Readonly<Record<Approval, readonly ['True' | 'False', string]>> = {
  approved: ['True', 'ApprovedAnnotation'],
  bypassed: ['False', 'UnapprovedAnnotation'],
  missing: ['False', 'MissingAnnotation'],
  invalid: ['False', 'InvalidAnnotation'],
};

/** The condition that says the same; undefined for groups that need no approval. */
export function approvalCondition(crd: Crd): Omit<CrdCondition, 'lastTransitionTime'> | undefined {
  if (!isProtected(crd.spec.group)) return undefined;
  const { state, reason: message } = approvalOf(crd);
  const [status, reason] = CONDITION[state];
  return { type: 'KubernetesAPIApprovalPolicyConformant', status, reason, message };
}
