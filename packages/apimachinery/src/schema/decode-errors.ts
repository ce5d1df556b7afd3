/**
 * What Go's JSON decoding would say about a value of a built-in kind: the first member whose JSON type does not fit its
 * Go type. Only types are validated here, no business rules.
 */
import { hasOwnDecoder, problemText } from './decode-walk.ts';
import type { OddNumbers } from './scan-json.ts';
import { FORMS, type Forms, formOf, type Schema } from './schema.ts';

export interface ObjectKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/**
 * The message of the 400 BadRequest, or undefined when the value decodes. `numbers` are those that the document spells
 * in a way of its own: Go validates integers by their spelling.
 */
export function decodeErrors(
  schema: Schema,
  value: unknown,
  gvk: ObjectKind,
  numbers?: OddNumbers,
): string | undefined {
  return asSentence(decodeProblem(schema, value, numbers), gvk);
}

const asSentence = (problem: string | undefined, { kind, version }: ObjectKind): string | undefined =>
  problem && `${kind} in version "${version}" cannot be handled as a ${kind}: ${problem}`;

/** The same without the sentence around it: `spec.replicas: expected int32, got string`. */
export function decodeProblem(schema: Schema, value: unknown, numbers?: OddNumbers): string | undefined {
  return fitsOf(schema)(value) && !numbers?.size ? undefined : problemText(schema, value, numbers);
}

type Fits = (value: unknown) => boolean;
const FITS = new WeakMap<Schema, Fits>();

/** The decision alone, compiled: it runs on every write, the walk that words the problem only on bad ones. */
function fitsOf(schema: Schema): Fits {
  let fits = FITS.get(schema);
  if (fits === undefined) {
    // Members are looked up when first met: a cyclic schema would not end otherwise.
    fits = compileFits(schema);
    FITS.set(schema, fits);
  }
  return fits;
}

function compileFits(schema: Schema): Fits {
  if (schema[FORMS] !== undefined) return fitsForms(schema[FORMS], schema);
  const isPlain = !hasOwnDecoder(schema);
  if (isPlain && schema.type === 'object') return fitsObject(schema);
  if (isPlain && schema.type === 'array') return fitsArray(schema);
  if (isPlain && schema.type === 'boolean') return (value) => typeof value === 'boolean' || value == null;
  if (isPlain && schema.type === 'string' && schema.format === undefined && !schema['x-kubernetes-int-or-string']) {
    return (value) => typeof value === 'string' || value == null;
  }
  return (value) => problemText(schema, value) === undefined;
}

function fitsForms(forms: Forms, schema: Schema): Fits {
  return (value) => {
    const form = formOf(forms, value);
    return form === undefined ? problemText(schema, value) === undefined : fitsOf(form)(value);
  };
}

function fitsArray(schema: Schema): Fits {
  const items = schema.items;
  if (items === undefined) return (value) => Array.isArray(value) || value == null;
  let item: Fits | undefined;
  const fits: Fits = (value) => {
    if (!Array.isArray(value)) return value == null;
    item ??= fitsOf(items);
    for (const element of value) if (!item(element)) return false;
    return true;
  };
  return fits;
}

function fitsObject(schema: Schema): Fits {
  const { properties } = schema;
  const rest = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  const members = new Map<string, Fits>();
  const memberOf = (key: string): Fits | undefined => {
    const isProperty = properties !== undefined && Object.hasOwn(properties, key);
    const member = isProperty ? properties[key] : rest;
    if (member === undefined) return undefined;
    const fits = fitsOf(member);
    // Names of a map are the user's: only those of the schema are worth keeping.
    if (isProperty) members.set(key, fits);
    return fits;
  };
  const fits: Fits = (value) => {
    if (typeof value !== 'object' || value === null) return value == null;
    if (Array.isArray(value)) return false;
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) {
      const member = members.get(key) ?? memberOf(key);
      if (member !== undefined && !member(object[key])) return false;
    }
    return true;
  };
  return fits;
}
