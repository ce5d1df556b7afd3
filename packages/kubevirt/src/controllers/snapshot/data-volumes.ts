/** DataVolumes (CDI) as far as snapshots and restores have to do with them. Not every cluster serves them. */

import type { ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { DeepReadonly, KubeObject } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';

export interface DataVolume extends KubeObject {
  spec: Record<string, unknown>;
  status?: { readonly phase?: string };
}

export const DATA_VOLUMES: ResourceType<DataVolume> = Object.freeze({
  group: 'cdi.kubevirt.io',
  version: 'v1beta1',
  resource: 'datavolumes',
  kind: 'DataVolume',
  namespaced: true,
});

/** Name of the DataVolume that controls a claim. */
export const ownerDataVolume = ({ metadata }: DeepReadonly<PersistentVolumeClaim>): string | undefined =>
  metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'DataVolume')?.name;
