/** What the request pipeline counts, under upstream's names (apiserver endpoints/metrics). */
import type { ResourceInfo, SubresourceInfo } from '@coracle/apimachinery/types/resource';
import type { ApiRequest } from '@coracle/runtime/http/seam';
import { Distribution } from '@coracle/runtime/metrics/histogram';
import { familyText, type MetricFamily } from '@coracle/runtime/metrics/metric-family';
import type { RequestInfo } from './request-info.ts';

/** Distinct label sets kept; the requests of further ones are counted together. */
const MAX_SERIES = 4096;
/** Distinct codes of one label set; servers behind this one answer as they like. */
const MAX_CODES = 64;
const OTHER = 'other';
/** Upper bounds in seconds. */
const BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60];

/** What is known of a request that was answered: the exchange. */
export interface Answered {
  readonly request: Pick<ApiRequest, 'query' | 'headers'>;
  /** Undefined when it was refused before anybody looked. */
  readonly info: RequestInfo | undefined;
  /** Only served resources become labels: paths are the client's, and there is no end of them. */
  readonly resource: ResourceInfo | undefined;
  readonly subresource: SubresourceInfo | undefined;
}

export type RequestMetrics = ReturnType<typeof createRequestMetrics>;

/** The requests of one label set. */
interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly codes: Map<number, number>;
  readonly durations: Distribution;
}

export function createRequestMetrics() {
  const series = new Map<string, Series>();
  /** The way to the series of a resource without putting labels together, by scope and verb; others are rare. */
  const known = new WeakMap<object, Record<Scope, Map<string, Series>>>();
  let inFlight = 0;
  let longRunning = 0;
  let watchEvents = 0;

  const seriesOf = (answered: Answered): Series => {
    const { request, info, resource = NO_RESOURCE, subresource } = answered;
    const verb = verbLabel(answered);
    const scope = resource === NO_RESOURCE ? 'none' : scopeOf(info!, verb);
    const dryRun = request.query !== '' && request.query.includes('dryRun=All') ? 'All' : '';
    let ofResource = known.get(resource);
    if (ofResource === undefined) {
      ofResource = { none: new Map(), cluster: new Map(), namespace: new Map(), resource: new Map() };
      known.set(resource, ofResource);
    }
    const key = subresource === undefined && dryRun === '' ? verb : `${verb} ${subresource?.name ?? ''} ${dryRun}`;
    let found = ofResource[scope].get(key);
    if (found === undefined) {
      found = keep({
        component: 'apiserver',
        dry_run: dryRun,
        group: resource.group,
        resource: resource.resource,
        scope: scope === 'none' ? '' : scope,
        subresource: subresource?.name ?? '',
        verb,
        version: resource.version,
      });
      ofResource[scope].set(key, found);
    }
    return found;
  };

  /** The series of these labels: a definition that was changed gives a new resource with the old labels. */
  const keep = (wanted: Readonly<Record<string, string>>): Series => {
    const isFull = series.size >= MAX_SERIES && !series.has(keyOf(wanted));
    const labels = isFull ? { ...wanted, ...OTHERS } : wanted;
    const key = keyOf(labels);
    const found = series.get(key) ?? { labels, codes: new Map(), durations: new Distribution(BUCKETS) };
    series.set(key, found);
    return found;
  };

  return {
    /** A request begins; `end` follows exactly once. */
    begin: (): void => {
      inFlight++;
    },
    end(answered: Answered, code: number, ms: number): void {
      inFlight--;
      const { codes, durations } = seriesOf(answered);
      const count = codes.get(code);
      if (count !== undefined) codes.set(code, count + 1);
      else if (codes.size < MAX_CODES) codes.set(code, 1);
      durations.observe(ms / 1000);
    },
    longRunning: (change: 1 | -1): void => {
      longRunning += change;
    },
    watchEvent: (): void => {
      watchEvents++;
    },
    get inFlight(): number {
      return inFlight;
    },
    /** `extra` are families of other rooms. */
    text(extra: readonly MetricFamily[]): string {
      const families: MetricFamily[] = [
        {
          name: 'apiserver_request_total',
          help: 'Requests by verb, resource and response code.',
          type: 'counter',
          samples: [...series.values()].flatMap(({ labels, codes }) =>
            [...codes].map(([code, value]) => ({ labels: { code: String(code), ...labels }, value })),
          ),
        },
        {
          name: 'apiserver_request_duration_seconds',
          help: 'Response time by verb and resource.',
          type: 'histogram',
          bounds: BUCKETS,
          samples: [...series.values()],
        },
        single('apiserver_current_inflight_requests', 'Requests being answered.', inFlight),
        single('apiserver_longrunning_requests', 'Open watches.', longRunning),
        single('apiserver_watch_events_total', 'Events sent to watches.', watchEvents, 'counter'),
        ...extra,
      ];
      return families.map(familyText).join('');
    },
  };
}

const keyOf = (labels: Readonly<Record<string, string>>): string => Object.values(labels).join('\n');

/** Stands for whatever the registry does not answer. */
const NO_RESOURCE = Object.freeze({ group: '', version: '', resource: '' });
const OTHERS = { dry_run: '', group: '', resource: OTHER, scope: '', subresource: '', version: '' };

const NAMED = ['get', 'list', 'watch', 'post', 'put', 'patch', 'delete', 'deletecollection', 'options'];
/** Labels by verb: the verb itself, or the method that it stands for. */
const VERBS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(NAMED.map((verb) => [verb, verb.toUpperCase()])),
  ...{ head: 'GET', create: 'POST', update: 'PUT' },
};
/** Subresources that are entered, whatever the method. */
const ENTERED = new Set(['attach', 'exec', 'portforward', 'proxy']);

function verbLabel({ request, info, subresource }: Answered): string {
  const verb = info === undefined ? undefined : VERBS[info.verb];
  if (subresource !== undefined && ENTERED.has(subresource.name)) return 'CONNECT';
  if (verb === 'PATCH' && request.headers['content-type']?.startsWith('application/apply-patch')) return 'APPLY';
  return verb ?? OTHER;
}

type Scope = 'none' | 'cluster' | 'namespace' | 'resource';

function scopeOf({ name, namespace }: RequestInfo, verb: string): Scope {
  if (name !== '' || verb === 'POST') return 'resource';
  return namespace === '' ? 'cluster' : 'namespace';
}

/** A family of one number. */
export const single = (
  name: string,
  help: string,
  value: number,
  type: 'gauge' | 'counter' = 'gauge',
): MetricFamily => ({ name, help, type, samples: [{ labels: {}, value }] });
