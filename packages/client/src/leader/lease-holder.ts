/** Whether somebody leads by a Lease that is not ours: read off its own words, by the wall clock. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { Lease } from '@coracle/apimachinery/types/types';

/** Of a Lease that says nothing: client-go's default. */
const DEFAULT_SECONDS = 15;

/** Whether it has a holder who renewed it in time; `now` in milliseconds. */
export function isLeaseHeld({ spec }: DeepReadonly<Lease>, now: number): boolean {
  const seconds = spec?.leaseDurationSeconds ?? DEFAULT_SECONDS;
  return !!spec?.holderIdentity && Date.parse(spec.renewTime ?? '') + seconds * 1000 > now;
}
