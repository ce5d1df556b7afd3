/**
 * Which labels and annotations a clone keeps. A filter is a whole key, or the beginning of keys before a `*` at its end;
 * with a `!` before it, it excludes. Exclusion wins over inclusion, whatever the order. (kubevirt: user guide on the
 * clone API, pkg/virt-controller/watch/clone/vm-target.go.)
 */

const NEGATION = '!';
const WILDCARD = '*';

const matches = (filter: string, key: string): boolean =>
  filter.endsWith(WILDCARD) ? key.startsWith(filter.slice(0, -1)) : key === filter;

/** The keys that the target does not get, in their order. Absent filters keep all, an empty list keeps none. */
export function removedKeys(keys: readonly string[], filters: readonly string[] | undefined): string[] {
  if (filters === undefined) return [];
  const excluding = filters.filter((filter) => filter.startsWith(NEGATION)).map((filter) => filter.slice(1));
  const including = filters.filter((filter) => !filter.startsWith(NEGATION));
  return keys.filter(
    (key) => excluding.some((filter) => matches(filter, key)) || !including.some((filter) => matches(filter, key)),
  );
}

/** What is wrong with filters, as upstream's webhook words it; `field` as it names the field. */
export function filterProblems(filters: readonly string[] | undefined, field: string): string[] {
  return (filters ?? []).flatMap((filter) => {
    if (filter.length <= 1) return filter === NEGATION ? ['a negation character is not a valid filter'] : [];
    const problem = (kind: string, character: string, rule: string): string =>
      `${field} filter ${filter} is invalid: cannot contain a ${kind} character (${character}); FilterRules: ${rule}`;
    return [
      ...(filter.slice(1).includes(NEGATION)
        ? [problem('negation', NEGATION, 'NegationChar can be only used at the beginning of the filter')]
        : []),
      ...(filter.slice(0, -1).includes(WILDCARD)
        ? [problem('wildcard', WILDCARD, 'WildcardChar can be only at the end of the filter')]
        : []),
    ];
  });
}
