/**
 * How many of `length` ordered items lie below a bound: the index of the first that does not. `isBelow` is asked of about
 * log2(length) of them.
 */
export function lowerBound(length: number, isBelow: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}
