const DECIMAL = /^[1-9][0-9]*$/;

/**
 * Compares two resourceVersions as the numbers they are (guaranteed comparable since Kubernetes 1.35): negative, zero
 * or positive. Undefined when either is no number: then nothing is known about their order.
 */
function compareResourceVersions(a: string, b: string): number | undefined {
  if (!DECIMAL.test(a) || !DECIMAL.test(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** True only when both are comparable and `a` is the older or the same. */
export const isNotNewer = (a: string, b: string): boolean => {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order <= 0;
};

/** True only when both are comparable and `a` is the older. */
export const isOlder = (a: string, b: string): boolean => {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
};
