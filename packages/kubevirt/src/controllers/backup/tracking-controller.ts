/**
 * Which machines have their changed blocks tracked: `status.changedBlockTracking.state` of machine and instance, by the
 * feature gate and the label selectors of the KubeVirt object. Volumes of a pool lie in layers, which tell what has changed
 * since any point that is kept: nothing has to be switched on in the guest, and no restart is waited for.
 */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import { type DeepReadonly, type KubeObject, keyOf } from '@coracle/apimachinery/meta/object';
import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { fromLabelSelectorObject, matchesLabels } from '@coracle/apimachinery/selector/label-selector';
import { type Controller, createController, ownKeys, source } from '@coracle/client/controller/controller';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import {
  type ReadonlyKubeVirt,
  type ReadonlyVm,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../../rules/machine-defaults/cluster-config.ts';
import type { BackupStores } from './backup-stores.ts';

type Labels = Readonly<Record<string, string>> | undefined;

/** Upstream's states that are used here; undefined where nobody ever asked for it. */
export type TrackingState = 'Enabled' | 'Disabled' | 'FGDisabled' | undefined;

/** The state that a machine should show. `shown` is what it shows. */
export function trackingState(
  kubevirt: ReadonlyKubeVirt | undefined,
  machine: { readonly labels: Labels; readonly namespaceLabels: Labels; readonly shown: string | undefined },
): TrackingState {
  const selectors = kubevirt?.spec?.configuration?.changedBlockTrackingLabelSelectors;
  const matches = (
    selector: Parameters<typeof fromLabelSelectorObject>[0] | undefined | null,
    labels: Labels,
  ): boolean => selector !== undefined && selector !== null && matchesLabels(fromLabelSelectorObject(selector), labels);
  const isWanted =
    matches(selectors?.virtualMachineLabelSelector, machine.labels) ||
    matches(selectors?.namespaceLabelSelector, machine.namespaceLabels);
  if (!clusterConfigOf(kubevirt).isEnabled('IncrementalBackup')) return isWanted ? 'FGDisabled' : undefined;
  if (isWanted) return 'Enabled';
  return machine.shown === undefined ? undefined : 'Disabled';
}

/** Makes the controller; nothing happens before `start`. */
export function createTrackingController({
  client,
  clock,
  log,
  stores,
}: Pick<ControllerEnvironment, 'client' | 'clock' | 'log'> & { readonly stores: BackupStores }): Controller {
  const show = async <T extends KubeObject>(
    type: ResourceType<T>,
    object: DeepReadonly<T> & {
      readonly status?: { readonly changedBlockTracking?: { readonly state?: string } | null };
    },
    state: TrackingState,
  ): Promise<void> => {
    if (object.status?.changedBlockTracking?.state === state) return;
    const changedBlockTracking = state === undefined ? null : { state };
    const body = { metadata: { uid: object.metadata.uid }, status: { changedBlockTracking } };
    await client.patch(type, keyOf(object as KubeObject), { type: 'merge', body }, { subresource: 'status' });
  };
  return createController({
    name: 'changed-block-tracking',
    client,
    log,
    clock,
    sources: [
      ownKeys(stores.vms),
      source(stores.vmis, ({ metadata }) => [{ namespace: metadata.namespace ?? '', name: metadata.name ?? '' }]),
      source(stores.kubevirts, () => stores.vms.list().map((vm) => keyOf(vm))),
      source(stores.namespaces, ({ metadata }) => stores.vms.list(metadata.name).map((vm) => keyOf(vm))),
    ],
    reconcile: async (key) => {
      const vm = stores.vms.get(key) as ReadonlyVm | undefined;
      if (!vm || isDeleting(vm)) return;
      const state = trackingState(stores.kubevirts.list()[0], {
        labels: vm.metadata.labels,
        namespaceLabels: stores.namespaces.get({ namespace: '', name: key.namespace })?.metadata.labels,
        shown: vm.status?.changedBlockTracking?.state,
      });
      await show(VIRTUAL_MACHINES, vm as never, state);
      const vmi = stores.vmis.get(key);
      if (vmi && !isDeleting(vmi)) await show(VIRTUAL_MACHINE_INSTANCES, vmi as never, state);
    },
  });
}
