/**
 * Freezes a JSON value all the way down and returns it; without recursion, so that a deeply nested body cannot exhaust the
 * stack. A part that is frozen already is taken to be frozen throughout.
 */
export function deepFreeze<T>(root: T): Readonly<T> {
  if (typeof root !== 'object' || root === null) return root;
  const open: object[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (Object.isFrozen(node)) continue;
    Object.freeze(node);
    for (const value of Object.values(node)) {
      if (typeof value === 'object' && value !== null) open.push(value);
    }
  }
  return root;
}
