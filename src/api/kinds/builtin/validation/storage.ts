/** Validation of storage.k8s.io. */
import { deepEqual } from '../../../meta/deep-equal.ts';
import { checkQualifiedName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { isObject, type JsonObject, numberAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { validateSelectorField } from './admission-rules.ts';
import {
  duplicate,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  oneOf,
  required,
  unsupported,
} from './field-errors.ts';

/** Fields whose change is forbidden in these words. */
function kept(object: JsonObject, old: JsonObject, fields: readonly string[]): FieldError[] {
  return fields
    .filter((field) => !deepEqual(valueAt(object, field), valueAt(old, field)))
    .map((field) => forbidden(field, `updates to ${field} are forbidden.`));
}

function validateStorageClass(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [
    ...(textAt(object, 'provisioner') === '' ? [required('provisioner')] : []),
    ...oneOf(object, { name: 'reclaimPolicy', path: 'reclaimPolicy' }, ['Delete', 'Retain']),
    ...oneOf(object, { name: 'volumeBindingMode', path: 'volumeBindingMode' }, ['Immediate', 'WaitForFirstConsumer']),
  ];
  if (old === undefined) return errors;
  errors.push(...kept(object, old, ['parameters', 'provisioner', 'reclaimPolicy']));
  return [...errors, ...immutable({ object, old, path: 'volumeBindingMode' })];
}

function validateAttributesClass(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const parameters = valueAt(object, 'parameters');
  const errors = old === undefined ? [] : kept(object, old, ['driverName', 'parameters']);
  if (textAt(object, 'driverName') === '') errors.push(required('driverName'));
  if (!isObject(parameters) || Object.keys(parameters).length === 0) {
    errors.push(required('parameters', 'must contain at least one key/value pair'));
  }
  return errors;
}

const ONE_SOURCE = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

function validateAttachment(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const inline = valueAt(object, 'spec', 'source', 'inlineVolumeSpec');
  const volume = valueAt(object, 'spec', 'source', 'persistentVolumeName');
  const node = textAt(object, 'spec', 'nodeName');
  const errors: FieldError[] = textAt(object, 'spec', 'attacher') === '' ? [required('spec.attacher')] : [];
  if (inline == null && volume == null) errors.push(required('spec.source', ONE_SOURCE));
  else if (inline != null && volume != null) errors.push(forbidden('spec.source', ONE_SOURCE));
  else if (volume === '') {
    errors.push(required('spec.source.persistentVolumeName', 'must specify non empty persistentVolumeName'));
  }
  errors.push(...checkSubdomain(node).map((detail) => invalid('spec.nodeName', node, detail)));
  return old === undefined ? errors : [...errors, ...immutable({ object, old, path: 'spec' })];
}

const MAX_NODE_ID = 256;

function validateCsiNode(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  const drivers = new Map(objectsAt(old, 'spec', 'drivers').map((driver) => [textAt(driver, 'name'), driver]));
  for (const [i, driver] of objectsAt(object, 'spec', 'drivers').entries()) {
    const at = `spec.drivers[${i}]`;
    const name = textAt(driver, 'name');
    const id = textAt(driver, 'nodeID');
    if (name === '') errors.push(required(`${at}.name`));
    else errors.push(...checkSubdomain(name.toLowerCase()).map((detail) => invalid(`${at}.name`, name, detail)));
    if (id === '') errors.push(required(`${at}.nodeID`));
    if (id.length > MAX_NODE_ID) errors.push(invalid(`${at}.nodeID`, id, `must be ${MAX_NODE_ID} characters or less`));
    const count = numberAt(driver, 'allocatable', 'count');
    if (count < 0) errors.push(invalid(`${at}.allocatable.count`, count, 'must be greater than or equal to 0'));
    if (seen.has(name)) errors.push(duplicate(`${at}.name`, name));
    seen.add(name);
    const keys = textsAt(driver, 'topologyKeys');
    const before = new Set<string>();
    for (const key of keys) {
      if (before.has(key)) errors.push(duplicate(at, key));
      before.add(key);
      errors.push(...checkQualifiedName(key).map((detail) => invalid(at, key, detail)));
    }
    const was = drivers.get(name);
    // How many volumes fit may change, what the driver is on this node may not.
    const fixed = (one: JsonObject): JsonObject => ({ ...one, allocatable: undefined });
    if (was !== undefined && !deepEqual(fixed(driver), fixed(was))) {
      errors.push(invalid('spec.drivers', driver, 'field is immutable'));
    }
  }
  return errors;
}

const SHORTEST_TOKEN = 600;
const LONGEST_TOKEN = 2 ** 32;

function validateCsiDriver(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const spec = valueAt(object, 'spec');
  const period = valueAt(spec, 'nodeAllocatableUpdatePeriodSeconds');
  const errors = oneOf(spec, { name: 'fsGroupPolicy', path: 'spec.fsGroupPolicy' }, [
    'File',
    'None',
    'ReadWriteOnceWithFSType',
  ]);
  const audiences = new Set<string>();
  for (const [i, request] of objectsAt(spec, 'tokenRequests').entries()) {
    const at = `spec.tokenRequests[${i}]`;
    const audience = textAt(request, 'audience');
    if (audiences.has(audience)) {
      errors.push(duplicate(`${at}.audience`, audience));
      continue;
    }
    audiences.add(audience);
    const seconds = valueAt(request, 'expirationSeconds');
    if (typeof seconds !== 'number') continue;
    const refuse = (detail: string): number => errors.push(invalid(`${at}.expirationSeconds`, seconds, detail));
    if (seconds < SHORTEST_TOKEN) refuse('may not specify a duration less than 10 minutes');
    if (seconds > LONGEST_TOKEN) refuse('may not specify a duration larger than 2^32 seconds');
  }
  for (const mode of textsAt(spec, 'volumeLifecycleModes')) {
    if (mode === 'Persistent' || mode === 'Ephemeral') continue;
    errors.push(unsupported('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral']));
  }
  if (typeof period === 'number' && period < 10) {
    const detail = 'must be greater than or equal to 10 seconds';
    errors.push(invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, detail));
  }
  if (old === undefined) return errors;
  if (!deepEqual(valueAt(spec, 'attachRequired'), valueAt(old, 'spec', 'attachRequired'))) {
    // Upstream's own spelling of the path.
    errors.push(invalid('spec.attachedRequired', valueAt(spec, 'attachRequired'), 'field is immutable'));
  }
  return [...errors, ...immutable({ object, old, path: 'spec.volumeLifecycleModes' })];
}

function validateCapacity(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const name = textAt(object, 'storageClassName');
  const errors = validateSelectorField(object, 'nodeTopology', '').map((error) => ({
    ...error,
    field: error.field.replace(/^\./, ''),
  }));
  errors.push(...checkSubdomain(name).map((detail) => invalid('storageClassName', name, detail)));
  if (old === undefined) return errors;
  return [
    ...errors,
    ...immutable({ object, old, path: 'nodeTopology' }),
    ...immutable({ object, old, path: 'storageClassName' }),
  ];
}

export const STORAGE_VALIDATORS: GroupValidators = {
  storageclasses: validateStorageClass,
  volumeattributesclasses: validateAttributesClass,
  volumeattachments: validateAttachment,
  csinodes: validateCsiNode,
  csidrivers: validateCsiDriver,
  csistoragecapacities: validateCapacity,
};
