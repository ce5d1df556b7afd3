/**
 * The DataVolume controller: fills claims as CDI does, by the nodes that keep the pools.
 *
 * Guarantees: a claim is not bound before its content is whole, so that no guest sees half of it. What is being made for a
 * DataVolume that goes is removed. A failed attempt is made again, later each time, and goes on from what it has.
 */
import { keyOf } from '@coracle/apimachinery/meta/object';
import type { PolicyRule } from '@coracle/apimachinery/types/access-types';
import { commit } from '@coracle/client/commit/commit';
import {
  type Controller,
  createController,
  DONE,
  ownKeys,
  requeueAfter,
  source,
} from '@coracle/client/controller/controller';
import { createEventRecorder } from '@coracle/client/events/recorder';
import { POOL_LABEL } from '@coracle/cluster-rules/storage/pool-names';
import { CDI_GROUP, DATA_VOLUMES, type DataVolume } from '../../kinds/cdi/kinds.ts';
import { dataVolumeEvents } from '../../rules/data-volume/data-volume-events.ts';
import { dataVolumeStatus } from '../../rules/data-volume/data-volume-status.ts';
import { type DataVolumeControllerOptions, DataVolumeSteps } from './data-volume-steps.ts';
import { reasonOf } from './pool-access.ts';

const READ = ['get', 'list', 'watch'];

/** Rights the controller needs, and no others. */
export const dataVolumeRules: PolicyRule[] = [
  {
    apiGroups: [CDI_GROUP],
    resources: ['datavolumes', 'datasources', 'dataimportcrons', 'storageprofiles'],
    verbs: READ,
  },
  { apiGroups: [CDI_GROUP], resources: ['datavolumes'], verbs: ['create', 'delete'] },
  { apiGroups: [CDI_GROUP], resources: ['datasources'], verbs: ['create', 'patch'] },
  { apiGroups: [CDI_GROUP], resources: ['storageprofiles'], verbs: ['create', 'delete'] },
  {
    apiGroups: [CDI_GROUP],
    resources: ['datavolumes/status', 'dataimportcrons/status', 'storageprofiles/status'],
    verbs: ['patch'],
  },
  // Claims block the deletion of their DataVolume.
  { apiGroups: [CDI_GROUP], resources: ['datavolumes/finalizers', 'dataimportcrons/finalizers'], verbs: ['update'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: [...READ, 'create', 'patch'] },
  { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'create'] },
  { apiGroups: [''], resources: ['nodes'], verbs: READ },
  // Credentials and certificates that a DataVolume names in its own namespace.
  { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['get'] },
  { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: READ },
  {
    apiGroups: ['snapshot.storage.k8s.io'],
    resources: ['volumesnapshots', 'volumesnapshotcontents'],
    verbs: ['get'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

const CONCURRENCY = 8;
/** When a pool that could not be asked to drop something is asked again. */
const RETRY_MS = 3000;

/** Makes the controller; nothing happens before `start`. */
export function createDataVolumeController(options: DataVolumeControllerOptions): Controller {
  const { client, clock, log } = options;
  const steps = new DataVolumeSteps(options);
  const events = createEventRecorder(client, { component: 'datavolume-controller', clock, log });
  const all = () => steps.dataVolumes.list().map((one) => keyOf(one as DataVolume));
  return createController({
    name: 'data-volume',
    client,
    clock,
    log,
    concurrency: CONCURRENCY,
    sources: [
      ownKeys(steps.dataVolumes),
      // A claim has the name of its DataVolume.
      source(steps.claims, (claim) => {
        const key = keyOf(claim);
        return steps.dataVolumes.get(key) || claim.metadata.ownerReferences?.some(isDataVolume) ? [key] : [];
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
          await steps.forget(key, signal);
          return DONE;
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
        return result.againMs === undefined ? DONE : requeueAfter(result.againMs);
      } catch (error) {
        if (reasonOf(error) === undefined) throw error;
        return requeueAfter(RETRY_MS);
      }
    },
  });
}

const isDataVolume = ({ kind, apiVersion }: { readonly kind: string; readonly apiVersion: string }): boolean =>
  kind === 'DataVolume' && apiVersion.startsWith(`${CDI_GROUP}/`);
