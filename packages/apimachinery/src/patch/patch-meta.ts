/** What a type says of how its members are patched: upstream's struct tags, which the published schemas repeat. */
import { ApiError } from '../meta/status.ts';
import type { Schema } from '../schema/schema.ts';

export interface ListMeta {
  readonly items: Schema | undefined;
  readonly strategy: string;
  /** Empty for lists that are merged as sets, and for those that are not merged. */
  readonly mergeKey: string;
  /** The kind of Go's element type, for messages. */
  readonly kind: string;
}

const refused = (message: string): ApiError => new ApiError({ code: 500, message });

/**
 * The member of a struct; its strategy is `merge`, `replace`, or empty. Throws ApiError 500 for a field that the struct does
 * not have, and for maps.
 */
export function structMeta(
  schema: Schema | undefined,
  key: string,
): { readonly member: Schema; readonly strategy: string } {
  if (schema?.properties && Object.hasOwn(schema.properties, key)) {
    const member = schema.properties[key]!;
    const strategies = member['x-kubernetes-patch-strategy']?.split(',') ?? [];
    return { member, strategy: strategies.find((one) => one !== 'retainKeys') ?? '' };
  }
  const kind = goKind(schema);
  if (kind !== 'struct') {
    throw refused(`merging an object in json but data type is not struct, instead is: ${kind}`);
  }
  throw refused(`unable to find api field in struct ${structName(schema)} for the json field ${JSON.stringify(key)}`);
}

/** The same for a list. */
export function listMeta(schema: Schema | undefined, key: string): ListMeta {
  const { member, strategy } = structMeta(schema, key);
  if (member.type !== 'array' && member.type !== undefined) {
    throw refused(`expected slice or array type, but got: ${goKind(schema)}`);
  }
  const { items } = member;
  return { items, strategy, mergeKey: member['x-kubernetes-patch-merge-key'] ?? '', kind: goKind(items) };
}

const GO_KINDS = { array: 'slice', boolean: 'bool', number: 'float64' };

function goKind(schema: Schema | undefined): string {
  if (schema?.type === undefined) return 'struct';
  switch (schema.type) {
    case 'object':
      return schema.additionalProperties !== undefined && schema.properties === undefined ? 'map' : 'struct';
    case 'string':
      return schema.format === 'date-time' ? 'struct' : 'string';
    case 'integer':
      return schema.format === 'int64' ? 'int64' : 'int32';
    default:
      return GO_KINDS[schema.type];
  }
}

const structName = (schema: Schema | undefined): string => schema?.['x-coracle-name']?.split('.').at(-1) ?? '';
