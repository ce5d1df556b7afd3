/**
 * What is valid and odd in Nodes, ServiceAccounts, volumes, claims and classes (WarningsOnCreate and WarningsOnUpdate of
 * their strategies; pkg/api/node, persistentvolume, persistentvolumeclaim and storage of upstream).
 */
import { formatQuantity, milliValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import deprecated from './deprecated.json' with { type: 'json' };

export function* nodeWarnings(node: JsonObject): Iterable<string> {
  if (valueAt(node, 'spec', 'configSource') != null) yield 'spec.configSource: the feature is removed';
  if (textAt(node, 'spec', 'externalID') !== '') {
    yield 'spec.externalID: this field is deprecated, and is unused by Kubernetes';
  }
}

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';

const isAnnotated = (object: JsonObject | undefined, key: string): boolean =>
  Object.hasOwn(objectAt(object, 'metadata', 'annotations'), key);

/** Of what `old` does not say already. */
export function* accountWarnings(account: JsonObject, old?: JsonObject): Iterable<string> {
  if (!isAnnotated(account, ENFORCED) || isAnnotated(old, ENFORCED)) return;
  yield `metadata.annotations[${ENFORCED}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`;
}

const BETA_CLASS = 'volume.beta.kubernetes.io/storage-class';
const BETA_OPTIONS = 'volume.beta.kubernetes.io/mount-options';
const CLASS_WARNING = `metadata.annotations[${BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead`;

export function* volumeWarnings(volume: JsonObject): Iterable<string> {
  if (isAnnotated(volume, BETA_CLASS)) yield CLASS_WARNING;
  if (isAnnotated(volume, BETA_OPTIONS)) {
    yield `metadata.annotations[${BETA_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead`;
  }
  if (textAt(volume, 'spec', 'persistentVolumeReclaimPolicy') === 'Recycle') {
    yield 'spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.';
  }
  for (const [i, term] of objectsAt(volume, 'spec', 'nodeAffinity', 'required', 'nodeSelectorTerms').entries()) {
    for (const [j, expression] of objectsAt(term, 'matchExpressions').entries()) {
      const key = textAt(expression, 'key');
      const why = replacedLabel(key);
      const path = `spec.nodeAffinity.required.nodeSelectorTerms[${i}].matchExpressions[${j}].key`;
      if (why !== undefined) yield `${path}: ${key} is ${why}`;
    }
  }
  const shown: Readonly<Record<string, string>> = deprecated.shownVolumes;
  for (const [field, why] of Object.entries(deprecated.persistentVolumes)) {
    if (isObject(valueAt(volume, 'spec', field))) yield `spec.${shown[field] ?? field}: ${why}`;
  }
}

export function* volumeClaimWarnings(claim: JsonObject): Iterable<string> {
  if (isAnnotated(claim, BETA_CLASS)) yield CLASS_WARNING;
  for (const list of ['requests', 'limits']) {
    // Bytes that are no whole number are accepted, and rounded by whoever reads them.
    const amount = readQuantity(valueAt(claim, 'spec', 'resources', list, 'storage'));
    if (amount === undefined || milliValue(amount) % 1000 === 0) continue;
    const shown = JSON.stringify(formatQuantity(amount));
    yield `spec.resources.${list}[storage]: fractional byte value ${shown} is invalid, must be an integer`;
  }
}

export function* storageClassWarnings(storageClass: JsonObject): Iterable<string> {
  for (const [i, topology] of objectsAt(storageClass, 'allowedTopologies').entries()) {
    for (const [j, expression] of objectsAt(topology, 'matchLabelExpressions').entries()) {
      const why = replacedLabel(textAt(expression, 'key'));
      if (why !== undefined) yield `allowedTopologies[${i}].matchLabelExpressions[${j}].key: ${why}`;
    }
  }
}

/** Labels of nodes that have a newer name (pkg/api/node/util.go). */
const REPLACED: Readonly<Record<string, readonly string[]>> = deprecated.nodeLabels;

/** The label that has taken the place of this one; the same where none has. */
export const successorOf = (key: string): string => (Object.hasOwn(REPLACED, key) ? REPLACED[key]![1]! : key);

/** What is wrong with naming this label; undefined when nothing is. */
function replacedLabel(key: string): string | undefined {
  const [since, successor] = Object.hasOwn(REPLACED, key) ? REPLACED[key]! : [];
  return since && `deprecated since ${since}; use "${successor}" instead`;
}
