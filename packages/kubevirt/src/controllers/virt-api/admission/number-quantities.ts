/**
 * Amounts that were written as numbers (`cpu: 2.2`), in the text that Go makes of them: upstream's mutating webhooks send
 * back what they have decoded, so that a number that is no whole one reaches the schema as text. One that no quantity can
 * hold stays as it is: the schema refuses it by its place.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { isQuantity, quantityText } from '@coracle/apimachinery/quantity/quantity';
import { isQuantitySchema, type Schema } from '@coracle/apimachinery/schema/schema';
import { kubevirtResources } from '../../../kinds/resources.ts';

/** A copy of an object of that kind in which they are replaced. */
export function withTextQuantities(kind: string, object: ReadonlyObject): KubeObject {
  const next = cloneJson(object) as KubeObject & { spec?: unknown };
  writeNumbersAsQuantities(kind, next);
  return next;
}

/** Replaces them in the spec of an object of that kind, which is changed. */
export function writeNumbersAsQuantities(kind: string, object: { spec?: unknown }): void {
  const info = kubevirtResources().find((one) => one.kind === kind);
  const schema = info?.schema.properties?.['spec'];
  if (schema !== undefined) walk(schema, object.spec);
}

function walk(schema: Schema, value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const isList = Array.isArray(value);
  for (const key of Object.keys(value)) {
    const member = (value as Record<string, unknown>)[key];
    const below = isList ? schema.items : memberSchema(schema, key);
    if (below === undefined) continue;
    if (typeof member === 'number' && isQuantitySchema(below))
      (value as Record<string, unknown>)[key] = isQuantity(String(member)) ? quantityText(String(member)) : member;
    else if (isList || isJsonObject(member) || Array.isArray(member)) walk(below, member);
  }
}

function memberSchema({ properties, additionalProperties }: Schema, key: string): Schema | undefined {
  if (properties && Object.hasOwn(properties, key)) return properties[key];
  return typeof additionalProperties === 'object' ? additionalProperties : undefined;
}
