/**
 * A status as a JSON patch that holds only while nobody else wrote. Merge patches cannot carry it where it holds a null
 * in a list: the API server drops those (`lastProbeTime: null` of a condition), and a client in Go that has read the
 * condition tests for it.
 */

import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject, setOwn } from '@coracle/apimachinery/meta/own-property';
import type { Patch } from '../client.ts';

/** Puts `status` in the place of that of `before`: 409 when the object changed since it was read or was made anew. */
export function statusPatch(before: Pick<KubeObject, 'metadata'>, status: unknown): Patch {
  const { uid, resourceVersion } = before.metadata;
  return {
    type: 'json',
    body: [
      { op: 'replace', path: '/metadata/uid', value: uid },
      { op: 'replace', path: '/metadata/resourceVersion', value: resourceVersion },
      { op: 'add', path: '/status', value: status },
    ],
  };
}

/** True when a list somewhere below holds an object with a null in it. */
export function hasNullInList(value: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => hasNull(item));
  return isJsonObject(value) && Object.values(value).some(hasNullInList);
}

function hasNull(value: unknown): boolean {
  if (value === null) return true;
  if (Array.isArray(value)) return value.some(hasNull);
  return isJsonObject(value) && Object.values(value).some(hasNull);
}

/** What `change` makes of `value` as a merge patch would, but for lists, which keep their nulls. */
export function changed(value: unknown, change: unknown): unknown {
  if (!isJsonObject(change)) return change;
  const out: JsonObject = isJsonObject(value) ? { ...value } : {};
  for (const [name, member] of Object.entries(change)) {
    if (member === null || member === undefined) delete out[name];
    else setOwn(out, name, changed(out[name], member));
  }
  return out;
}
