/**
 * The status of an SSP object as ssp-operator gives it (internal/controllers/ssp_controller.go and the operand of deletion
 * protection), over the one operand that is deployed here. Pure: the time comes from the caller.
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly, KubeObject, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '@coracle/apimachinery/types/types';
import type { Ssp, SspCondition, SspPhase, SspStatus } from '../../kinds/kinds.ts';
import { isOfSsp } from './operand-metadata.ts';

type Status = DeepReadonly<SspStatus>;
type Condition = DeepReadonly<SspCondition>;
type Operand<T> = DeepReadonly<T> | undefined;

/** Annotation of an SSP object: a true value stops all work on its operands. */
const PAUSED = 'kubevirt.io/operator.paused';
/** What Go's ParseBool takes for true. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);

/** Condition of ours: which operands of ssp-operator are not deployed here. */
export const OPERANDS_LEFT_OUT = 'coracle.dev/OperandsLeftOut';

const LEFT_OUT =
  'only vm-delete-protection is deployed here; common-templates, template-validator, vm-console-proxy and metrics take OpenShift, and images (data-sources, data-import-crons) come by DataImportCrons of your own; spec.commonTemplates, spec.templateValidator, spec.tokenGenerationService and spec.tlsSecurityProfile have no effect';

/** Whether its operands are to be left alone. */
export const isPaused = ({ metadata }: { readonly metadata: DeepReadonly<ObjectMeta> }): boolean =>
  TRUE.has(metadata.annotations?.[PAUSED] ?? '');

/** What is known of the operand: its two objects as they are now. */
export interface SspOperands {
  readonly policy: Operand<ValidatingAdmissionPolicy>;
  readonly binding: Operand<ValidatingAdmissionPolicyBinding>;
}

/** Which version acts on the object, and the time (RFC 3339) of what is written now. */
export interface SspObserver {
  readonly version: string;
  readonly at: string;
}

/** Before the operands are looked at: of a new object, of a changed one, and of one that is paused no more. */
export function beginningStatus(ssp: DeepReadonly<Ssp>, { version, at }: SspObserver): Status {
  const { paused: _over, ...rest } = ssp.status ?? {};
  return statusWith(ssp, {
    rest: { ...rest, operatorVersion: version, targetVersion: version },
    phase: 'Deploying',
    conditions: [...standing('Reconciling SSP resources'), leftOut],
    at,
  });
}

/** Whether the operands of this generation have yet to be looked at. */
export const isBeginning = ({ metadata, status }: DeepReadonly<Ssp>): boolean =>
  (status?.phase ?? '') === '' || status?.paused === true || status?.observedGeneration !== metadata.generation;

/** While the annotation is there: nothing else of the status changes. */
export const pausedStatus = ({ status, metadata }: DeepReadonly<Ssp>): Status => ({
  ...status,
  paused: true,
  ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
});

/** While the object is being deleted and its operands still carry its name. */
export const deletingStatus = (ssp: DeepReadonly<Ssp>, { at }: SspObserver): Status =>
  statusWith(ssp, {
    rest: ssp.status ?? {},
    phase: 'Deleting',
    conditions: standing('Deleting SSP resources'),
    at,
  });

/** What the operands give: Deployed when the policy works and the binding is there, both in the name of this object. */
export function deployedStatus(ssp: DeepReadonly<Ssp>, operands: SspOperands, { version, at }: SspObserver): Status {
  const troubles = [policyProblem(operands.policy, ssp), bindingProblem(operands.binding, ssp)].filter(
    (one) => one !== undefined,
  );
  const done = troubles.length === 0;
  return statusWith(ssp, {
    rest: {
      ...ssp.status,
      operatorVersion: version,
      targetVersion: version,
      ...(done && { observedVersion: version }),
    },
    phase: done ? 'Deployed' : 'Deploying',
    conditions: [
      summary('Available', troubles, ['All SSP resources are available', 'are not available']),
      summary('Progressing', troubles.filter(isProgress), ['No SSP resources are progressing', 'are progressing']),
      summary('Degraded', troubles, ['No SSP resources are degraded', 'are degraded']),
      leftOut,
    ],
    at,
  });
}

