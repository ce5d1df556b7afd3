/** Paths, modes and references that stand in volumes and in variables (core/validation). */
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { formatQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { type JsonObject, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { faults, invalid, required, unsupported } from '@coracle/apimachinery/validation/field-errors';

const MAX_MODE = 0o777;
const MODE_RULE = 'must be a number between 0 and 0777 (octal), both inclusive';

/** The mode of a file, where one is given. */
export function modeErrors(holder: unknown, field: string, path: string): FieldError[] {
  const mode = valueAt(holder, field);
  return typeof mode === 'number' && (mode < 0 || mode > MAX_MODE)
    ? [invalid(`${path}.${field}`, mode, MODE_RULE)]
    : [];
}

/** A path that goes nowhere up. */
export const backstepErrors = (path: string, at: string): FieldError[] =>
  path.split('/').includes('..') ? [invalid(at, path, "must not contain '..'")] : [];

/** A path below something. */
export const descendingErrors = (path: string, at: string): FieldError[] => [
  ...(path.startsWith('/') ? [invalid(at, path, 'must be a relative path')] : []),
  ...backstepErrors(path, at),
];

/** A file that a kubelet writes: names that begin with `..` are its own. */
export function fileErrors(path: string, at: string): FieldError[] {
  const errors = descendingErrors(path, at);
  if (path.startsWith('..') && !path.startsWith('../')) errors.push(invalid(at, path, "must not start with '..'"));
  return errors;
}

/** One key of a ConfigMap or Secret as a file. */
export function keyErrors(item: JsonObject, at: string): FieldError[] {
  return [
    ...['key', 'path'].flatMap((field) => (textAt(item, field) === '' ? [required(`${at}.${field}`)] : [])),
    ...fileErrors(textAt(item, 'path'), `${at}.path`),
    ...modeErrors(item, 'mode', at),
  ];
}

const OF_ALL = ['metadata.name', 'metadata.namespace', 'metadata.uid'];
const LABELLED = ['metadata.annotations', 'metadata.labels'];
/** The fields of a Pod that a variable may have; files have others. */
export const VARIABLE_FIELDS = [
  ...OF_ALL,
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
const FILE_FIELDS = [...OF_ALL, ...LABELLED];
const LABELS = new Set([
  ...VARIABLE_FIELDS,
  ...LABELLED,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
  'spec.host',
]);
const SUBSCRIPT = /^(.+?)\['(.*)'\]$/s;

/** A field of the Pod: `metadata.name`, `metadata.labels['app']`. */
export function fieldErrors(selector: JsonObject, fields: readonly string[], at: string): FieldError[] {
  const version = textAt(selector, 'apiVersion');
  const label = textAt(selector, 'fieldPath');
  if (version === '') return [required(`${at}.apiVersion`)];
  if (label === '') return [required(`${at}.fieldPath`)];
  const refuse = (why: string): FieldError[] => [
    invalid(`${at}.fieldPath`, label, `error converting fieldPath: ${why}`),
  ];
  if (version !== 'v1') return refuse(`unsupported pod version: ${version}`);
  const [, path = '', key = ''] = SUBSCRIPT.exec(label) ?? [];
  if (path !== '') {
    if (!LABELLED.includes(path)) return refuse(`field label does not support subscript: ${label}`);
    return faults(at, key, checkQualifiedName(path === 'metadata.annotations' ? key.toLowerCase() : key));
  }
  if (!LABELS.has(label)) return refuse(`field label not supported: ${label}`);
  const field = label === 'spec.host' ? 'spec.nodeName' : label;
  return fields.includes(field) ? [] : [unsupported(`${at}.fieldPath`, field, fields)];
}

const RESOURCES = ['limits', 'requests'].flatMap((list) =>
  ['cpu', 'memory', 'ephemeral-storage'].map((name) => `${list}.${name}`),
);
const HUGE_PAGES = /^(limits|requests)\.hugepages-/;
const SIZES = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'].map((unit) => `1${unit}`);

/** What a container may use of a resource; a file must name the container. */
export function resourceErrors(selector: JsonObject, at: string, isFile: boolean): FieldError[] {
  const resource = textAt(selector, 'resource');
  const errors: FieldError[] = [];
  if (isFile && textAt(selector, 'containerName') === '') errors.push(required(`${at}.containerName`));
  else if (resource === '') errors.push(required(`${at}.resource`));
  else if (!RESOURCES.includes(resource) && !HUGE_PAGES.test(resource)) {
    errors.push(unsupported(`${at}.resource`, resource, RESOURCES));
  }
  const divisor = readQuantity(valueAt(selector, 'divisor'));
  if (divisor === undefined || divisor.nano === 0n) return errors;
  const kind = HUGE_PAGES.test(resource) ? 'hugepages' : resource.slice(resource.indexOf('.') + 1);
  const [name, allowed] = DIVISORS[kind] ?? ['', undefined];
  if (allowed === undefined || allowed.includes(formatQuantity(divisor))) return errors;
  const values = name === 'cpu' ? '1m and 1' : SIZES.join(', ');
  const detail = `only divisor's values ${values} are supported with the ${name} resource`;
  return [...errors, invalid(`${at}.divisor`, resource, detail)];
}

const DIVISORS: Readonly<Record<string, readonly [name: string, allowed: readonly string[]]>> = {
  cpu: ['cpu', ['1m', '1']],
  memory: ['memory', SIZES],
  'ephemeral-storage': ['local ephemeral storage', SIZES],
  hugepages: ['hugepages', SIZES],
};

/** One file of the downward API. Upstream tells of it at the volume, without its index. */
export function downwardErrors(file: JsonObject, at: string): FieldError[] {
  const path = textAt(file, 'path');
  const errors = path === '' ? [required(`${at}.path`)] : [];
  errors.push(...fileErrors(path, `${at}.path`));
  const field = valueAt(file, 'fieldRef');
  const resource = valueAt(file, 'resourceFieldRef');
  if (field != null) {
    errors.push(...fieldErrors(field as JsonObject, FILE_FIELDS, `${at}.fieldRef`));
    if (resource != null) {
      errors.push(invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'));
    }
  } else if (resource != null) {
    errors.push(...resourceErrors(resource as JsonObject, `${at}.resourceFieldRef`, true));
  } else errors.push(required(at, 'one of fieldRef and resourceFieldRef is required'));
  return [...errors, ...modeErrors(file, 'mode', at)];
}
