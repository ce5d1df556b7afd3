/** Makes the short form of an object that a history holds. */
import { createHash } from 'node:crypto';
import type { Sight } from './history.ts';

// biome-ignore lint/suspicious/noExplicitAny: objects as they come off the wire.
type Wire = any;

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
};

const digest = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(sorted(value)))
    .digest('base64url')
    .slice(0, 16);

/** The label that watches select by. */
export const GROUP = 'history.test/group';
/** The annotation that tells one write from all others. */
export const TAG = 'history.test/tag';

/** What a history keeps of an object. Items of lists carry no kind, so it is left out of the digest. */
export function sightOf({ kind: _kind, apiVersion: _version, ...object }: Wire): Sight {
  const { metadata } = object;
  return {
    ns: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    rv: Number(metadata.resourceVersion),
    sha: digest(object),
    group: metadata.labels?.[GROUP] ?? '',
    created: metadata.creationTimestamp,
    ...(metadata.generation !== undefined && { generation: metadata.generation, spec: digest(object.spec) }),
    tag: metadata.annotations?.[TAG] ?? '',
  };
}