/** What is wrong with one operand; `progress`: it will pass by itself. */
interface OperandProblem {
  readonly kind: string;
  readonly name: string;
  readonly message: string;
  readonly progress: boolean;
}

const isProgress = ({ progress }: OperandProblem): boolean => progress;

const NAMES = {
  policy: { kind: 'ValidatingAdmissionPolicy', name: 'kubevirt-vm-deletion-protection' },
  binding: { kind: 'ValidatingAdmissionPolicyBinding', name: 'kubevirt-vm-deletion-protection' },
} as const;

/** What either of them may lack. */
function operandProblem(object: Operand<KubeObject>, ssp: DeepReadonly<Ssp>): string | undefined {
  if (!object) return 'Resource is being created.';
  if (isDeleting(object)) return 'Resource is being deleted.';
  return isOfSsp(object.metadata, ssp) ? undefined : 'Resource is being taken over.';
}

function policyProblem(policy: Operand<ValidatingAdmissionPolicy>, ssp: DeepReadonly<Ssp>): OperandProblem | undefined {
  const general = operandProblem(policy, ssp);
  if (general !== undefined) return { ...NAMES.policy, message: general, progress: true };
  // The API server of an external cluster checks types; Coracle's does not, so there is nothing to wait for.
  const warnings = policy?.status?.typeChecking?.expressionWarnings ?? [];
  if (warnings.length === 0) return undefined;
  // As Go prints the struct.
  const printed = `&{[${warnings.map(({ fieldRef, warning }) => `{${fieldRef} ${warning}}`).join(' ')}]}`;
  return {
    ...NAMES.policy,
    message: `Incorrect VM delete protection VAP CEL expression ${printed}`,
    progress: false,
  };
}

function bindingProblem(
  binding: Operand<ValidatingAdmissionPolicyBinding>,
  ssp: DeepReadonly<Ssp>,
): OperandProblem | undefined {
  const message = operandProblem(binding, ssp);
  return message === undefined ? undefined : { ...NAMES.binding, message, progress: true };
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/** The three conditions of an object that does not stand as it should. */
const standing = (message: string): Said[] => [
  { type: 'Available', status: 'False', reason: 'Available', message },
  { type: 'Progressing', status: 'True', reason: 'Progressing', message },
  { type: 'Degraded', status: 'True', reason: 'Degraded', message },
];

const leftOut: Said = { type: OPERANDS_LEFT_OUT, status: 'True', reason: 'NotServed', message: LEFT_OUT };

/** One of the three over what was found: all is well, the one thing that is not, or how many. */
function summary(
  type: 'Available' | 'Progressing' | 'Degraded',
  troubles: readonly OperandProblem[],
  [well, many]: readonly [well: string, many: string],
): Said {
  const [first, second] = troubles;
  const isGood = first === undefined;
  const message = !first
    ? well
    : second
      ? `${troubles.length} SSP resources ${many}`
      : `${first.kind} /${first.name}: ${first.message}`;
  return { type, status: isGood === (type === 'Available') ? 'True' : 'False', reason: type, message };
}

function statusWith(
  { status, metadata }: DeepReadonly<Ssp>,
  next: {
    readonly rest: Status;
    readonly phase: SspPhase;
    readonly conditions: readonly Said[];
    readonly at: string;
  },
): Status {
  const known = status?.conditions ?? [];
  const said = next.conditions.map((one) => withTimes(one, { known, at: next.at }));
  const types = new Set(said.map(({ type }) => type));
  return {
    ...next.rest,
    phase: next.phase,
    conditions: [...said, ...known.filter(({ type }) => !types.has(type))],
    ...(metadata.generation !== undefined && { observedGeneration: metadata.generation }),
  };
}

/** The heartbeat is the time of the last change: to write one for its own sake would never end. */
function withTimes(
  said: Said,
  { known, at }: { readonly known: readonly Condition[]; readonly at: string },
): Condition {
  const before = known.find(({ type }) => type === said.type);
  if (before) {
    const { lastHeartbeatTime: _, lastTransitionTime: __, ...rest } = before;
    if (deepEqual(rest, said)) return before;
  }
  const moved = before?.status !== said.status;
  return {
    ...said,
    lastHeartbeatTime: at,
    lastTransitionTime: moved ? at : (before?.lastTransitionTime ?? at),
  };
}
