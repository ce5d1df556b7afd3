/** Validation of PersistentVolumes (core/validation, ValidatePersistentVolumeSpec). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import { validateRequiredNodes } from '@coracle/apimachinery/validation/affinity';
import {
  forbidden,
  IMMUTABLE,
  invalid,
  oneOf,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { successorOf } from '../warnings/node-labels.ts';
import { classErrors, positiveErrors, VOLUME_MODES, validateAccessModes } from './claims.ts';
import { SECOND_PATHS, SOURCE_PATHS, volumeSourceErrors } from './volume-sources.ts';

/** In the order in which upstream looks for them. */
const SOURCES = [
  ...['hostPath', 'gcePersistentDisk', 'awsElasticBlockStore', 'glusterfs', 'flocker', 'nfs', 'rbd', 'quobyte'],
  ...['cephfs', 'iscsi', 'cinder', 'fc', 'flexVolume', 'azureFile', 'vsphereVolume', 'photonPersistentDisk'],
  ...['portworxVolume', 'azureDisk', 'scaleIO', 'local', 'storageos', 'csi'],
];
const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];
const NODES = 'spec.nodeAffinity';

export function validateVolume(volume: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = objectAt(volume, 'spec');
  const isKept = old !== undefined && deepEqual(spec, valueAt(old, 'spec'));
  if (isKept) return errors;
  validateAccessModes(errors, spec, { at: 'spec', detail: '' });
  validateCapacity(errors, objectAt(spec, 'capacity'));
  const reclaim = { name: 'persistentVolumeReclaimPolicy', path: 'spec.persistentVolumeReclaimPolicy' };
  errors.push(...oneOf(spec, reclaim, RECLAIM_POLICIES));
  validateNodes(errors, spec);
  errors.push(...sourceErrors(spec, textAt(volume, 'metadata', 'name')));
  if (isRoot(textAt(spec, 'hostPath', 'path')) && textAt(spec, reclaim.name) === 'Recycle') {
    errors.push(forbidden(reclaim.path, "may not be 'recycle' for a hostPath mount of '/'"));
  }
  errors.push(...classErrors(textAt(spec, 'storageClassName'), 'spec.storageClassName'));
  errors.push(...oneOf(spec, { name: 'volumeMode', path: 'spec.volumeMode' }, VOLUME_MODES));
  errors.push(...attributesErrors(spec));
  if (old !== undefined) validateUpdate(errors, spec, objectAt(old, 'spec'));
  return errors;
}

function validateCapacity(errors: FieldError[], capacity: JsonObject): void {
  const names = Object.keys(capacity);
  if (names.length === 0) errors.push(required('spec.capacity'));
  if (names.length !== 1 || names[0] !== 'storage') errors.push(unsupported('spec.capacity', capacity, ['storage']));
  validateEach(errors, names, (name) => positiveErrors(capacity[name], `spec.capacity[${name}]`));
}

function validateNodes(errors: FieldError[], spec: JsonObject): void {
  const affinity = valueAt(spec, 'nodeAffinity');
  if (!isObject(affinity)) return;
  const wanted = valueAt(affinity, 'required');
  if (isObject(wanted)) validateRequiredNodes(errors, wanted, `${NODES}.required`);
  else errors.push(required(`${NODES}.required`, 'must specify required node constraints'));
}

function sourceErrors(spec: JsonObject, name: string): FieldError[] {
  const [kind, ...more] = SOURCES.filter((one) => isObject(valueAt(spec, one)));
  if (kind === undefined) return [required('spec', 'must specify a volume type')];
  const source = valueAt(spec, kind) as JsonObject;
  const at = `spec.${SOURCE_PATHS[kind] ?? kind}`;
  const errors = volumeSourceErrors('persistent', kind, { source, at, name });
  const hasNodes = isObject(valueAt(spec, 'nodeAffinity', 'required'));
  if (kind === 'local' && !hasNodes) errors.push(required(NODES, 'Local volume requires node affinity'));
  for (const one of more) {
    errors.push(forbidden(`spec.${SECOND_PATHS[one] ?? one}`, 'may not specify more than 1 volume type'));
  }
  return errors;
}

const isRoot = (path: string): boolean => path !== '' && path.split('/').every((part) => part === '' || part === '.');

function attributesErrors(spec: JsonObject): FieldError[] {
  const at = 'spec.volumeAttributesClassName';
  const name = valueAt(spec, 'volumeAttributesClassName');
  if (typeof name !== 'string') return [];
  const errors = name === '' ? [required(at, 'an empty string is disallowed')] : classErrors(name, at);
  if (isObject(valueAt(spec, 'csi'))) return errors;
  return [...errors, required('spec.csi', 'has to be specified when using volumeAttributesClassName')];
}

function validateUpdate(errors: FieldError[], spec: JsonObject, before: JsonObject): void {
  if (!deepEqual(sourcesOf(spec, before), sourcesOf(before, before))) {
    const detail = 'spec.persistentvolumesource is immutable after creation';
    errors.push(forbidden('spec.persistentvolumesource', detail));
  }
  const mode = valueAt(spec, 'volumeMode');
  if (mode !== valueAt(before, 'volumeMode')) errors.push(invalid('volumeMode', mode ?? null, IMMUTABLE));
  const at = 'spec.volumeAttributesClassName';
  const [now, was] = [spec, before].map((one) => valueAt(one, 'volumeAttributesClassName') ?? null);
  if (was !== null && now === null) errors.push(forbidden(at, 'update from non-nil value to nil is forbidden'));
  const nodes = valueAt(before, 'nodeAffinity');
  if (!isObject(nodes)) return;
  const next = valueAt(spec, 'nodeAffinity') ?? null;
  if (!deepEqual(withoutBeta(next), withoutBeta(nodes))) {
    errors.push(invalid('nodeAffinity', next, `${IMMUTABLE}, except for updating from beta label to GA`));
  }
}

/** A secret to grow with may be named later. */
function sourcesOf(spec: JsonObject, before: JsonObject): JsonObject {
  const sources: Record<string, unknown> = {};
  for (const name of SOURCES) if (isObject(valueAt(spec, name))) sources[name] = valueAt(spec, name);
  const grows = isObject(valueAt(before, 'csi', 'controllerExpandSecretRef'));
  if (isObject(sources['csi']) && !grows) sources['csi'] = { ...sources['csi'], controllerExpandSecretRef: undefined };
  return sources;
}

/** Labels of old stand for those that came after them. */
function withoutBeta(affinity: unknown): unknown {
  const terms = objectsAt(affinity, 'required', 'nodeSelectorTerms').map((term) => ({
    ...term,
    matchExpressions: objectsAt(term, 'matchExpressions').map((one) => ({
      ...one,
      key: successorOf(textAt(one, 'key')),
    })),
  }));
  return isObject(affinity) ? terms : null;
}
