/** Formats of a definition that nobody checks: allowed, and worth a word (registry/customresourcedefinition/strategy.go). */
import { isJsonObject } from '../../meta/own-property.ts';
import { formatCheck } from '../../schema/formats.ts';
import { asCrd, type RawSchema } from './crd.ts';
import { branchesOf, childOf, propertiesOf } from './structural-rules.ts';

/** Formats of numbers, which the type itself bounds. */
const OF_NUMBERS = new Set(['int32', 'int64', 'uint32', 'uint64', 'float', 'double']);

/** One warning for each unknown format. */
export function formatWarnings(object: Readonly<Record<string, unknown>>): string[] {
  if (!isJsonObject(object['spec'])) return [];
  const found = new Set<string>();
  for (const { schema } of asCrd(object as never).spec.versions ?? []) {
    if (schema?.openAPIV3Schema !== undefined) collect(schema.openAPIV3Schema, found);
  }
  return [...found].map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

function collect(schema: RawSchema, found: Set<string>): void {
  const { format } = schema;
  if (typeof format === 'string' && format !== '' && !OF_NUMBERS.has(format) && !formatCheck(format)) found.add(format);
  for (const [, property] of propertiesOf(schema)) collect(property, found);
  for (const key of ['items', 'additionalProperties', 'not']) {
    const child = childOf(schema, key);
    if (child !== undefined) collect(child, found);
  }
  for (const key of ['allOf', 'anyOf', 'oneOf']) for (const branch of branchesOf(schema, key)) collect(branch, found);
}
