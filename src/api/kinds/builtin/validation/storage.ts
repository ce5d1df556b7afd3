/** Validation of storage.k8s.io. */

import { equalSteps } from '../../../meta/deep-equal.ts';
import { byteLength, checkQualifiedName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Steps } from '../../../meta/steps.ts';
import { readQuantity } from '../../../quantity/quantity.ts';
import { type JsonObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { judgeSelectorField } from './admission-rules.ts';
import {
  duplicate,
  faults,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  type Judging,
  judgeEach,
  judgeImmutable,
  judgeNested,
  newJudging,
  oneOf,
  required,
  requiredText,
  sortedTexts,
  tooLong,
  unsupportedInOrder,
} from './field-errors.ts';
import { driverErrors } from './volume-sources.ts';

/** Fields whose change is forbidden in these words. */
function* judgeKept(
  { errors, pace }: Judging,
  { object, old, fields }: { object: JsonObject; old: JsonObject; fields: readonly string[] },
): Steps<void> {
  for (const field of fields) {
    const same = yield* equalSteps(valueAt(object, field), valueAt(old, field), pace);
    if (!same) errors.push(forbidden(field, `updates to ${field} are forbidden.`));
  }
}

const LONGEST_PARAMETERS = 256 * 1024;
const MOST_PARAMETERS = 512;

/** The name of who makes volumes, or changes them. */
const nameErrors = (name: string, at: string): FieldError[] =>
  requiredText(at, name, (text) => checkQualifiedName(text.toLowerCase()));

function parameterErrors(object: JsonObject): FieldError[] {
  const at = 'parameters';
  const entries = Object.entries(objectAt(object, at));
  if (entries.length > MOST_PARAMETERS) return [tooLong(at, MOST_PARAMETERS)];
  const errors = entries.some(([key]) => key === '') ? [invalid(at, '', 'field can not be empty.')] : [];
  const size = entries.reduce((sum, [key, value]) => sum + byteLength(key) + byteLength(String(value)), 0);
  return size > LONGEST_PARAMETERS ? [...errors, tooLong(at, LONGEST_PARAMETERS)] : errors;
}

/** Judges the places in which volumes of a class may lie. */
function* judgeTopologies(judging: Judging, object: JsonObject): Steps<void> {
  const { errors } = judging;
  const known = new Set<string>();
  yield* judgeNested(judging, objectsAt(object, 'allowedTopologies'), function* (term, i) {
    const at = `allowedTopologies[${i}].matchLabelExpressions`;
    const values = new Map<string, string>();
    yield* judgeNested(judging, objectsAt(term, 'matchLabelExpressions'), function* (one, j) {
      const key = textAt(one, 'key');
      const listed = textsAt(one, 'values');
      const seen = new Set<string>();
      if (listed.length === 0) errors.push(required(`${at}[${j}].values`));
      yield* judgeEach(judging, listed, (value, k) => {
        const isTwice = seen.has(value);
        seen.add(value);
        return isTwice ? [duplicate(`${at}[${j}].values[${k}]`, value)] : [];
      });
      errors.push(...faults(`${at}[${j}].key`, key, checkQualifiedName(key)));
      if (values.has(key)) errors.push(duplicate(`${at}[${j}].key`, key));
      values.set(key, JSON.stringify(yield* sortedTexts([...seen])));
    });
    const whole = JSON.stringify(yield* sortedTexts([...values].map((pair) => pair.join())));
    if (known.has(whole)) errors.push(duplicate(at, ''));
    known.add(whole);
  });
}

function* validateStorageClass(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  if (old === undefined) {
    errors.push(...nameErrors(textAt(object, 'provisioner'), 'provisioner'), ...parameterErrors(object));
    errors.push(
      ...oneOf(object, { name: 'reclaimPolicy', path: 'reclaimPolicy' }, ['Delete', 'Retain']),
      ...oneOf(object, { name: 'volumeBindingMode', path: 'volumeBindingMode' }, ['Immediate', 'WaitForFirstConsumer']),
    );
    yield* judgeTopologies(judging, object);
    return errors;
  }
  yield* judgeKept(judging, { object, old, fields: ['parameters', 'provisioner', 'reclaimPolicy'] });
  errors.push(...immutable({ object, old, path: 'volumeBindingMode' }));
  return errors;
}

function* validateAttributesClass(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  if (old !== undefined) yield* judgeKept(judging, { object, old, fields: ['driverName', 'parameters'] });
  errors.push(...nameErrors(textAt(object, 'driverName'), 'driverName'));
  if (Object.keys(objectAt(object, 'parameters')).length === 0) {
    errors.push(required('parameters', 'must contain at least one key/value pair'));
  } else errors.push(...parameterErrors(object));
  return errors;
}

const ONE_SOURCE = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';

function* validateAttachment(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const inline = valueAt(object, 'spec', 'source', 'inlineVolumeSpec');
  const volume = valueAt(object, 'spec', 'source', 'persistentVolumeName');
  const node = textAt(object, 'spec', 'nodeName');
  const judging = newJudging();
  const { errors } = judging;
  if (textAt(object, 'spec', 'attacher') === '') errors.push(required('spec.attacher'));
  if (inline == null && volume == null) errors.push(required('spec.source', ONE_SOURCE));
  else if (inline != null && volume != null) errors.push(forbidden('spec.source', ONE_SOURCE));
  else if (volume === '') {
    errors.push(required('spec.source.persistentVolumeName', 'must specify non empty persistentVolumeName'));
  }
  errors.push(...faults('spec.nodeName', node, checkSubdomain(node)));
  if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'spec' });
  return errors;
}

