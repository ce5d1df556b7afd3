/**
 * What of an applied configuration has no place in its kind, worded as structured-merge-diff words it: upstream refuses
 * such a configuration before it merges anything, whatever `fieldValidation` says.
 */
import { isJsonObject } from '../meta/own-property.ts';
import { ApiError } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';
import { keyText } from './to-field-set.ts';
import { listItems, memberSchema, rootSchema } from './topology.ts';

/**
 * `.spec.containers[name="a"].foo: field not declared in schema` for each field that the kind does not have: what is in
 * the configuration and no longer in its `pruned` copy.
 */
export function undeclaredFields(schema: Schema, config: unknown, pruned: unknown): string[] {
  const found: string[] = [];
  compare(rootSchema(schema), [config, pruned], '', found);
  return found;
}

function compare(
  schema: Schema | undefined,
  [said, kept]: readonly [unknown, unknown],
  path: string,
  found: string[],
): void {
  if (Array.isArray(said) && Array.isArray(kept)) {
    const type = schema?.['x-kubernetes-list-type'];
    const items = type === 'map' ? listItems(schema, said).items : undefined;
    said.forEach((item, i) => {
      const element = items?.[i]?.element ?? '';
      const step = element.startsWith('k:') ? keyText(element) : `[${i}]`;
      compare(schema?.items, [item, kept[i]], path + step, found);
    });
  } else if (isJsonObject(said) && isJsonObject(kept)) {
    for (const [key, member] of Object.entries(said)) {
      if (!Object.hasOwn(kept, key)) found.push(`${path}.${key}: field not declared in schema`);
      else compare(memberSchema(schema, key), [member, kept[key]], `${path}.${key}`, found);
    }
  }
}

/**
 * The refusal of a configuration that cannot be typed: 500 without a reason, as upstream answers an error that is no
 * Status. `whose` is `namespace/name; group/version, Kind=K`.
 */
export function untypedConfig(whose: string, problems: readonly string[]): ApiError {
  const text = problems.length === 1 ? problems[0] : `errors:\n${problems.map((one) => `  ${one}`).join('\n')}`;
  return new ApiError({ code: 500, message: `failed to create typed patch object (${whose}): ${text}` });
}
