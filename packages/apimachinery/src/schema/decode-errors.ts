/**
 * What Go's JSON decoding would say about a value of a built-in kind: the first member whose JSON type does not fit its
 * Go type. Only types are validated here, no business rules.
 */
import type { GroupVersionKind } from '../meta/gvk.ts';
import { hasOwnDecoder, problemText } from './decode-walk.ts';
import type { OddNumbers } from './scan-json.ts';
import { FORMS, type Forms, formOf, type Schema } from './schema.ts';
import { oncePerSchema } from './schema-reach.ts';

/**
 * The message of the 400 BadRequest, or undefined when the value decodes. `numbers` are those that the document spells
 * in a way of its own: Go validates integers by their spelling.
 */
export function decodeErrors(
  schema: Schema,
  value: unknown,
  { version, kind }: GroupVersionKind,
  numbers?: OddNumbers,
): string | undefined {
  const problem = decodeProblem(schema, value, numbers);
  return problem && `${kind} in version "${version}" cannot be handled as a ${kind}: ${problem}`;
}

/** The same without the sentence around it: `spec.replicas: expected int32, got string`. */
export function decodeProblem(schema: Schema, value: unknown, numbers?: OddNumbers): string | undefined {
  return fitsOf(schema)(value) && !numbers?.size ? undefined : problemText(schema, value, numbers);
}

type Fits = (value: unknown) => boolean;

/** The decision alone, compiled: it runs on every write, the walk that words the problem only on bad ones. */
const fitsOf = oncePerSchema(compileFits);

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
  const { items } = schema;
  if (items === undefined) return (value) => Array.isArray(value) || value == null;
  let item: Fits | undefined;
  return (value) => {
    if (!Array.isArray(value)) return value == null;
    item ??= fitsOf(items);
    for (const element of value) if (!item(element)) return false;
    return true;
  };
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
  return (value) => {
    if (typeof value !== 'object' || value === null) return value == null;
    if (Array.isArray(value)) return false;
    const object = value as Record<string, unknown>;
    for (const key of Object.keys(object)) {
      const member = members.get(key) ?? memberOf(key);
      if (member !== undefined && !member(object[key])) return false;
    }
    return true;
  };
}
