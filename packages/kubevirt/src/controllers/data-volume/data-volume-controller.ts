/**
 * The DataVolume controller: fills claims as CDI does, by the nodes that keep the pools.
 *
 * Guarantees: a claim is not bound before its content is whole, so that no guest sees half of it. What is being made for a
 * DataVolume that goes is removed. A failed attempt is made again, later each time, and goes on from what it has.
 */
import { keyOf } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import type { ReadonlyClaim } from '@coracle/apimachinery/types/types';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  ownKeys,
  type ReconcileResult,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { isUploadTarget } from '@coracle/cluster-rules/storage/provision-plan';
import { CDI_GROUP, DATA_VOLUMES, type DataVolume } from '../../kinds/kinds.ts';
import { dataVolumeEvents } from '../../rules/data-volume/data-volume-events.ts';
import { dataVolumeStatus } from '../../rules/data-volume/data-volume-status.ts';
import { RUNNING_MESSAGE, withUploadAnnotations } from '../../rules/data-volume/upload-annotations.ts';
import type { ClaimFillingOptions } from './claim-filling.ts';
import { DataVolumeSteps } from './data-volume-steps.ts';
import { reasonOf } from './pool-access.ts';

/** Rights the controller needs, and no others. */
export const dataVolumeRules = policyRules(
  `get list watch : ${CDI_GROUP} : datavolumes datasources dataimportcrons storageprofiles cdiconfigs`,
  `create delete : ${CDI_GROUP} : datavolumes`,
  `create patch : ${CDI_GROUP} : datasources`,
  `create delete : ${CDI_GROUP} : storageprofiles`,
  `create : ${CDI_GROUP} : cdiconfigs`,
  `patch : ${CDI_GROUP} : datavolumes/status datasources/status dataimportcrons/status storageprofiles/status cdiconfigs/status`,
  // Claims block the deletion of their DataVolume.
  `update : ${CDI_GROUP} : datavolumes/finalizers dataimportcrons/finalizers`,
  'get list watch create patch : core : persistentvolumeclaims',
  'get create : core : persistentvolumes',
  'get list watch : core : nodes',
  // Credentials and certificates that a DataVolume names in its own namespace.
  'get : core : secrets configmaps',
  'get list watch : storage.k8s.io : storageclasses',
  'get list watch : snapshot.storage.k8s.io : volumesnapshots',
  'get : snapshot.storage.k8s.io : volumesnapshotcontents',
  'create patch : core : events',
);

const CONCURRENCY = 8;
/** When a pool that could not be asked to drop something is asked again. */
const RETRY_MS = 3000;

/** Makes the controller; nothing happens before `start`. */
export function createDataVolumeController(options: ClaimFillingOptions): Controller {
  const { client, clock, log } = options;
  const steps = new DataVolumeSteps(options);
  const events = createEventRecorder(client, { component: 'datavolume-controller', clock, log });
  const all = () => [...steps.dataVolumes.list(), ...steps.claims.list().filter(isUploadTarget)].map(keyOf);
  /** A claim that waits for an upload and belongs to no DataVolume. */
  const stepClaim = async (claim: ReadonlyClaim, signal: AbortSignal): Promise<ReconcileResult> => {
    const { outcome, againMs } = await steps.stepClaim(claim, signal);
    const known = claim.metadata.annotations?.[RUNNING_MESSAGE] ?? '';
    const message = withUploadAnnotations(claim, outcome).metadata.annotations?.[RUNNING_MESSAGE] ?? '';
    if (message !== '' && message !== known)
      // virtctl ends with what the first of these reasons says.
      events.event(claim, 'Warning', outcome.type === 'failed' ? 'UploadFailed' : 'ProvisioningFailed', message);
    if (againMs !== undefined) return requeueAfter(againMs);
  };
  const controller = createController({
    ...options,
    name: 'data-volume',
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(steps.dataVolumes),
      // A claim has the name of its DataVolume.
      source(steps.claims, (claim) => {
        const key = keyOf(claim);
        const isOurs =
          steps.dataVolumes.get(key) || claim.metadata.ownerReferences?.some(isDataVolume) || isUploadTarget(claim);
        return isOurs ? [key] : [];
      }),
      source(steps.classes, (_, previous) => (previous === undefined ? all() : [])),
      source(steps.profiles, () => []),
      source(steps.nodes, (node, previous) =>
        previous === undefined && node.metadata.labels?.[POOL_LABEL] !== undefined ? all() : [],
      ),
    ],
    async reconcile(key, { signal }) {
      const dataVolume = steps.dataVolumes.get(key);
      try {
        if (!dataVolume) {
          const claim = steps.claims.get(key);
          if (claim && isUploadTarget(claim) && !claim.metadata.ownerReferences?.some(isDataVolume))
            return await stepClaim(claim, signal);
          await steps.forget(key, signal);
          return;
        }
        const result = await steps.step(dataVolume, signal);
        const after: DataVolume = {
          ...(dataVolume as DataVolume),
          status: dataVolumeStatus(dataVolume.status, result.outcome, {
            claim: result.claim,
            claimName: key.name,
            now: clock.now(),
          }),
        };
        await commit(client, DATA_VOLUMES, { before: dataVolume, after, signal });
        const change = { before: dataVolume.status, after: after.status, outcome: result.outcome };
        for (const { type, reason, message } of dataVolumeEvents(key.name, change))
          events.event(after, type, reason, message);
        if (result.againMs !== undefined) return requeueAfter(result.againMs);
      } catch (error) {
        if (reasonOf(error) === undefined) throw error;
        return requeueAfter(RETRY_MS);
      }
    },
  });
  options.uploads?.onReport((key) => controller.enqueue(key));
  return controller;
}

const isDataVolume = ({ kind, apiVersion }: { readonly kind: string; readonly apiVersion: string }): boolean =>
  kind === 'DataVolume' && apiVersion.startsWith(`${CDI_GROUP}/`);
