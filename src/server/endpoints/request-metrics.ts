/** Counters of the request pipeline in the Prometheus text format. */

/** Distinct label sets kept; more are counted under `other`. */
const MAX_SERIES = 4096;
const BUCKETS_MS = [5, 25, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

export interface RequestMetrics {
  /** A request begins; `end` follows exactly once. */
  begin(): void;
  end(request: {
    readonly verb: string;
    readonly group: string;
    readonly resource: string;
    readonly code: number;
    readonly ms: number;
  }): void;
  longRunning(change: 1 | -1): void;
  watchEvent(): void;
  readonly inFlight: number;
  /** `extra` are lines of other rooms. */
  text(extra: readonly MetricFamily[]): string;
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge';
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];
}

interface Durations {
  readonly buckets: number[];
  sum: number;
  count: number;
}

export function createRequestMetrics(): RequestMetrics {
  const requests = new Map<string, { labels: Record<string, string>; value: number }>();
  const durations = new Map<string, Durations>();
  let inFlight = 0;
  let longRunning = 0;
  let watchEvents = 0;

  return {
    begin: () => {
      inFlight++;
    },
    end({ verb, group, resource, code, ms }) {
      inFlight--;
      let key = `${verb} ${group}/${resource} ${code}`;
      let series = requests.get(key);
      if (!series) {
        const labels = { verb, group, resource, code: String(code) };
        if (requests.size >= MAX_SERIES) {
          key = `other ${code}`;
          Object.assign(labels, { verb: 'other', group: '', resource: 'other' });
        }
        series = requests.get(key) ?? { labels, value: 0 };
        requests.set(key, series);
      }
      series.value++;
      observe(durations, verb, ms);
    },
    longRunning: (change) => {
      longRunning += change;
    },
    watchEvent: () => {
      watchEvents++;
    },
    get inFlight() {
      return inFlight;
    },
    text: (extra) =>
      [
        family({
          name: 'apiserver_request_total',
          help: 'Requests by verb, resource and response code.',
          type: 'counter',
          samples: [...requests.values()],
        }),
        histogram(durations),
        single('apiserver_current_inflight_requests', 'Requests being answered.', inFlight),
        single('apiserver_longrunning_requests', 'Open watches.', longRunning),
        family({
          name: 'apiserver_watch_events_total',
          help: 'Events sent to watches.',
          type: 'counter',
          samples: [{ labels: {}, value: watchEvents }],
        }),
        ...extra.map(family),
      ].join(''),
  };
}

function observe(durations: Map<string, Durations>, verb: string, ms: number): void {
  let found = durations.get(verb);
  if (!found) {
    found = { buckets: BUCKETS_MS.map(() => 0), sum: 0, count: 0 };
    durations.set(durations.size < MAX_SERIES ? verb : 'other', found);
  }
  found.sum += ms;
  found.count++;
  for (let i = BUCKETS_MS.length - 1; i >= 0 && ms <= BUCKETS_MS[i]!; i--) found.buckets[i]!++;
}

const single = (name: string, help: string, value: number): string =>
  family({ name, help, type: 'gauge', samples: [{ labels: {}, value }] });

function family({ name, help, type, samples }: MetricFamily): string {
  let text = `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
  for (const { labels, value } of samples) text += `${name}${labelText(labels)} ${value}\n`;
  return text;
}

function histogram(durations: ReadonlyMap<string, Durations>): string {
  const name = 'apiserver_request_duration_seconds';
  let text = `# HELP ${name} Response time by verb.\n# TYPE ${name} histogram\n`;
  for (const [verb, { buckets, sum, count }] of durations) {
    for (const [i, limit] of BUCKETS_MS.entries()) {
      text += `${name}_bucket${labelText({ verb, le: String(limit / 1000) })} ${buckets[i]}\n`;
    }
    text += `${name}_bucket${labelText({ verb, le: '+Inf' })} ${count}\n`;
    text += `${name}_sum${labelText({ verb })} ${sum / 1000}\n${name}_count${labelText({ verb })} ${count}\n`;
  }
  return text;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
