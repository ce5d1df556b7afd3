/** The annotation of client-side `kubectl apply`, for objects that move over to server-side apply. */
import { goJson, sortMembers } from '../meta/go-text.ts';
import { byteLength } from '../meta/name-rules.ts';
import type { DeepReadonly, UnstructuredObject } from '../meta/object.ts';
import { isJsonObject, type JsonObject } from '../meta/own-property.ts';
import { ANNOTATIONS_LIMIT } from '../meta/validate-object-meta.ts';
import type { Schema } from '../schema/schema.ts';
import { valueAt } from '../types/read-value.ts';
import { compareObjects } from './compare.ts';
import { difference, EMPTY_SET, type FieldSet } from './field-set.ts';
import { toFieldSet } from './to-field-set.ts';

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function annotationOf(object: unknown): string | undefined {
  const text = valueAt(object, 'metadata', 'annotations', LAST_APPLIED);
  return typeof text === 'string' && text !== '' ? text : undefined;
}

/** Fields that kubectl applied from the client and that nobody has changed since: no conflict for kubectl. */
export function allowedByLastApplied(schema: Schema, live: DeepReadonly<UnstructuredObject>): FieldSet {
  const text = annotationOf(live);
  if (text === undefined) return EMPTY_SET;
  let last: unknown;
  try {
    last = JSON.parse(text);
  } catch {
    return EMPTY_SET;
  }
  if (!isJsonObject(last)) return EMPTY_SET;
  const { added, modified, removed } = compareObjects(schema, last, live);
  return difference(difference(difference(toFieldSet(schema, last), modified), added), removed);
}

/**
 * Rewrites the annotation in `object`, the merged one, where it has one, so that client-side apply still finds its base:
 * the configuration as Go writes it. What makes the annotations too large together goes (SetLastApplied of
 * apimachinery).
 */
export function refreshLastApplied(parts: {
  readonly config: JsonObject;
  readonly object: JsonObject;
  readonly manager: string;
}): void {
  if (parts.manager !== 'kubectl' || annotationOf(parts.object) === undefined) return;
  const metadata = { ...(parts.config['metadata'] as JsonObject) };
  if (isJsonObject(metadata['annotations'])) {
    const { [LAST_APPLIED]: _, ...others } = metadata['annotations'];
    metadata['annotations'] = others;
  } else delete metadata['annotations'];
  const text = `${goJson(sortMembers({ ...parts.config, metadata }))}\n`;
  const target = parts.object['metadata'] as JsonObject;
  const annotations: JsonObject = { ...(target['annotations'] as JsonObject), [LAST_APPLIED]: text };
  if (sizeOf(annotations) > ANNOTATIONS_LIMIT) delete annotations[LAST_APPLIED];
  if (Object.keys(annotations).length > 0) target['annotations'] = annotations;
  else delete target['annotations'];
}

/** Keys and values together, in bytes. */
const sizeOf = (annotations: JsonObject): number =>
  Object.entries(annotations).reduce((sum, pair) => sum + byteLength(pair.join('')), 0);
