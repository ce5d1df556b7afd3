/** Families of metrics and the Prometheus text format. */

export type Labels = Readonly<Record<string, string>>;

/** One family of `/metrics`: numbers by their labels. */
export interface ValueFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly samples: readonly { readonly labels: Labels; readonly value: number }[];
}

/** Durations by their labels, sorted into buckets. */
export interface HistogramFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'histogram';
  /** Upper bounds in seconds, ascending. */
  readonly bounds: readonly number[];
  readonly samples: readonly { readonly labels: Labels; readonly durations: Durations }[];
}

/** What was observed under one set of labels. */
export interface Durations {
  /** By bound, not added up; what is above the last bound is in `count` alone. */
  readonly counts: readonly number[];
  /** Seconds. */
  readonly sum: number;
  readonly count: number;
}

export type MetricFamily = ValueFamily | HistogramFamily;

/** The lines of a family, its head included. */
export function familyText(family: MetricFamily): string {
  const { name, help, type } = family;
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
  if (family.type === 'histogram') for (const sample of family.samples) addHistogram(lines, family, sample);
  else for (const { labels, value } of family.samples) lines.push(`${name}${labelText(pairs(labels))} ${value}`);
  return `${lines.join('\n')}\n`;
}

function addHistogram(
  lines: string[],
  { name, bounds }: HistogramFamily,
  { labels, durations }: HistogramFamily['samples'][number],
): void {
  const common = pairs(labels);
  const bucket = (le: string, value: number): number =>
    lines.push(`${name}_bucket${labelText([...common, `le="${le}"`])} ${value}`);
  let total = 0;
  for (const [i, bound] of bounds.entries()) {
    total += durations.counts[i]!;
    bucket(String(bound), total);
  }
  bucket('+Inf', durations.count);
  lines.push(
    `${name}_sum${labelText(common)} ${durations.sum}`,
    `${name}_count${labelText(common)} ${durations.count}`,
  );
}

const pairs = (labels: Labels): string[] =>
  Object.entries(labels).map(([key, value]) => `${key}="${escapeLabel(value)}"`);

const labelText = (texts: readonly string[]): string => (texts.length === 0 ? '' : `{${texts.join(',')}}`);

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
