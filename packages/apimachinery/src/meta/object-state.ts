/** What an object tells of itself in its metadata and its status, asked of every kind by the same words. */
import type { ObjectMeta } from './object.ts';

interface Listed<C> {
  readonly status?: { readonly conditions?: readonly C[] | undefined } | undefined;
}

/** The condition of `type`, where the object has one. */
export const conditionOf = <C extends { readonly type: string }>(
  object: Listed<C> | undefined,
  type: C['type'],
): C | undefined => object?.status?.conditions?.find((condition) => condition.type === type);

/** True when the object has a condition of `type`, and its status is True. */
export const isConditionTrue = <C extends { readonly type: string; readonly status: string }>(
  object: Listed<C> | undefined,
  type: C['type'],
): boolean => conditionOf(object, type)?.status === 'True';

/** True for the phases that Pods, instances and migrations do not leave. */
export const isFinal = (phase: string | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

/** True when what the object stands for has run to its end: a Pod, an instance, a migration. */
export const hasEnded = (
  object: { readonly status?: { readonly phase?: string | undefined } | undefined } | undefined,
): boolean => isFinal(object?.status?.phase);

/** True when the object is on its way out. */
export const isDeleting = (object: { readonly metadata: Pick<Readonly<ObjectMeta>, 'deletionTimestamp'> }): boolean =>
  object.metadata.deletionTimestamp !== undefined;
