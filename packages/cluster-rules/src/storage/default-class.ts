/** The default class (component-helpers/storage/volume). */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { StorageClass } from '@coracle/apimachinery/types/types';

const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
const IS_DEFAULT_LEGACY = 'storageclass.beta.kubernetes.io/is-default-class';

/** The default class: of several the newest, then the first by name. */
export function defaultClassOf(classes: readonly DeepReadonly<StorageClass>[]): DeepReadonly<StorageClass> | undefined {
  const isDefault = ({ metadata: { annotations } }: DeepReadonly<StorageClass>): boolean =>
    annotations?.[IS_DEFAULT] === 'true' || annotations?.[IS_DEFAULT_LEGACY] === 'true';
  return classes
    .filter(isDefault)
    .sort(
      (a, b) =>
        (b.metadata.creationTimestamp ?? '').localeCompare(a.metadata.creationTimestamp ?? '') ||
        ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1),
    )[0];
}
