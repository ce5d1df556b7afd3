/**
 * Whether an object that declared objects depend on may be deleted by hand, as its sync asks for
 * (annotation `coracle.dev/delete-with-dependents`). The object itself says who depends on it. What a source no longer
 * declares, what goes with its namespace or its owner, and what is on its way out already is never held up.
 */

import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import { CONFIG_SYNC_NAMESPACE } from '../kinds/kinds.ts';
import { dependentsOf, isDeleteMode, readDependents } from '../plan/dependents.ts';
import { refOf, refText } from '../plan/object-ref.ts';
import { DELETE_WITH_DEPENDENTS, DEPENDENTS, MANAGER } from '../status/metadata-keys.ts';
import { syncOfManager } from '../status/sync-identity.ts';
import { CLEANERS, isManagedObject } from './decide-write.ts';

export type DeleteDecision =
  | { readonly decision: 'allow' }
  | { readonly decision: 'warn' | 'refuse'; readonly message: string };

const ALLOW: DeleteDecision = { decision: 'allow' };
const RECONCILERS = `system:serviceaccount:${CONFIG_SYNC_NAMESPACE}:`;

/**
 * Decides.
 * @param trusted accounts that may delete anything: the one that writes for all syncs, and what cleans up
 */
export function decideDelete(
  { username, oldObject }: { readonly username: string; readonly oldObject: ReadonlyObject },
  trusted: readonly string[],
): DeleteDecision {
  const { annotations = {}, deletionTimestamp } = oldObject.metadata;
  const dependents = readDependents(annotations[DEPENDENTS]);
  if (!dependents || deletionTimestamp !== undefined) return ALLOW;
  if (trusted.includes(username) || CLEANERS.includes(username) || username.startsWith(RECONCILERS)) return ALLOW;
  const ref = refOf(oldObject as KubeObject);
  // Copied annotations do not count.
  if (!isManagedObject(oldObject, ref)) return ALLOW;
  // What somebody says at the object itself comes first: it is how a single deletion is let through.
  const own = annotations[DELETE_WITH_DEPENDENTS] ?? '';
  const mode = isDeleteMode(own) ? own : dependents.mode;
  if (mode === 'allow') return ALLOW;
  const { kind, namespace, name } = syncOfManager(annotations[MANAGER] ?? '');
  const sync = kind === 'RootSync' ? `RootSync ${name}` : `RepoSync ${namespace}/${name}`;
  const fact = `${refText(ref)} is declared by ${sync}, and objects that are declared too depend on it: ${dependentsOf(dependents)}`;
  switch (mode) {
    case 'warn':
      return { decision: 'warn', message: `${fact}. It is created again as long as the source declares it` };
    case 'refuse':
      return {
        decision: 'refuse',
        message: `${fact}. Take it out of the source, or annotate it with ${DELETE_WITH_DEPENDENTS}=allow to delete it all the same`,
      };
  }
}
