/** Default values must themselves be what their schema wants (apiextensions schema/defaulting/validation.go). */
import { cloneJson } from '../../meta/deep-clone.ts';
import { deepEqual } from '../../meta/deep-equal.ts';
import type { FieldError } from '../../meta/status.ts';
import { pruneUnknown } from '../../schema/prune.ts';
import { validateSchema } from '../../schema/validate.ts';
import { invalid } from '../builtin/validation/field-errors.ts';
import type { RawSchema } from './crd.ts';
import { toSchema } from './crd-schema.ts';
import { childOf, propertiesOf } from './structural-rules.ts';

const META = new Set(['metadata', 'apiVersion', 'kind']);

/** Errors of all defaults in the (structural) schema of a whole object at `path`. */
export function defaultErrors(schema: RawSchema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  visit(schema, path, { root: true, insideMeta: false, errors });
  return errors;
}

interface Visit {
  readonly root: boolean;
  readonly insideMeta: boolean;
  readonly errors: FieldError[];
}

function visit(schema: RawSchema, path: string, { root, insideMeta, errors }: Visit): void {
  const whole = root || schema['x-kubernetes-embedded-resource'] === true;
  const value = schema['default'];
  if (value !== undefined && value !== null) {
    const field = `${path}.default`;
    const { default: _own, ...rest } = schema;
    const node = toSchema(rest);
    const pruned = cloneJson(value);
    if (!insideMeta && typeof pruned === 'object') pruneUnknown(node, pruned, { custom: true, part: true });
    if (!deepEqual(pruned, value)) errors.push(invalid(field, value, 'must not have unknown fields'));
    errors.push(...validateSchema(node, value, { custom: true, root: field }));
  }
  const items = childOf(schema, 'items');
  if (items !== undefined) visit(items, `${path}.items`, { root: false, insideMeta: insideMeta && !whole, errors });
  for (const [name, property] of propertiesOf(schema)) {
    const inside = whole ? META.has(name) : insideMeta;
    visit(property, `${path}.properties[${name}]`, { root: false, insideMeta: inside, errors });
  }
}
