/**
 * ssp-operator's work on SSP objects, as far as there is anything to do without OpenShift: the operand of deletion
 * protection gets the name and labels of the SSP object that asks for it, and the status says how it stands.
 *
 * Pass: finalizer > paused? > status Deploying > operands put right > status from what is there. Deleted: the operands
 * lose the name and stay, as Coracle protects machines without an SSP object too > finalizer. A pass makes one write to
 * the object. While ssp-operator itself leads nothing is done.
 */

import { type DeepReadonly, formatTime, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { commit } from '@coracle/client/commit/commit';
import {
  createController,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { addFinalizer, hasFinalizer, removeFinalizer } from '@coracle/client/finalizer/finalizer';
import { SSP_GROUP, SSPS, type Ssp, type SspStatus } from '../../kinds/kinds.ts';
import { isOfSsp, type OperandOwner } from '../../rules/protection/operand-metadata.ts';
import {
  beginningStatus,
  deletingStatus,
  deployedStatus,
  isBeginning,
  isPaused,
  pausedStatus,
} from '../../rules/protection/ssp-status.ts';
import {
  isOperatorLeading,
  type KeptOperand,
  keepOperand,
  keptOperands,
  OPERAND_KEY,
  operandRules,
  operatorLeaseRule,
  STANDING_BACK_MS,
  type WithSpec,
} from './kept-operands.ts';

/** Rights the controller needs, and no others. */
export const sspControllerRules = policyRules(
  `list watch patch : ${SSP_GROUP} : ssps`,
  `patch : ${SSP_GROUP} : ssps/status`,
  ...operandRules,
  operatorLeaseRule,
);

/** ssp-operator's own. */
const FINALIZER = 'ssp.kubevirt.io/finalizer';

export interface SspControllerOptions extends ControllerEnvironment {
  /** The version that runs, as the status gives it. */
  readonly version: string;
}

/** Makes the controller; nothing happens before `start`. */
export function createSspController(options: SspControllerOptions): Runnable {
  const { client, informers, clock, version } = options;
  const ssps = informers.of(SSPS);
  const { policy, binding } = keptOperands(informers);
  const everyone = () => ssps.list().map(keyOf);

  return createController({
    ...options,
    name: 'ssp',
    sources: [ownKeys(ssps), source(policy.informer, everyone), source(binding.informer, everyone)],
    reconcile: async (key, { signal }) => {
      const ssp = ssps.get(key);
      if (!ssp) return;
      if (await isOperatorLeading(client, { now: clock.now(), signal })) return requeueAfter(STANDING_BACK_MS);
      if (isDeleting(ssp)) return cleanUp(ssp, signal);
      if (!hasFinalizer(ssp, FINALIZER)) return save(ssp, addFinalizer(ssp as Ssp, FINALIZER), signal);
      return deploy(ssp, signal);
    },
  });

  async function deploy(ssp: DeepReadonly<Ssp>, signal: AbortSignal): Promise<ReconcileResult> {
    const observer = { version, at: formatTime(clock.now()) };
    if (isPaused(ssp)) return report(ssp, pausedStatus(ssp), signal);
    if (isBeginning(ssp)) return report(ssp, beginningStatus(ssp, observer), signal);
    const kept = isFirst(ssp) ? [await keep(policy, ssp, signal), await keep(binding, ssp, signal)] : [];
    const operands = { policy: policy.informer.get(OPERAND_KEY), binding: binding.informer.get(OPERAND_KEY) };
    await report(ssp, deployedStatus(ssp, operands, observer), signal);
    if (kept.includes('quarrel')) return requeueAfter(STANDING_BACK_MS);
  }

  async function cleanUp(ssp: DeepReadonly<Ssp>, signal: AbortSignal): Promise<ReconcileResult> {
    if (!hasFinalizer(ssp, FINALIZER)) return;
    const at = formatTime(clock.now());
    if (ssp.status?.phase !== 'Deleting') return report(ssp, deletingStatus(ssp, { version, at }), signal);
    for (const one of [policy, binding] as KeptOperand<WithSpec>[]) {
      const found = one.informer.get(OPERAND_KEY);
      if (!found || isDeleting(found) || !isOfSsp(found.metadata, ssp)) continue;
      // Looked at again when it has come back from there.
      await keepOperand(one, found, { ...options, owner: undefined, signal });
      return;
    }
    await save(ssp, removeFinalizer(ssp as Ssp, FINALIZER), signal);
  }

  /** What is missing is made by the controller that keeps the operands for nobody. */
  async function keep<T extends WithSpec>(one: KeptOperand<T>, owner: OperandOwner, signal: AbortSignal) {
    const found = one.informer.get(OPERAND_KEY);
    return found && !isDeleting(found) ? keepOperand(one, found, { ...options, owner, signal }) : undefined;
  }

  /** Operands have one owner: the oldest, where more than one object could be made after all. */
  function isFirst(ssp: DeepReadonly<Ssp>): boolean {
    const age = ({ metadata }: DeepReadonly<Ssp>): string => `${metadata.creationTimestamp} ${metadata.uid}`;
    return ssps.list().every((other) => isDeleting(other) || age(other) >= age(ssp));
  }

  async function report(
    ssp: DeepReadonly<Ssp>,
    status: DeepReadonly<SspStatus>,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    await save(ssp, { ...ssp, status } as Ssp, signal);
  }

  async function save(before: DeepReadonly<Ssp>, after: Ssp, signal: AbortSignal): Promise<void> {
    await commit(client, SSPS, { before, after, signal });
  }
}
