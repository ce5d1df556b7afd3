/** Validation of the core group beside Pods. */
import { deepEqual } from '../../../meta/deep-equal.ts';
import { byteLength, checkQualifiedName } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { isUnqualifiedFinalizer, UNQUALIFIED_FINALIZER } from '../../../meta/validate-object-meta.ts';
import { isTrueAt, type JsonObject, listAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { CORE_EVENT_VALIDATOR } from './events.ts';
import {
  duplicate,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
} from './field-errors.ts';
import { validateLimitRange } from './limit-range.ts';
import { validatePod } from './pod.ts';
import { PROTOCOLS, validatePodSpec } from './pod-spec.ts';
import { validateResourceQuota } from './resource-quota.ts';

/** ConfigMaps and Secrets hold at most 1 MiB. */
const MAX_DATA_BYTES = 1_048_576;
const DATA_KEY = /^[-._a-zA-Z0-9]+$/;
const DATA_KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

function validateKeys(object: JsonObject, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const key of Object.keys(objectAt(object, field))) {
    if (key.length > 253) errors.push(invalid(`${field}[${key}]`, key, 'must be no more than 253 characters'));
    else if (key === '.' || key === '..') errors.push(invalid(`${field}[${key}]`, key, `may not be '${key}'`));
    else if (!DATA_KEY.test(key)) errors.push(invalid(`${field}[${key}]`, key, DATA_KEY_RULE));
  }
  return errors;
}

/** Longest UTF-8 of one UTF-16 unit. */
const MAX_UNIT_BYTES = 3;

/** The bytes of all values; an upper bound when even that is within what is allowed. */
function dataSize(object: JsonObject, fields: readonly string[]): number {
  let units = 0;
  const values = fields.map((field) => valuesOf(objectAt(object, field)));
  for (const list of values) for (const value of list) if (typeof value === 'string') units += value.length;
  if (units * MAX_UNIT_BYTES <= MAX_DATA_BYTES) return units * MAX_UNIT_BYTES;
  let size = 0;
  for (const [i, field] of fields.entries()) {
    const base64 = field === 'binaryData';
    for (const value of values[i]!) {
      if (typeof value === 'string') size += base64 ? decodedLength(value) : byteLength(value);
    }
  }
  return size;
}

/** As Object.values, which on an object of very many members takes several times as long. */
const valuesOf = (object: JsonObject): unknown[] => Object.keys(object).map((key) => object[key]);

const decodedLength = (base64: string): number => Math.floor((base64.replace(/=+$/, '').length * 3) / 4);

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

function validateConfigMap(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const text = objectAt(object, 'data');
  const shared = Object.keys(objectAt(object, 'binaryData')).filter((key) => Object.hasOwn(text, key));
  return [
    ...validateKeys(object, 'data'),
    ...validateKeys(object, 'binaryData'),
    ...shared.map((key) => invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')),
    ...(dataSize(object, ['data', 'binaryData']) > MAX_DATA_BYTES ? [tooLarge('[]')] : []),
    ...validateImmutable(object, old, ['data', 'binaryData']),
  ];
}

/** Keys that a Secret of a known type must have; one of each inner list is enough. */
const SECRET_KEYS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'kubernetes.io/tls': [['tls.crt'], ['tls.key']],
  'kubernetes.io/dockercfg': [['.dockercfg']],
  'kubernetes.io/dockerconfigjson': [['.dockerconfigjson']],
  'kubernetes.io/basic-auth': [['username', 'password']],
  'kubernetes.io/ssh-auth': [['ssh-privatekey']],
};

function validateSecret(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const type = textAt(object, 'type');
  const data = objectAt(object, 'data');
  const size = Object.values(data).reduce<number>((n, v) => n + (typeof v === 'string' ? decodedLength(v) : 0), 0);
  const missing = (Object.hasOwn(SECRET_KEYS, type) ? SECRET_KEYS[type]! : []).filter(
    (keys) => !keys.some((key) => Object.hasOwn(data, key)),
  );
  const account = 'kubernetes.io/service-account.name';
  return [
    ...validateKeys(object, 'data'),
    ...(size > MAX_DATA_BYTES ? [tooLarge('data')] : []),
    ...missing.flatMap((keys) => keys.map((key) => required(`data[${key}]`))),
    ...(type === 'kubernetes.io/service-account-token' && textAt(object, 'metadata', 'annotations', account) === ''
      ? [required(`metadata.annotations[${account}]`)]
      : []),
    ...(old === undefined ? [] : immutable({ object, old, path: 'type' })),
    ...validateImmutable(object, old, ['data']),
  ];
}

const SERVICE_TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];

function validateService(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const type = textAt(spec, 'type');
  const ports = objectsAt(spec, 'ports');
  const headless = textAt(spec, 'clusterIP') === 'None';
  const errors: FieldError[] = [
    ...oneOf(spec, { name: 'type', path: 'spec.type' }, SERVICE_TYPES),
    ...oneOf(spec, { name: 'sessionAffinity', path: 'spec.sessionAffinity' }, ['ClientIP', 'None']),
  ];
  if (ports.length === 0 && !headless && type !== 'ExternalName') errors.push(required('spec.ports'));
  if (type === 'ExternalName' && textAt(spec, 'externalName') === '') errors.push(required('spec.externalName'));
  if (headless && (type === 'NodePort' || type === 'LoadBalancer')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`));
  }
  errors.push(...validateServicePorts(ports));
  const before = textAt(old, 'spec', 'clusterIP');
  const now = textAt(spec, 'clusterIP');
  const keepsIp = textAt(old, 'spec', 'type') !== 'ExternalName' && type !== 'ExternalName';
  if (before !== '' && before !== now && keepsIp) {
    errors.push(invalid('spec.clusterIPs[0]', now, 'may not change once set'));
  }
  return errors;
}

function validateServicePorts(ports: readonly JsonObject[]): FieldError[] {
  const names = new Set<string>();
  const numbers = new Set<string>();
  return ports.flatMap((port, i) => {
    const at = `spec.ports[${i}]`;
    const errors: FieldError[] = [];
    const name = textAt(port, 'name');
    if (name === '' && ports.length > 1) errors.push(required(`${at}.name`));
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    const number = valueAt(port, 'port');
    if (!isPort(number)) errors.push(invalid(`${at}.port`, number ?? 0, PORT_RANGE));
    errors.push(...oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS));
    const key = `${textAt(port, 'protocol')}/${String(number)}`;
    if (numbers.has(key)) errors.push(duplicate(at, port));
    numbers.add(key);
    const target = valueAt(port, 'targetPort');
    if (typeof target === 'number' && !isPort(target)) errors.push(invalid(`${at}.targetPort`, target, PORT_RANGE));
    return errors;
  });
}

function validateNamespace(object: JsonObject): readonly FieldError[] {
  return textsAt(object, 'spec', 'finalizers').flatMap((finalizer, i) =>
    [...checkQualifiedName(finalizer), ...(isUnqualifiedFinalizer(finalizer) ? [UNQUALIFIED_FINALIZER] : [])].map(
      (detail) => invalid(`spec.finalizers[${i}]`, finalizer, detail),
    ),
  );
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

function validateReplicationController(object: JsonObject): readonly FieldError[] {
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
