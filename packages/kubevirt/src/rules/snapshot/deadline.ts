/** How long a snapshot may take. */

import { parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import type { ReadonlySnapshot } from '../../kinds/kubevirt.ts';

/** `5m0s`, as Go writes it. */
export const DEFAULT_FAILURE_DEADLINE = '5m0s';

/** The deadline as a Go duration. */
export const failureDeadlineOf = ({ spec }: ReadonlySnapshot): string =>
  spec.failureDeadline ?? DEFAULT_FAILURE_DEADLINE;

/** Milliseconds left, negative when it is over; undefined for a snapshot that may take any time. */
export function timeUntilDeadline(snapshot: ReadonlySnapshot, now: number): number | undefined {
  const ms = Math.trunc(parseGoDuration(failureDeadlineOf(snapshot)) ?? parseGoDuration(DEFAULT_FAILURE_DEADLINE)!);
  if (ms === 0) return undefined;
  return Date.parse(snapshot.metadata.creationTimestamp ?? '') + ms - now;
}
