/**
 * Keeps the policy that refuses the deletion of protected virtual machines, and its binding, as ssp-operator writes them:
 * made at start, put back when somebody edits or deletes them.
 *
 * Guarantees: the whole spec is written whenever the generation is not the one that our own last write gave, so that
 * nothing can be added to it either; labels and annotations of users stay. An object that is being deleted is waited for.
 * An object in the name of an SSP object is left alone while ssp-operator leads, or that SSP object is paused; it loses
 * the name when the SSP object is gone.
 */

import type { DeepReadonly, ObjectKey, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { orAbsent } from '@coracle/client/api-failure';
import { createController, requeueAfter, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { SSP_GROUP, SSPS, type Ssp } from '../../kinds/kinds.ts';
import { isOfSsp, sspKeyOf } from '../../rules/protection/operand-metadata.ts';
import { isPaused } from '../../rules/protection/ssp-status.ts';
import {
  createOperand,
  isOperatorLeading,
  type KeptOperand,
  keepOperand,
  keptOperands,
  OPERAND_KEY,
  operandCreateRule,
  operandRules,
  operatorLeaseRule,
  STANDING_BACK_MS,
  type WithSpec,
} from './kept-operands.ts';

/** Rights the controller needs, and no others: it changes no policy but its own. */
export const protectionControllerRules = policyRules(
  ...operandRules,
  operandCreateRule,
  `get list : ${SSP_GROUP} : ssps`,
  operatorLeaseRule,
);

/** Makes the controller; nothing happens before `start`. */
export function createProtectionController(environment: ControllerEnvironment): Runnable {
  const { client, informers, clock } = environment;
  const { policy, binding } = keptOperands(informers);

  const controller = createController({
    ...environment,
    name: 'protection',
    sources: [source(policy.informer, () => [OPERAND_KEY]), source(binding.informer, () => [OPERAND_KEY])],
    reconcile: async (_key, { signal }) => {
      const kept = [await keep(policy, signal), await keep(binding, signal)];
      if (!kept.every((one) => one)) return requeueAfter(STANDING_BACK_MS);
    },
  });
  return {
    name: controller.name,
    start(signal) {
      // Of objects that are not there no source speaks.
      controller.enqueue(OPERAND_KEY);
      return controller.start(signal);
    },
  };

  /** False when it is left as it is for a while. */
  async function keep<T extends WithSpec>(one: KeptOperand<T>, signal: AbortSignal): Promise<boolean> {
    const found = one.informer.get(OPERAND_KEY);
    if (!found) {
      if ((await sspObjects(signal)).some(isPaused)) return false;
      await createOperand(one, environment, signal);
      return true;
    }
    // Made anew when it is gone, which is a change as well.
    if (isDeleting(found)) return true;
    const owner = await ownerOf(found.metadata, signal);
    if (owner === 'left alone') return false;
    return (await keepOperand(one, found, { ...environment, owner, signal })) === 'kept';
  }

  /** The SSP object in whose name the operand is, while that is there. */
  async function ownerOf(
    metadata: DeepReadonly<ObjectMeta>,
    signal: AbortSignal,
  ): Promise<DeepReadonly<Ssp> | undefined | 'left alone'> {
    if (!isOfSsp(metadata)) return undefined;
    if (await isOperatorLeading(client, { now: clock.now(), signal })) return 'left alone';
    const ssp = await sspObject(sspKeyOf(metadata), signal);
    if (!ssp || isDeleting(ssp)) return undefined;
    return isPaused(ssp) ? 'left alone' : ssp;
  }

  async function sspObject(key: ObjectKey, signal: AbortSignal): Promise<DeepReadonly<Ssp> | undefined> {
    return orAbsent(client.get(SSPS, key, { signal }));
  }

  /** Those whose deletion has not begun; none where the kind is not served. */
  async function sspObjects(signal: AbortSignal): Promise<readonly DeepReadonly<Ssp>[]> {
    const list = await orAbsent(client.list(SSPS, { signal }));
    return (list?.items ?? []).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }
}
