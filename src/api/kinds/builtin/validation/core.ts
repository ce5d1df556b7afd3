/** Validation of the core group beside Pods. */
import { deepEqual } from '../../../meta/deep-equal.ts';
import { byteLength, checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { Pace, type Steps } from '../../../meta/steps.ts';
import { isUnqualifiedFinalizer, UNQUALIFIED_FINALIZER } from '../../../meta/validate-object-meta.ts';
import { isTrueAt, type JsonObject, listAt, objectAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { CORE_EVENT_VALIDATOR } from './events.ts';
import {
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  type Judging,
  judgeEach,
  oneOf,
  required,
} from './field-errors.ts';
import { validateLimitRange } from './limit-range.ts';
import { validatePod } from './pod.ts';
import { validatePodSpec } from './pod-spec.ts';
import { validateResourceQuota } from './resource-quota.ts';
import { validateService } from './services.ts';

/** ConfigMaps and Secrets hold at most 1 MiB. */
const MAX_DATA_BYTES = 1_048_576;
const DATA_KEY = /^[-._a-zA-Z0-9]+$/;
const DATA_KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/** The keys of one map of data, one by one, because there may be a hundred thousand; and the length of its texts. */
function* judgeData(judging: Judging, object: JsonObject, field: string): Steps<number> {
  const data = objectAt(object, field);
  const keys = Object.keys(data);
  if (judging.pace.due(keys.length)) yield;
  let units = 0;
  yield* judgeEach(judging, keys, (key) => {
    const value = data[key];
    if (typeof value === 'string') units += value.length;
    if (key.length > 253) return [invalid(`${field}[${key}]`, key, 'must be no more than 253 characters')];
    if (key === '.' || key === '..') return [invalid(`${field}[${key}]`, key, `may not be '${key}'`)];
    return DATA_KEY.test(key) ? NONE : [invalid(`${field}[${key}]`, key, DATA_KEY_RULE)];
  });
  return units;
}

/** Longest UTF-8 of one UTF-16 unit. */
const MAX_UNIT_BYTES = 3;

/** The bytes of all values. */
function* sizeOf(data: JsonObject, bytesOf: (text: string) => number, pace: Pace): Steps<number> {
  let size = 0;
  for (const key of Object.keys(data)) {
    const value = data[key];
    if (typeof value === 'string') size += bytesOf(value);
    if (pace.due()) yield;
  }
  return size;
}

const NONE: readonly FieldError[] = Object.freeze([]);

function decodedLength(base64: string): number {
  let length = base64.length;
  while (length > 0 && base64[length - 1] === '=') length--;
  return Math.floor((length * 3) / 4);
}

const tooLarge = (field: string): FieldError => ({
  type: 'FieldValueTooLong',
  field,
  detail: `may not be more than ${MAX_DATA_BYTES} bytes`,
});

/** Once `immutable` is true it stays, and so do the fields it guards. */
function validateImmutable(object: JsonObject, old: JsonObject | undefined, fields: readonly string[]): FieldError[] {
  if (old === undefined || !isTrueAt(old, 'immutable')) return [];
  const why = 'field is immutable when `immutable` is set';
  return [
    ...(isTrueAt(object, 'immutable') ? [] : [forbidden('immutable', why)]),
    ...fields
      .filter((field) => !deepEqual(valueAt(object, field) ?? {}, valueAt(old, field) ?? {}))
      .map((field) => forbidden(field, why)),
  ];
}

function* validateConfigMap(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const errors: FieldError[] = [];
  const judging: Judging = { errors, pace: new Pace() };
  const text = objectAt(object, 'data');
  const units = (yield* judgeData(judging, object, 'data')) + (yield* judgeData(judging, object, 'binaryData'));
  yield* judgeEach(judging, Object.keys(objectAt(object, 'binaryData')), (key) =>
    Object.hasOwn(text, key) ? [invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')] : NONE,
  );
  // Counted only where it may be too much.
  if (units * MAX_UNIT_BYTES > MAX_DATA_BYTES) {
    const { pace } = judging;
    const texts = yield* sizeOf(text, byteLength, pace);
    const size = texts + (yield* sizeOf(objectAt(object, 'binaryData'), decodedLength, pace));
    if (size > MAX_DATA_BYTES) errors.push(tooLarge('[]'));
  }
  if (old !== undefined) yield;
  errors.push(...validateImmutable(object, old, ['data', 'binaryData']));
  return errors;
}

/** Keys that a Secret of a known type must have; one of each inner list is enough. */
const SECRET_KEYS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'kubernetes.io/tls': [['tls.crt'], ['tls.key']],
  'kubernetes.io/dockercfg': [['.dockercfg']],
  'kubernetes.io/dockerconfigjson': [['.dockerconfigjson']],
  'kubernetes.io/basic-auth': [['username', 'password']],
  'kubernetes.io/ssh-auth': [['ssh-privatekey']],
};

function* validateSecret(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const type = textAt(object, 'type');
  const data = objectAt(object, 'data');
  const missing = (Object.hasOwn(SECRET_KEYS, type) ? SECRET_KEYS[type]! : []).filter(
    (keys) => !keys.some((key) => Object.hasOwn(data, key)),
  );
  const account = 'kubernetes.io/service-account.name';
  const errors: FieldError[] = [];
  const pace = new Pace();
  const units = yield* judgeData({ errors, pace }, object, 'data');
  const size = units > MAX_DATA_BYTES ? yield* sizeOf(data, decodedLength, pace) : 0;
  return [
    ...errors,
    ...(size > MAX_DATA_BYTES ? [tooLarge('data')] : []),
    ...missing.flatMap((keys) => keys.map((key) => required(`data[${key}]`))),
    ...(type === 'kubernetes.io/service-account-token' && textAt(object, 'metadata', 'annotations', account) === ''
      ? [required(`metadata.annotations[${account}]`)]
      : []),
    ...(old === undefined ? [] : immutable({ object, old, path: 'type' })),
    ...validateImmutable(object, old, ['data']),
  ];
}

function* validateNamespace(object: JsonObject): Steps<readonly FieldError[]> {
  const judging: Judging = { errors: [], pace: new Pace() };
  yield* judgeEach(judging, textsAt(object, 'spec', 'finalizers'), (finalizer, i) =>
    [...checkQualifiedName(finalizer), ...(isUnqualifiedFinalizer(finalizer) ? [UNQUALIFIED_FINALIZER] : [])].map(
      (detail) => invalid(`spec.finalizers[${i}]`, finalizer, detail),
    ),
  );
  return judging.errors;
}

const ACCESS_MODES = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];
const CLAIM_FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

function validateAccessModes(object: JsonObject, detail: string): FieldError[] {
  const modes = listAt(object, 'spec', 'accessModes');
  if (modes.length === 0) return [required('spec.accessModes', detail)];
  return modes.flatMap((mode, i) =>
    ACCESS_MODES.includes(String(mode))
      ? []
      : [
          {
            type: 'FieldValueNotSupported' as const,
            field: `spec.accessModes[${i}]`,
            value: mode,
            detail: `supported values: ${[...ACCESS_MODES]
              .sort()
              .map((m) => JSON.stringify(m))
              .join(', ')}`,
          },
        ],
  );
}

function validateClaim(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors = validateAccessModes(object, 'at least 1 access mode is required');
  if (valueAt(object, 'spec', 'resources', 'requests', 'storage') === undefined) {
    errors.push(required('spec.resources[storage]'));
  }
  errors.push(
    ...oneOf(objectAt(object, 'spec'), { name: 'volumeMode', path: 'spec.volumeMode' }, ['Block', 'Filesystem']),
  );
  if (old !== undefined && !deepEqual(fixedClaimFields(object, old), fixedClaimFields(old, old))) {
    errors.push(forbidden('spec', CLAIM_FIXED));
  }
  return errors;
}

/** The part of a claim's spec that stays: a volume may be bound and a class filled in once. */
function fixedClaimFields(claim: JsonObject, old: JsonObject): JsonObject {
  const { resources: _resources, volumeAttributesClassName: _class, ...rest } = objectAt(claim, 'spec');
  const fixed: Record<string, unknown> = rest;
  for (const once of ['volumeName', 'storageClassName']) {
    if (valueAt(old, 'spec', once) === undefined || valueAt(old, 'spec', once) === '') delete fixed[once];
  }
  return fixed;
}

function validateVolume(object: JsonObject): readonly FieldError[] {
  const errors = validateAccessModes(object, '');
  if (valueAt(object, 'spec', 'capacity', 'storage') === undefined) errors.push(required('spec.capacity'));
  return errors;
}

function validateReplicationController(object: JsonObject): Steps<readonly FieldError[]> {
  return validatePodSpec(valueAt(object, 'spec', 'template', 'spec'), {
    path: 'spec.template.spec',
    restartPolicies: ['Always'],
  });
}

export const CORE_VALIDATORS: GroupValidators = {
  pods: validatePod,
  podtemplates: (object) => validatePodSpec(valueAt(object, 'template', 'spec'), { path: 'template.spec' }),
  configmaps: validateConfigMap,
  secrets: validateSecret,
  services: validateService,
  namespaces: validateNamespace,
  events: CORE_EVENT_VALIDATOR,
  persistentvolumeclaims: validateClaim,
  persistentvolumes: validateVolume,
  replicationcontrollers: validateReplicationController,
  limitranges: validateLimitRange,
  resourcequotas: validateResourceQuota,
};
