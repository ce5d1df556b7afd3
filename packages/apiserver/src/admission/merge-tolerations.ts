/** Puts two lists of tolerations together, as upstream's util/tolerations: of two, the one that tolerates more stays. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { Toleration } from '@coracle/apimachinery/types/types';

/** The tolerations of both, without those that another one covers; of equal ones the first stays. */
export function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second];
  const merged: Toleration[] = [];
  all.forEach((one, i) => {
    if (merged.some((kept) => covers(kept, one))) return;
    if (all.slice(i + 1).some((later) => !deepEqual(later, one) && covers(later, one))) return;
    merged.push(one);
  });
  return merged;
}

/** True when everything `narrow` tolerates, `wide` does too. */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (deepEqual(wide, narrow)) return true;
  const { key = '', operator = 'Equal', value = '', effect = '', tolerationSeconds } = wide;
  // No key with Exists means every key.
  if ((narrow.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((narrow.effect ?? '') !== effect && effect !== '') return false;
  if (effect === 'NoExecute' && tolerationSeconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > tolerationSeconds) return false;
  }
  if (operator === 'Exists') return true;
  return operator === 'Equal' && (narrow.operator ?? 'Equal') === 'Equal' && (narrow.value ?? '') === value;
}
