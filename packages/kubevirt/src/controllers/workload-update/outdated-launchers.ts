/** What is done about instances whose launcher is of another version: they are marked, counted and evicted. */

import { keyOf } from '@coracle/apimachinery/meta/object';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import { isApiError, isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { commit } from '@coracle/client/commit/commit';
import type { EventRecorder } from '@coracle/client/events/recorder';
import {
  KUBEVIRTS,
  type KubeVirt,
  type ReadonlyKubeVirt,
  type ReadonlyVmi,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kinds/kubevirt.ts';
import { CREATED_BY_LABEL } from '../../rules/launcher/launcher-labels.ts';
import { OUTDATED_LABEL } from '../../rules/live-update/workload-update-plan.ts';

export interface OutdatedLaunchers {
  /** Writes the label of the instance, or takes it off. */
  mark(vmi: ReadonlyVmi, outdated: boolean): Promise<void>;
  /** Writes their number into the KubeVirt object. */
  count(kubevirt: ReadonlyKubeVirt | undefined, outdated: number): Promise<void>;
  /** Evicts the launcher Pod, as anybody would: what an eviction strategy says against it is respected. */
  evict(vmi: ReadonlyVmi): Promise<void>;
}

export const createOutdatedLaunchers = (client: Client, events: EventRecorder): OutdatedLaunchers => ({
  async mark(vmi, outdated) {
    const body = { metadata: { uid: vmi.metadata.uid, labels: { [OUTDATED_LABEL]: outdated ? '' : null } } };
    await orAbsent(client.patch(VIRTUAL_MACHINE_INSTANCES, keyOf(vmi), { type: 'merge', body }));
  },
  async count(before, outdatedVirtualMachineInstanceWorkloads) {
    if (
      !before ||
      (before.status?.outdatedVirtualMachineInstanceWorkloads ?? 0) === outdatedVirtualMachineInstanceWorkloads
    )
      return;
    const after = { ...before, status: { ...before.status, outdatedVirtualMachineInstanceWorkloads } } as KubeVirt;
    await commit(client, KUBEVIRTS, { before, after });
  },
  async evict(vmi) {
    const { namespace = '', name, uid } = vmi.metadata;
    const { items } = await client.list(PODS, { namespace, labelSelector: `${CREATED_BY_LABEL}=${uid}` });
    for (const { metadata, status } of items) {
      if (metadata.deletionTimestamp !== undefined || status?.phase !== 'Running') continue;
      try {
        await client.raw('POST', `/api/v1/namespaces/${namespace}/pods/${metadata.name}/eviction`, {
          body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: metadata.name, namespace } },
        });
        events.event(vmi, 'Normal', 'SuccessfulEvict', `Initiated eviction of pod ${metadata.name} for vmi ${name}`);
      } catch (error) {
        if (isNotFound(error)) continue;
        const message = `Unable to evict pod ${metadata.name} for automated workload update: ${(error as Error).message}`;
        events.event(vmi, 'Warning', 'FailedEvict', message);
        if (!isApiError(error, 429)) throw error;
      }
    }
  },
});