const MAX_NODE_ID = 256;

/** What a driver counts as, beside its keys. */
const DRIVER = 3;

function* validateCsiNode(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const seen = new Set<string>();
  const drivers = new Map<string, JsonObject>();
  for (const driver of objectsAt(old, 'spec', 'drivers')) {
    if (judging.pace.due()) yield;
    drivers.set(textAt(driver, 'name'), driver);
  }
  const judge = (driver: JsonObject, i: number) =>
    judgeDriver(judging, driver, { at: `spec.drivers[${i}]`, seen, before: drivers });
  yield* judgeNested(judging, objectsAt(object, 'spec', 'drivers'), judge, DRIVER);
  return judging.errors;
}

function* judgeDriver(
  judging: Judging,
  driver: JsonObject,
  { at, seen, before }: { at: string; seen: Set<string>; before: ReadonlyMap<string, JsonObject> },
): Steps<void> {
  const { errors, pace } = judging;
  const name = textAt(driver, 'name');
  const id = textAt(driver, 'nodeID');
  errors.push(...driverErrors(name, `${at}.name`));
  if (id === '') errors.push(required(`${at}.nodeID`));
  if (id.length > MAX_NODE_ID) errors.push(invalid(`${at}.nodeID`, id, `must be ${MAX_NODE_ID} characters or less`));
  const count = numberAt(driver, 'allocatable', 'count');
  if (count < 0) errors.push(invalid(`${at}.allocatable.count`, count, 'must be greater than or equal to 0'));
  if (seen.has(name)) errors.push(duplicate(`${at}.name`, name));
  seen.add(name);
  const keys = new Set<string>();
  yield* judgeEach(judging, textsAt(driver, 'topologyKeys'), (key) => {
    const found = faults(at, key, checkQualifiedName(key));
    if (keys.has(key)) found.unshift(duplicate(at, key));
    keys.add(key);
    return found;
  });
  const was = before.get(name);
  // How many volumes fit may change, what the driver is on this node may not.
  const fixed = (one: JsonObject): JsonObject => ({ ...one, allocatable: undefined });
  if (was !== undefined && !(yield* equalSteps(fixed(driver), fixed(was), pace))) {
    errors.push(invalid('spec.drivers', driver, 'field is immutable'));
  }
}

const SHORTEST_TOKEN = 600;
const LONGEST_TOKEN = 2 ** 32;

function* validateCsiDriver(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const spec = valueAt(object, 'spec');
  const period = valueAt(spec, 'nodeAllocatableUpdatePeriodSeconds');
  const policies = ['File', 'None', 'ReadWriteOnceWithFSType'];
  errors.push(...oneOf(spec, { name: 'fsGroupPolicy', path: 'spec.fsGroupPolicy' }, policies));
  const audiences = new Set<string>();
  yield* judgeEach(judging, objectsAt(spec, 'tokenRequests'), (request, i) => {
    const at = `spec.tokenRequests[${i}]`;
    const audience = textAt(request, 'audience');
    if (audiences.has(audience)) return [duplicate(`${at}.audience`, audience)];
    audiences.add(audience);
    const seconds = valueAt(request, 'expirationSeconds');
    if (typeof seconds !== 'number') return [];
    const refuse = (detail: string): FieldError[] => [invalid(`${at}.expirationSeconds`, seconds, detail)];
    if (seconds < SHORTEST_TOKEN) return refuse('may not specify a duration less than 10 minutes');
    return seconds > LONGEST_TOKEN ? refuse('may not specify a duration larger than 2^32 seconds') : [];
  });
  yield* judgeEach(judging, textsAt(spec, 'volumeLifecycleModes'), (mode) => {
    if (mode === 'Persistent' || mode === 'Ephemeral') return [];
    return [unsupportedInOrder('spec.volumeLifecycleModes', mode, ['Persistent', 'Ephemeral'])];
  });
  if (typeof period === 'number' && period < 10) {
    const detail = 'must be greater than or equal to 10 seconds';
    errors.push(invalid('spec.nodeAllocatableUpdatePeriodSeconds', period, detail));
  }
  if (old === undefined) return errors;
  if (valueAt(spec, 'attachRequired') !== valueAt(old, 'spec', 'attachRequired')) {
    // Upstream's own spelling of the path.
    errors.push(invalid('spec.attachedRequired', valueAt(spec, 'attachRequired'), 'field is immutable'));
  }
  yield* judgeImmutable(judging, { object, old, path: 'spec.volumeLifecycleModes' });
  return errors;
}

function* validateCapacity(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const name = textAt(object, 'storageClassName');
  yield* judgeSelectorField(judging, object, { field: 'nodeTopology', at: '' });
  errors.push(...faults('storageClassName', name, checkSubdomain(name)));
  const capacity = readQuantity(valueAt(object, 'capacity'));
  if (capacity !== undefined && capacity.nano < 0n) {
    errors.push(invalid('capacity', valueAt(object, 'capacity'), 'must be greater than or equal to 0'));
  }
  if (old === undefined) return errors;
  yield* judgeImmutable(judging, { object, old, path: 'nodeTopology' });
  errors.push(...immutable({ object, old, path: 'storageClassName' }));
  return errors;
}

export const STORAGE_VALIDATORS: GroupValidators = {
  storageclasses: validateStorageClass,
  volumeattributesclasses: validateAttributesClass,
  volumeattachments: validateAttachment,
  csinodes: validateCsiNode,
  csidrivers: validateCsiDriver,
  csistoragecapacities: validateCapacity,
};
