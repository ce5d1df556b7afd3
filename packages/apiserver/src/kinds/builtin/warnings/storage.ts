/** Volumes, claims and classes (pkg/api/persistentvolume, persistentvolumeclaim and storage of upstream). */
import { formatQuantity, milliValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { add, warnEach } from './collect.ts';
import deprecated from './deprecated.json' with { type: 'json' };
import { expressionWarnings, replacedLabel } from './node-labels.ts';

const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';
const BETA_OPTIONS = 'volume.beta.kubernetes.io/mount-options';

const annotated = (object: JsonObject, key: string, why: string): string[] =>
  Object.hasOwn(objectAt(object, 'metadata', 'annotations'), key) ? [`metadata.annotations[${key}]: ${why}`] : [];

const classAnnotation = (object: JsonObject): string[] =>
  annotated(object, BETA_CLASS, 'deprecated since v1.8; use "storageClassName" attribute instead');

export function volumeWarnings(volume: JsonObject): string[] {
  const found: string[] = [];
  add(found, classAnnotation(volume));
  add(found, annotated(volume, BETA_OPTIONS, 'deprecated since v1.31; use "mountOptions" attribute instead'));
  if (textAt(volume, 'spec', 'persistentVolumeReclaimPolicy') === 'Recycle') {
    found.push(
      'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.',
    );
  }
  for (const [i, term] of objectsAt(volume, 'spec', 'nodeAffinity', 'required', 'nodeSelectorTerms').entries()) {
    expressionWarnings(found, term, `spec.nodeAffinity.required.nodeSelectorTerms[${i}]`);
  }
  const spec = objectAt(volume, 'spec');
  const shown: Readonly<Record<string, string>> = deprecated.shownVolumes;
  for (const [field, why] of Object.entries(deprecated.persistentVolumes)) {
    if (isObject(spec[field])) found.push(`spec.${shown[field] ?? field}: ${why}`);
  }
  return found;
}

export const volumeClaimWarnings = (claim: JsonObject): string[] => [
  ...classAnnotation(claim),
  ...['requests', 'limits'].flatMap((list) => fractionWarnings(claim, list)),
];

/** Bytes that are no whole number are accepted, and rounded by whoever reads them. */
function fractionWarnings(claim: JsonObject, list: string): string[] {
  const amount = readQuantity(valueAt(claim, 'spec', 'resources', list, 'storage'));
  if (amount === undefined || milliValue(amount) % 1000 === 0) return [];
  const shown = JSON.stringify(formatQuantity(amount));
  return [`spec.resources.${list}[storage]: fractional byte value ${shown} is invalid, must be an integer`];
}

export function storageClassWarnings(storageClass: JsonObject): string[] {
  const found: string[] = [];
  for (const [i, topology] of objectsAt(storageClass, 'allowedTopologies').entries()) {
    warnEach(found, objectsAt(topology, 'matchLabelExpressions'), (expression, j) => {
      const why = replacedLabel(textAt(expression, 'key'));
      return why === undefined ? undefined : [`allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${why}`];
    });
  }
  return found;
}
