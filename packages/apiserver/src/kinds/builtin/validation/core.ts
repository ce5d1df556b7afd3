/** Validation of the core group beside Pods. */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { byteLength, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isUnqualifiedFinalizer, UNQUALIFIED_FINALIZER } from '@coracle/apimachinery/meta/validate-object-meta';
import { locateInJson } from '@coracle/apimachinery/schema/scan-json';
import { isTrueAt, type JsonObject, objectAt, textAt, textsAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  forbidden,
  immutable,
  invalid,
  invalidEach,
  required,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';

const JSON_KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
};
const HIDDEN = '<secret contents redacted>';
/** Where in the text it is, upstream does not say. */
const PLACE = / \(line \d+, column \d+\)$/;

/** What is wrong with the key of a Secret that its type asks for; that it is there is validated elsewhere. */
function contentErrors(secret: JsonObject): readonly FieldError[] {
  const type = textAt(secret, 'type');
  const key = Object.hasOwn(JSON_KEYS, type) ? JSON_KEYS[type]! : '';
  const encoded = key === '' ? undefined : valueAt(secret, 'data', key);
  if (typeof encoded !== 'string') return [];
  const text = textOf(encoded);
  if (text === undefined) return [];
  const problem =
    locateInJson(text).error?.replace(PLACE, '') ?? (/^\s*[{n]/.test(text) ? undefined : 'must be a JSON object');
  return problem === undefined ? [] : [invalid(`data[${key}]`, HIDDEN, problem)];
}

/** Undefined where it is no base64, which the schema tells of. */
function textOf(encoded: string): string | undefined {
  try {
    return new TextDecoder().decode(decodeBase64(encoded));
  } catch {
    return undefined;
  }
}

const KEY = /^[-._a-zA-Z0-9]+$/;
const KEY_RULE =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const LONGEST_KEY = 253;

/** What is wrong with a key of a ConfigMap or Secret (validation.IsConfigMapKey). */
function checkDataKey(key: string): readonly string[] {
  if (key.length <= LONGEST_KEY && KEY.test(key) && !key.startsWith('.')) return [];
  const errors: string[] = [];
  if (key.length > LONGEST_KEY) errors.push(`must be no more than ${LONGEST_KEY} characters`);
  if (!KEY.test(key)) errors.push(KEY_RULE);
  if (key === '.') errors.push("must not be '.'");
  else if (key === '..') errors.push("must not be '..'");
  else if (key.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** ConfigMaps and Secrets hold at most 1 MiB. */
const MAX_DATA_BYTES = 1_048_576;

/** The keys of one map of data, one by one, because there may be a hundred thousand; and the length of its texts. */
function validateData(errors: FieldError[], object: JsonObject, field: string): number {
  const data = objectAt(object, field);
  const keys = Object.keys(data);
  let units = 0;
  validateEach(errors, keys, (key) => {
    const value = data[key];
    if (typeof value === 'string') units += value.length;
    const details = checkDataKey(key);
    return details.length === 0 ? NONE : invalidEach(`${field}[${key}]`, key, details);
  });
  return units;
}

/** Longest UTF-8 of one UTF-16 unit. */
const MAX_UNIT_BYTES = 3;

/** The bytes of all values. */
function sizeOf(data: JsonObject, bytesOf: (text: string) => number): number {
  let size = 0;
  for (const key of Object.keys(data)) {
    const value = data[key];
    if (typeof value === 'string') size += bytesOf(value);
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
function validateImmutableData(
  errors: FieldError[],
  { object, old, fields }: { object: JsonObject; old: JsonObject | undefined; fields: readonly string[] },
): void {
  if (old === undefined || !isTrueAt(old, 'immutable')) return;
  const why = 'field is immutable when `immutable` is set';
  if (!isTrueAt(object, 'immutable')) errors.push(forbidden('immutable', why));
  for (const field of fields) {
    const same = deepEqual(valueAt(object, field) ?? {}, valueAt(old, field) ?? {});
    if (!same) errors.push(forbidden(field, why));
  }
}

export function validateConfigMap(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const text = objectAt(object, 'data');
  const units = validateData(errors, object, 'data') + validateData(errors, object, 'binaryData');
  validateEach(errors, Object.keys(objectAt(object, 'binaryData')), (key) =>
    Object.hasOwn(text, key) ? [invalid(`data[${key}]`, key, 'duplicate of key present in binaryData')] : NONE,
  );
  // Counted only where it may be too much.
  if (units * MAX_UNIT_BYTES > MAX_DATA_BYTES) {
    const texts = sizeOf(text, byteLength);
    const size = texts + sizeOf(objectAt(object, 'binaryData'), decodedLength);
    if (size > MAX_DATA_BYTES) errors.push(tooLarge('[]'));
  }
  validateImmutableData(errors, { object, old, fields: ['data', 'binaryData'] });
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

export function validateSecret(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const type = textAt(object, 'type');
  const data = objectAt(object, 'data');
  const missing = (Object.hasOwn(SECRET_KEYS, type) ? SECRET_KEYS[type]! : []).filter(
    (keys) => !keys.some((key) => Object.hasOwn(data, key)),
  );
  const account = 'kubernetes.io/service-account.name';
  const errors: FieldError[] = [];
  const units = validateData(errors, object, 'data');
  const size = units > MAX_DATA_BYTES ? sizeOf(data, decodedLength) : 0;
  if (size > MAX_DATA_BYTES) errors.push(tooLarge('data'));
  for (const keys of missing) for (const key of keys) errors.push(required(`data[${key}]`));
  if (missing.length === 0 && size <= MAX_DATA_BYTES) errors.push(...contentErrors(object));
  if (type === 'kubernetes.io/service-account-token' && textAt(object, 'metadata', 'annotations', account) === '') {
    errors.push(required(`metadata.annotations[${account}]`));
  }
  if (old !== undefined) errors.push(...immutable({ object, old, path: 'type' }));
  validateImmutableData(errors, { object, old, fields: ['data'] });
  return errors;
}

export function validateNamespace(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateEach(errors, textsAt(object, 'spec', 'finalizers'), (finalizer, i) =>
    [...checkQualifiedName(finalizer), ...(isUnqualifiedFinalizer(finalizer) ? [UNQUALIFIED_FINALIZER] : [])].map(
      (detail) => invalid(`spec.finalizers[${i}]`, finalizer, detail),
    ),
  );
  return errors;
}
