/** Indexes of a Job as text: `1,3-5,7`, in order (batch/validation, validateIndexesFormat). */

/** How many there are; or what is wrong, in upstream's words. */
export function indexCount(text: string, completions: number): { readonly total: number; readonly fault?: string } {
  let total = 0;
  let last: number | undefined;
  for (const interval of text === '' ? [] : text.split(',')) {
    const parts = interval.split('-');
    const fail = (fault: string) => ({ total: 0, fault });
    if (parts.length > 2) {
      const rule = "violates the requirement that an index interval can have at most two parts separated by '-'";
      return fail(`the fragment ${JSON.stringify(interval)} ${rule}`);
    }
    const limits: number[] = [];
    for (const part of parts) {
      if (!/^[+-]?\d+$/.test(part)) {
        return fail(`cannot convert string to integer for index: ${JSON.stringify(part)}`);
      }
      if (Number(part) >= completions) return fail(`too large index: ${JSON.stringify(part)}`);
      limits.push(Number(part));
    }
    const [first = 0, end = first] = limits;
    if (limits.length > 1 && first >= end) return fail(`non-increasing order, previous: ${first}, current: ${end}`);
    if (last !== undefined && last >= first) return fail(`non-increasing order, previous: ${last}, current: ${first}`);
    total += end - first + 1;
    last = end;
  }
  return { total };
}

/** The first index that is in both texts; both are such as can be read. */
export function commonIndex(left: string, right: string): number | undefined {
  const intervals = (text: string): (readonly [number, number])[] =>
    (text === '' ? [] : text.split(',')).map((interval) => {
      const [first = '', end = first] = interval.split('-');
      return [Number(first), Number(end)];
    });
  const [a, b] = [intervals(left), intervals(right)];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [one, other] = [a[i]!, b[j]!];
    const first = Math.max(one[0], other[0]);
    if (first <= Math.min(one[1], other[1])) return first;
    if (one[1] < other[1]) i++;
    else j++;
  }
  return undefined;
}
