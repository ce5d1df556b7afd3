/** Counts by labels, of a bounded number of them: what makes labels is often made by users. */
import type { Labels, ValueFamily } from './metric-family.ts';

/** Distinct label sets that a counter keeps, unless set otherwise; more are not counted. */
export const MAX_SERIES = 1024;

/** Counts from nothing. */
export function createCounter(name: string, help: string, maxSeries = MAX_SERIES) {
  const series = new Map<string, { labels: Labels; value: number }>();
  return {
    /** Counts one more under these labels, which are the same names in the same order each time. */
    add(labels: Labels): void {
      const key = Object.values(labels).join('\n');
      const known = series.get(key);
      if (known) known.value++;
      else if (series.size < maxSeries) series.set(key, { labels, value: 1 });
    },
    family: (): ValueFamily => ({ name, help, type: 'counter', samples: [...series.values()] }),
  };
}
