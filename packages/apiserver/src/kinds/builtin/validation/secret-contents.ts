/** What the contents of a Secret that holds credentials of registries must be: a JSON object (core/validation). */
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { locateInJson } from '@coracle/apimachinery/schema/scan-json';
import { type JsonObject, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { invalid } from '@coracle/apimachinery/validation/field-errors';

const JSON_KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
};
const HIDDEN = '<secret contents redacted>';
/** Where in the text it is, upstream does not say. */
const PLACE = / \(line \d+, column \d+\)$/;

/** What is wrong with the key of a Secret that its type asks for; that it is there is validated elsewhere. */
export function contentErrors(secret: JsonObject): readonly FieldError[] {
  const type = textAt(secret, 'type');
  const key = Object.hasOwn(JSON_KEYS, type) ? JSON_KEYS[type]! : '';
  const encoded = key === '' ? undefined : valueAt(secret, 'data', key);
  if (typeof encoded !== 'string') return [];
  const text = textOf(encoded);
  if (text === undefined) return [];
  const fault =
    locateInJson(text).error?.replace(PLACE, '') ?? (/^\s*[{n]/.test(text) ? undefined : 'must be a JSON object');
  return fault === undefined ? [] : [invalid(`data[${key}]`, HIDDEN, fault)];
}

/** Undefined where it is no base64, which the schema tells of. */
function textOf(encoded: string): string | undefined {
  try {
    return new TextDecoder().decode(decodeBase64(encoded));
  } catch {
    return undefined;
  }
}
