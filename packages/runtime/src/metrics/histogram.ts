/** Durations sorted into buckets as they come. */
import type { Durations, HistogramFamily, Labels } from './metric-family.ts';

/** The durations under one set of labels. */
export class Distribution implements Durations {
  readonly counts: number[];
  sum = 0;
  count = 0;
  readonly #bounds: readonly number[];

  /** `bounds` in seconds, ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = bounds.map(() => 0);
  }

  observe(seconds: number): void {
    this.sum += seconds;
    this.count++;
    const bounds = this.#bounds;
    for (let i = 0; i < bounds.length; i++) {
      if (seconds > bounds[i]!) continue;
      this.counts[i]!++;
      return;
    }
  }
}

export interface Histogram {
  /** Counts one duration. Label sets beyond the bound are not kept. */
  observe(labels: Labels, seconds: number): void;
  family(): HistogramFamily;
}

/** Makes a histogram that keeps at most `maxSeries` sets of labels. */
export function createHistogram(options: {
  readonly name: string;
  readonly help: string;
  readonly bounds: readonly number[];
  readonly maxSeries: number;
}): Histogram {
  const { name, help, bounds, maxSeries } = options;
  const series = new Map<string, { readonly labels: Labels; readonly durations: Distribution }>();
  return {
    observe(labels, seconds) {
      const key = Object.values(labels).join('\n');
      let found = series.get(key);
      if (found === undefined) {
        if (series.size >= maxSeries) return;
        found = { labels, durations: new Distribution(bounds) };
        series.set(key, found);
      }
      found.durations.observe(seconds);
    },
    family: () => ({ name, help, type: 'histogram', bounds, samples: [...series.values()] }),
  };
}
