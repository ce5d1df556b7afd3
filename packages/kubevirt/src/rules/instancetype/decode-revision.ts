/**
 * The contents of a captured copy, whichever release wrote it: an object of v1beta1, v1alpha2 or v1alpha1, or the
 * oldest form, `{apiVersion, spec: <base64 of the spec alone>}` (kubevirt pkg/instancetype/compatibility of 1.6, which
 * still read them all; upstream dropped the old ones in 1.7).
 */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { INSTANCETYPE_GROUP, INSTANCETYPE_VERSION } from '../../kinds/kinds.ts';
import type { MatcherField, SourceKind } from './matcher.ts';

/** A revision that holds nothing we can read. */
export class RevisionError extends Error {
  override name = 'RevisionError';
}

/** What a revision holds, in the current version. `named` is false for the oldest form, which has no metadata. */
export type CapturedSource = SourceKind & { readonly field: MatcherField; readonly named: boolean };

const FIELD_OF_KIND: Readonly<Record<string, MatcherField>> = {
  VirtualMachineInstancetype: 'instancetype',
  VirtualMachineClusterInstancetype: 'instancetype',
  VirtualMachinePreference: 'preference',
  VirtualMachineClusterPreference: 'preference',
};
const VERSIONS = new Set([INSTANCETYPE_VERSION, 'v1alpha2', 'v1alpha1']);

/** Top members of the oldest specs: what tells the two apart, because nothing in the data says it. */
const OLDEST_PREFERENCE = new Set(['clock', 'cpu', 'devices', 'features', 'firmware', 'machine']);
const OLDEST_INSTANCETYPE = new Set(['cpu', 'memory', 'gpus', 'hostDevices', 'ioThreadsPolicy', 'launchSecurity']);

/** A fresh, mutable copy of what `revision` holds. @throws RevisionError */
export function decodeRevision(revision: DeepReadonly<ControllerRevision>): CapturedSource {
  const data = revision.data as DeepReadonly<JsonObject> | undefined;
  if (data === undefined) throw new RevisionError('failed to decode object in ControllerRevision: there is no data');
  return decodeOldest(data) ?? decodeObject(data);
}

function decodeObject(data: DeepReadonly<JsonObject>): CapturedSource {
  const { apiVersion, kind, metadata, spec } = data as { [member: string]: unknown };
  const [group, version] = String(apiVersion ?? '').split('/');
  const field = FIELD_OF_KIND[String(kind ?? '')];
  if (field === undefined || group !== INSTANCETYPE_GROUP || !VERSIONS.has(version ?? '') || !isJsonObject(spec)) {
    const what = `${apiVersion ?? 'no version'} ${kind ?? 'without a kind'}`;
    throw new RevisionError(`failed to decode object in ControllerRevision: ${what} is not known`);
  }
  return {
    apiVersion: `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`,
    kind: String(kind),
    metadata: cloneJson((metadata ?? {}) as ObjectMeta),
    spec: currentSpec(cloneJson(spec)),
    field,
    named: true,
  } as CapturedSource;
}

function decodeOldest(data: DeepReadonly<JsonObject>): CapturedSource | undefined {
  const { apiVersion, spec: encoded, ...rest } = data;
  if (typeof encoded !== 'string' || typeof apiVersion !== 'string' || Object.keys(rest).length > 0) return undefined;
  const spec = parseBase64Json(encoded);
  const field = spec && fieldOfOldest(spec);
  if (!spec || field === undefined) return undefined;
  const kind = field === 'instancetype' ? 'VirtualMachineInstancetype' : 'VirtualMachinePreference';
  return {
    apiVersion: `${INSTANCETYPE_GROUP}/${INSTANCETYPE_VERSION}`,
    kind,
    metadata: { name: `old-version-of-${field}-object` },
    spec: currentSpec(spec),
    field,
    named: false,
  } as CapturedSource;
}

function parseBase64Json(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(decodeBase64(text)));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Preferences are tried first, as upstream does: `{}` is one. */
function fieldOfOldest(spec: JsonObject): MatcherField | undefined {
  const keys = Object.keys(spec);
  const cpu = Object.keys((spec['cpu'] ?? {}) as JsonObject);
  if (keys.every((key) => OLDEST_PREFERENCE.has(key)) && cpu.every((key) => key === 'preferredCPUTopology'))
    return 'preference';
  if (keys.every((key) => OLDEST_INSTANCETYPE.has(key)) && cpu.includes('guest')) return 'instancetype';
  return undefined;
}

/**
 * A spec of an older version in the current one. All members kept their names; the topology was plain text there, so
 * an empty one meant none.
 */
function currentSpec(spec: JsonObject): JsonObject {
  const cpu = spec['cpu'];
  if (isJsonObject(cpu) && cpu['preferredCPUTopology'] === '') delete cpu['preferredCPUTopology'];
  return spec;
}
