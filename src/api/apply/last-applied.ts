/** The annotation of client-side `kubectl apply`, for objects that move over to server-side apply. */
import type { DeepReadonly, UnstructuredObject } from '../meta/object.ts';
import { getOwn, isJsonObject, type JsonObject } from '../meta/own-property.ts';
import { ANNOTATIONS_LIMIT } from '../meta/validate-object-meta.ts';
import type { Schema } from '../schema/schema.ts';
import { compareObjects } from './compare.ts';
import { difference, EMPTY_SET, type FieldSet } from './field-set.ts';
import { toFieldSet } from './to-field-set.ts';

export const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function annotationOf(object: unknown): string | undefined {
  const metadata = isJsonObject(object) ? getOwn(object, 'metadata') : undefined;
  const annotations = isJsonObject(metadata) ? getOwn(metadata, 'annotations') : undefined;
  const text = isJsonObject(annotations) ? getOwn(annotations, LAST_APPLIED) : undefined;
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

/** Rewrites the annotation in `object` when the live object had one, so that client-side apply still finds its base. */
export function refreshLastApplied(parts: {
  readonly live: JsonObject;
  readonly config: JsonObject;
  readonly object: JsonObject;
  readonly manager: string;
}): void {
  if (parts.manager !== 'kubectl' || annotationOf(parts.live) === undefined) return;
  const metadata = { ...(parts.config['metadata'] as JsonObject) };
  const { [LAST_APPLIED]: _, ...annotations } = (metadata['annotations'] ?? {}) as JsonObject;
  const text = `${JSON.stringify({ ...parts.config, metadata: { ...metadata, annotations } })}\n`;
  const target = parts.object['metadata'] as JsonObject;
  const present = (target['annotations'] ?? {}) as JsonObject;
  // Too large for an annotation: an empty one tells kubectl that there is no base any more.
  target['annotations'] = { ...present, [LAST_APPLIED]: text.length > ANNOTATIONS_LIMIT ? '' : text };
}
