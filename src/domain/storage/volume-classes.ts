/** The class of a claim or a volume, and the default one (component-helpers/storage/volume). */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/kinds/builtin/types.ts';
import type { DeepReadonly } from '../../api/meta/object.ts';

const LEGACY_CLASS = 'volume.beta.kubernetes.io/storage-class';
const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
const IS_DEFAULT_LEGACY = 'storageclass.beta.kubernetes.io/is-default-class';

/** Name of its class: the annotation of old goes first; '' for none. */
export const classNameOf = ({ metadata, spec }: DeepReadonly<PersistentVolumeClaim | PersistentVolume>): string =>
  metadata.annotations?.[LEGACY_CLASS] ?? spec?.storageClassName ?? '';

/** True when the claim never said which class it wants, not even that it wants none. */
export const namesNoClass = ({ metadata, spec }: DeepReadonly<PersistentVolumeClaim>): boolean =>
  metadata.annotations?.[LEGACY_CLASS] === undefined && (spec?.storageClassName ?? undefined) === undefined;

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
