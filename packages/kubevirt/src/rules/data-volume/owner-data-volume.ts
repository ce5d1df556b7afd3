/** Which DataVolume (CDI) a claim belongs to. Not every cluster serves them. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';

/** Name of the DataVolume that controls a claim. */
export const ownerDataVolume = ({ metadata }: DeepReadonly<PersistentVolumeClaim>): string | undefined =>
  metadata.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'DataVolume')?.name;
