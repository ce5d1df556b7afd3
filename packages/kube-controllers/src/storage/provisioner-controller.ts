/**
 * The external provisioner of driver `local.coracle.dev`: makes the content of a claim in a pool, then the
 * PersistentVolume that stands for it. The volume controller binds the two.
 *
 * Claims of earlier versions whose content lies in a pool already get a volume of their own uid, whatever their class.
 */

import type { DeepReadonly, ObjectKey } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { isNotFound } from '@coracle/client/api-failure';
import {
  type Controller,
  createController,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { sourceOf, volumeNameFor } from '@coracle/cluster-rules/storage/provision-plan';
import { PoolCallError, poolOf } from './pools.ts';

import { POOL_MS, type PoolControllerOptions, ProvisionerSteps } from './provisioner-steps.ts';
/** Rights the controller needs, and no others. */
export const provisionerRules = policyRules(
  'get list watch create : core : persistentvolumes',
  'get list watch patch : core : persistentvolumeclaims',
  'get list watch : core : nodes',
  'list watch : storage.k8s.io : storageclasses',
  'get : snapshot.storage.k8s.io : volumesnapshots volumesnapshotcontents',
  'create patch : core : events',
);

const CONCURRENCY = 4;
/** Makes the controller. */
export function createProvisionerController(options: PoolControllerOptions): Controller {
  const steps = new ProvisionerSteps(options, (key, ms) => controller.enqueue(key, ms));
  const controller: Controller = createController({
    ...options,
    name: 'local-volume-provisioner',
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(steps.claims),
      ownKeys(steps.volumes),
      source(steps.classes, () => []),
      source(steps.nodes, (node, previous) =>
        poolOf(node) !== undefined &&
        (previous === undefined || !steps.known.has(poolOf(node)!) || hasRisen(node, previous))
          ? [POOLS_KEY]
          : [],
      ),
    ],
    async reconcile(key, { signal, log: passLog }) {
      if (key.namespace === '') {
        if (key.name !== POOLS_KEY.name) return;
        try {
          await steps.learn(signal);
        } catch (error) {
          if (!(error instanceof PoolCallError)) throw error;
          return requeueAfter(POOL_MS);
        }
        return;
      }
      const claim = steps.claims.get(key);
      if (!claim || !steps.isOurs(claim) || steps.volumes.get({ namespace: '', name: volumeNameFor(claim) })) return;
      if (sourceOf(claim).type === 'other') return;
      const { namespace, name } = claim.metadata;
      if (steps.heldIn(claim) === undefined)
        steps.events.event(
          claim,
          'Normal',
          'Provisioning',
          `External provisioner is provisioning volume for claim "${namespace}/${name}"`,
        );
      try {
        // What pools hold already goes first.
        await steps.learn(signal);
        await steps.provision(claim, signal);
      } catch (error) {
        if (isNotFound(error)) return;
        return steps.failed(claim, error, signal);
      }
      steps.events.event(
        claim,
        'Normal',
        'ProvisioningSucceeded',
        `Successfully provisioned volume ${volumeNameFor(claim)}`,
      );
      passLog.info('volume made', { volume: volumeNameFor(claim) });
    },
  });
  return controller;
}

/** The key of all pools; no volume has such a name. */
const POOLS_KEY: ObjectKey = { namespace: '', name: 'POOLS' };

const hasRisen = (now: DeepReadonly<{ status?: object }>, before: DeepReadonly<{ status?: object }>): boolean =>
  isUp(now) && !isUp(before);
const isUp = ({ status }: DeepReadonly<{ status?: object }>): boolean =>
  ((status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions ?? []).some(
    (one) => one.type === 'Ready' && one.status === 'True',
  );
