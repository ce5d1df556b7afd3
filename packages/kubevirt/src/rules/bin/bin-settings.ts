/** How long the bin keeps a deleted machine: an annotation of the KubeVirt object, as the other settings of protection. */
import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';

/** A duration such as `24h` or `90m`; `0` keeps nothing. */
export const UNDELETE_WINDOW_ANNOTATION = 'coracle.dev/undelete-window';

/** Milliseconds; what holds where nobody says anything. */
export const DEFAULT_UNDELETE_WINDOW = 24 * 3_600_000;

/** Milliseconds; undefined for what is no duration, or one below zero. */
export function readWindow(text: string): number | undefined {
  if (text === '0') return 0;
  const ms = parseGoDuration(text);
  return ms === undefined || ms < 0 ? undefined : Math.trunc(ms);
}

/** The window in milliseconds. Of several objects that say one the shortest counts; what cannot be read says nothing. */
export function undeleteWindowOf(objects: readonly { readonly metadata: DeepReadonly<ObjectMeta> }[]): number {
  const said = objects.flatMap(({ metadata }) => {
    const text = metadata.annotations?.[UNDELETE_WINDOW_ANNOTATION];
    return (text === undefined ? undefined : readWindow(text)) ?? [];
  });
  return said.length === 0 ? DEFAULT_UNDELETE_WINDOW : Math.min(...said);
}
