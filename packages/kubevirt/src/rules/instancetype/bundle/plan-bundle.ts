/**
 * What has to be done so that a cluster has the bundle, or has it no longer. Each object carries a digest of what we
 * wrote: one whose contents do not match it was edited by somebody, and is theirs from then on.
 */
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { sha256 } from '../../identity/sha256.ts';
import type { SourceKind } from '../matcher.ts';

/** Digest of the contents as they were written. */
export const BUNDLE_ANNOTATION = 'coracle.dev/common-instancetypes';

type Source = DeepReadonly<SourceKind>;

export interface BundlePlan {
  readonly create: readonly SourceKind[];
  /** The existing object with the new contents: its resourceVersion is kept. */
  readonly update: readonly SourceKind[];
  readonly remove: readonly Source[];
  /** Objects of the bundle's names that somebody made or edited: they are left alone. */
  readonly foreign: readonly Source[];
}

const keyOf = ({ kind, metadata }: Source): string => `${kind}/${metadata.namespace ?? ''}/${metadata.name ?? ''}`;

/**
 * `existing`: all objects of the kinds. `wanted`: the bundle, or nothing when it is switched off; then only what is
 * still as it was written goes away.
 */
export function planBundle(existing: readonly Source[], wanted: readonly Source[]): BundlePlan {
  const found = new Map(existing.map((object) => [keyOf(object), object]));
  const names = new Set(wanted.map(keyOf));
  const create: SourceKind[] = [];
  const update: SourceKind[] = [];
  const foreign: Source[] = [];
  for (const object of wanted) {
    const current = found.get(keyOf(object));
    // So it is at nearly every start, and found without a digest of each.
    if (current !== undefined && isAsWanted(current, object)) continue;
    const written = withDigest(object);
    const digest = written.metadata.annotations?.[BUNDLE_ANNOTATION];
    if (current === undefined) create.push(written);
    else if (!isOurs(current)) foreign.push(current);
    else if (current.metadata.annotations?.[BUNDLE_ANNOTATION] !== digest) {
      const metadata = cloneJson<SourceKind['metadata']>(current.metadata);
      update.push({
        ...written,
        metadata: { ...metadata, labels: written.metadata.labels!, annotations: written.metadata.annotations! },
      } as SourceKind);
    }
  }
  const remove = existing.filter((object) => !names.has(keyOf(object)) && isOurs(object));
  return { create, update, remove, foreign };
}

/** The object says what the bundle says, and carries a digest: that of just this. */
function isAsWanted(current: Source, wanted: Source): boolean {
  const { [BUNDLE_ANNOTATION]: digest, ...annotations } = current.metadata.annotations ?? {};
  return (
    digest !== undefined &&
    deepEqual(current.spec, wanted.spec) &&
    deepEqual(current.metadata.labels ?? {}, wanted.metadata.labels ?? {}) &&
    deepEqual(annotations, wanted.metadata.annotations ?? {})
  );
}

/** Whether an object still is as the bundle wrote it. */
const isOurs = (object: Source): boolean => {
  const digest = object.metadata.annotations?.[BUNDLE_ANNOTATION];
  return digest !== undefined && digest === digestOf(object);
};

function withDigest(object: Source): SourceKind {
  const next = cloneJson<SourceKind>(object);
  next.metadata.annotations = { ...next.metadata.annotations, [BUNDLE_ANNOTATION]: digestOf(object) };
  return next;
}

const encoder = new TextEncoder();
const DIGEST_LENGTH = 16;

/** The name is part of it: a copy that somebody makes under another name is theirs, whatever annotations came along. */
function digestOf({ kind, metadata, spec }: Source): string {
  const { [BUNDLE_ANNOTATION]: _, ...annotations } = metadata.annotations ?? {};
  const text = JSON.stringify(sorted({ kind, name: metadata.name, labels: metadata.labels ?? {}, annotations, spec }));
  return sha256(encoder.encode(text)).slice(0, DIGEST_LENGTH);
}

/** The same value with its members in the order of their names. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, sorted(member)]));
}
