/** Merging what an ApplyConfiguration mutation builds into the object (policy/mutating/patch/smd). */
import { mergeObjects } from '@coracle/apimachinery/apply/merge';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { OBJECT_META_SCHEMA } from '@coracle/apimachinery/schema/object-meta-schema';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';

/**
 * The object with `configuration` laid over it by list and map types; owns nothing. Throws Error for fields that the kind
 * does not have, and for values that could only be replaced as a whole.
 */
export function mergeConfiguration(
  info: ResourceInfo,
  object: Readonly<UnstructuredObject>,
  configuration: JsonObject,
): UnstructuredObject {
  const config: JsonObject = {
    ...(cloneJson(configuration) as JsonObject),
    apiVersion: apiVersionOf(info),
    kind: info.kind,
  };
  const unknown = pruneUnknown(info.schema, cloneJson(config), { custom: info.strategy.custom });
  if (unknown.length > 0) {
    const problems = unknown.map((path) => `.${path}: field not declared in schema`);
    const text = problems.length === 1 ? problems[0] : `errors:\n${problems.map((one) => `  ${one}`).join('\n')}`;
    throw new Error(`error applying patch: failed to convert patch object to typed object: ${text}`);
  }
  const atomics = findAtomics(info.schema, config, '');
  if (atomics.length > 0) {
    throw new Error(
      `error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`,
    );
  }
  return mergeObjects(info.schema, object, config) as UnstructuredObject;
}

/** Paths of values that an owner has as a whole: setting a part of one would drop the rest. */
function findAtomics(schema: Schema | undefined, value: unknown, path: string): string[] {
  if (Array.isArray(value)) {
    const type = schema?.['x-kubernetes-list-type'] ?? 'atomic';
    if (type === 'atomic') return [path];
    return value.flatMap((item, i) => findAtomics(schema?.items, item, `${path}${itemPath(schema, item, i)}`));
  }
  if (!isJsonObject(value)) return [];
  if (schema?.['x-kubernetes-map-type'] === 'atomic') return [path];
  return Object.entries(value).flatMap(([key, member]) => findAtomics(memberOf(schema, key), member, `${path}.${key}`));
}

function memberOf(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema?.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  if (key === 'metadata') return OBJECT_META_SCHEMA;
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** As fieldpath prints an item: `[name="a"]`, `[="value"]`. */
function itemPath(schema: Schema | undefined, item: unknown, index: number): string {
  if (schema?.['x-kubernetes-list-type'] === 'set') return `[=${JSON.stringify(item)}]`;
  const keys = schema?.['x-kubernetes-list-map-keys'] ?? [];
  if (!isJsonObject(item) || keys.length === 0) return `[${index}]`;
  return `[${keys.map((key) => `${key}=${JSON.stringify(item[key])}`).join(',')}]`;
}
