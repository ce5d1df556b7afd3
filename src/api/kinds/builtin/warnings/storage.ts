/** Volumes, claims and classes (pkg/api/persistentvolume, persistentvolumeclaim and storage of upstream). */
import { isObject, type JsonObject, objectAt, objectsAt, textAt } from '../read-value.ts';
import { claimWarnings } from './amounts.ts';
import { expressionWarnings, replacedLabel } from './node-labels.ts';

const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';
const BETA_OPTIONS = 'volume.beta.kubernetes.io/mount-options';

const SOURCES: readonly (readonly [field: string, shown: string, why: string])[] = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
];

const annotated = (object: JsonObject, key: string, why: string): string[] =>
  Object.hasOwn(objectAt(object, 'metadata', 'annotations'), key) ? [`metadata.annotations[${key}]: ${why}`] : [];

const classAnnotation = (object: JsonObject): string[] =>
  annotated(object, BETA_CLASS, 'deprecated since v1.8; use "storageClassName" attribute instead');

export const volumeWarnings = (volume: JsonObject): string[] => [
  ...classAnnotation(volume),
  ...annotated(volume, BETA_OPTIONS, 'deprecated since v1.31; use "mountOptions" attribute instead'),
  ...(textAt(volume, 'spec', 'persistentVolumeReclaimPolicy') === 'Recycle'
    ? [
        'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
      ]
    : []),
  ...objectsAt(volume, 'spec', 'nodeAffinity', 'required', 'nodeSelectorTerms').flatMap((term, i) =>
    expressionWarnings(term, `spec.nodeAffinity.required.nodeSelectorTerms[${i}]`),
  ),
  ...SOURCES.filter(([field]) => isObject(objectAt(volume, 'spec')[field])).map(
    ([, shown, why]) => `spec.${shown}: ${why}`,
  ),
];

export const volumeClaimWarnings = (claim: JsonObject): string[] => [
  ...classAnnotation(claim),
  ...claimWarnings(objectAt(claim, 'spec'), 'spec'),
];

export const storageClassWarnings = (storageClass: JsonObject): string[] =>
  objectsAt(storageClass, 'allowedTopologies').flatMap((topology, i) =>
    objectsAt(topology, 'matchLabelExpressions').flatMap((expression, j) => {
      const why = replacedLabel(textAt(expression, 'key'));
      return why === undefined ? [] : [`allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${why}`];
    }),
  );

export const storageCapacityWarnings = (capacity: JsonObject): string[] => [
  ...expressionWarnings(objectAt(capacity, 'nodeTopology'), 'nodeTopology'),
  ...Object.keys(objectAt(capacity, 'nodeTopology', 'matchLabels')).flatMap((label) => {
    const why = replacedLabel(label);
    return why === undefined ? [] : [`nodeTopology.matchLabels.${label}: ${why}`];
  }),
];
