/**
 * Objects as they lie in the store and as one version shows them. What lies there was written under some version of the
 * definition, perhaps long ago: on the way out it is pruned and given defaults by the schema of its own version, changed
 * to the wanted one, and pruned again (apiextensions schemaCoercingDecoder and -Converter).
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { decodeProblem } from '@coracle/apimachinery/schema/decode-errors';
import { applyDefaults, dropNulls } from '@coracle/apimachinery/schema/defaults';
import { OBJECT_META_SCHEMA } from '@coracle/apimachinery/schema/object-meta-schema';
import { pruneUnknown } from '@coracle/apimachinery/schema/prune';
import type { Schema } from '@coracle/apimachinery/schema/schema';

type JsonObject = Record<string, unknown>;

export interface StoredShapes {
  apiVersionOf(version: string): string;
  /** A stored object with today's defaults and without what its schema no longer knows; itself when it is so already. */
  completed(object: Readonly<JsonObject>): JsonObject;
  /** The object in `version`, without what that version does not know; itself when nothing is to be changed. */
  shown(object: Readonly<JsonObject>, version: string): JsonObject;
}

/** Makes the shapes of one definition; `schemas` by version name. */
export function createStoredShapes(group: string, schemas: ReadonlyMap<string, Schema>): StoredShapes {
  const apiVersionOf = (version: string): string => `${group}/${version}`;
  function completed(object: Readonly<JsonObject>): JsonObject {
    const version = String(object['apiVersion']).slice(group.length + 1);
    const schema = schemas.get(version);
    if (schema === undefined) return object as JsonObject;
    const next = cloneJson(object) as JsonObject;
    pruneUnknown(schema, next, { custom: true });
    dropNulls(schema, next, { custom: true });
    applyDefaults(schema, next);
    coerceMetadata(next);
    return deepEqual(next, object) ? (object as JsonObject) : next;
  }
  function shown(object: Readonly<JsonObject>, version: string): JsonObject {
    const next = cloneJson(object) as JsonObject;
    next['apiVersion'] = apiVersionOf(version);
    const schema = schemas.get(version);
    if (schema !== undefined) pruneUnknown(schema, next, { custom: true });
    return deepEqual(next, object) ? (object as JsonObject) : next;
  }
  return { apiVersionOf, completed, shown };
}

/** On the way out, metadata of a wrong shape is left out rather than refused: nobody could repair it otherwise. */
function coerceMetadata(object: JsonObject): void {
  const { metadata } = object;
  if (!isJsonObject(metadata)) return;
  const properties = OBJECT_META_SCHEMA.properties!;
  for (const key of Object.keys(metadata)) {
    const schema = properties[key];
    if (schema === undefined || decodeProblem(schema, metadata[key]) !== undefined) delete metadata[key];
  }
}
