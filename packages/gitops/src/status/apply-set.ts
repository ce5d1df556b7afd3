/** The set of objects that a sync applies, as kubectl names such sets. Apart, since a page has no `node:crypto`. */
import { createHash } from 'node:crypto';
import { CONFIG_SYNC_GROUP } from '../kinds/kinds.ts';
import type { SyncIdentity } from './sync-identity.ts';

/** Value of label `applyset.kubernetes.io/part-of`. */
export function applySetId({ kind, namespace, name }: SyncIdentity): string {
  const digest = createHash('sha256').update(`${name}.${namespace}.${kind}.${CONFIG_SYNC_GROUP}`).digest('base64url');
  return `applyset-${digest}-v1`;
}
