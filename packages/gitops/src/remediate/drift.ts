/** Whether a live object is no longer what is declared of it. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import type { Target } from '../apply/target.ts';
import { declaredFieldsOf } from '../guard/declared-fields.ts';
import { comparable } from '../plan/changed-fields.ts';
import type { Declared } from '../plan/declared.ts';
import { liveDeclaredFields, type ManagedBy, managedObject, managementMetadata } from '../plan/managed-object.ts';
import { MUTATION } from '../status/metadata-keys.ts';

/** Asks the server what the object would become. Of one whose changes are ignored, only our own metadata count. */
export async function isDrifted(
  one: Declared,
  live: KubeObject,
  { by, target, signal }: { readonly by: ManagedBy; readonly target: Target; readonly signal: AbortSignal },
): Promise<boolean> {
  if (one.object.metadata.annotations?.[MUTATION] === 'ignore') {
    const { labels, annotations } = managementMetadata(one, by);
    const lacks = (have: Readonly<Record<string, string>> = {}, want: Readonly<Record<string, string>>) =>
      Object.entries(want).some(([key, value]) => have[key] !== value);
    return lacks(live.metadata.labels, labels) || lacks(live.metadata.annotations, annotations);
  }
  const wanted = await target.apply(one.type, managedObject(one, by, live), signal, { dryRun: true });
  if (by.isGuarded && declaredFieldsOf(wanted, one.object) !== liveDeclaredFields(live, by)) return true;
  return !deepEqual(comparable(live), comparable(wanted));
}
