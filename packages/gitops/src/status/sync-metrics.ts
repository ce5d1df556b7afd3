/**
 * Metrics of syncs with upstream's names and labels (prefix `config_sync_`). Of one sync the values of its last commit are
 * kept: a label that grew by one value with every commit would not be bounded.
 */

import { createHistogram, Distribution, type Histogram } from '@coracle/runtime/metrics/histogram';
import type { HistogramFamily, Labels, MetricFamily, ValueFamily } from '@coracle/runtime/metrics/metric-family';
import type { ResourceStatus, SyncError, SyncStatus } from '../kinds/kinds.ts';
import { reconcilerName, type SyncIdentity } from './sync-identity.ts';

export type ApiOperation = 'create' | 'update' | 'patch' | 'delete';
export type ApplyController = 'applier' | 'remediator';
/** What made an attempt begin. */
export type Trigger = 'reimport' | 'retry' | 'resync';

/** What one sync reports. Times in milliseconds. */
export interface SyncRecorder {
  /** A write to the API under the account of the sync. */
  wrote(controller: ApplyController, operation: ApiOperation, outcome: Outcome): void;
  /** Fetching and reading (`read`), taking apart (`parse`), and applying what was declared (`update`). */
  parsed(source: 'read' | 'parse' | 'update', trigger: Trigger, outcome: Outcome): void;
  /** An attempt at a commit has ended. */
  attempted(attempt: Attempted): void;
  /** Its status as it was written. */
  stages(status: SyncStatus): void;
  /** Account, bindings and finalizers. */
  setUp(outcome: Outcome): void;
  remediated(outcome: Outcome): void;
  fought(): void;
  /** Something that no rule foresees. */
  failedInside(source: string): void;
  /** The sync is gone: what is said of it is forgotten. */
  forget(): void;
}

export interface Outcome {
  readonly ms: number;
  readonly ok: boolean;
}

export interface Attempted extends Outcome {
  readonly commit: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly declared: number;
  readonly statuses: readonly ResourceStatus[];
  readonly errors: readonly SyncError[];
}

export interface GitOpsMetrics {
  of(sync: SyncIdentity): SyncRecorder;
  families(): MetricFamily[];
}

const STAGES = ['rendering', 'source', 'sync'] as const;
const CLASSES = ['1xxx', '2xxx', '9xxx'] as const;
/** Seconds. */
const BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
/** Of one histogram or counter: syncs times the values of their labels; more are not counted. */
const MAX_SERIES = 4096;

/** The last values of one sync. */
interface Last {
  readonly labels: Labels;
  readonly reconciler: string;
  status?: SyncStatus;
  attempt?: Attempted;
  conflicts: number;
  lastSuccessAt?: number;
  /** Of the commit of `attempt`. */
  readonly durations: Map<string, Distribution>;
}

const word = (ok: boolean): string => (ok ? 'success' : 'error');

/** Begins to count. */
export function createGitOpsMetrics(): GitOpsMetrics {
  const syncs = new Map<string, Last>();
  const histogram = (name: string, help: string): Histogram =>
    createHistogram({ name: `config_sync_${name}`, help, bounds: BOUNDS, maxSeries: MAX_SERIES });
  const api = histogram('api_duration_seconds', 'Time that writes to the API took.');
  const parser = histogram('parser_duration_seconds', 'Time that the parts of an attempt took.');
  const reconcile = histogram('reconcile_duration_seconds', 'Time that setting up a sync took.');
  const remediate = histogram('remediate_duration_seconds', 'Time that looking at one drifted object took.');
  const operations = createSums('apply_operations_total', 'Writes of declared objects.');
  const fights = createSums('resource_fights_total', 'Objects that something else keeps changing.');
  const inside = createSums('internal_errors_total', 'Errors that no rule foresees.');
  const kept = [operations, fights, inside];

  return {
    of(sync) {
      const id = `${sync.kind}/${sync.namespace}/${sync.name}`;
      const labels = {
        configsync_sync_kind: sync.kind,
        configsync_sync_name: sync.name,
        configsync_sync_namespace: sync.namespace,
      };
      const last: Last = { labels, reconciler: reconcilerName(sync), conflicts: 0, durations: new Map() };
      syncs.set(id, last);
      return {
        wrote(controller, operation, { ms, ok }) {
          api.observe({ ...labels, operation, status: word(ok) }, ms / 1000);
          operations.add({ ...labels, controller, operation, status: word(ok) });
        },
        parsed: (source, trigger, { ms, ok }) =>
          parser.observe({ ...labels, status: word(ok), trigger, source }, ms / 1000),
        attempted(attempt) {
          if (last.attempt?.commit !== attempt.commit) last.durations.clear();
          const status = word(attempt.ok);
          const durations = last.durations.get(status) ?? new Distribution(BOUNDS);
          durations.observe(attempt.ms / 1000);
          last.durations.set(status, durations);
          last.attempt = attempt;
          if (attempt.ok) last.lastSuccessAt = attempt.at;
          last.conflicts += attempt.errors.filter(({ code }) => code === '1060').length;
        },
        stages(status) {
          last.status = status;
        },
        setUp: ({ ms, ok }) => reconcile.observe({ ...labels, status: word(ok) }, ms / 1000),
        remediated: ({ ms, ok }) => remediate.observe({ ...labels, status: word(ok) }, ms / 1000),
        fought: () => fights.add(labels),
        failedInside: (source) => inside.add({ ...labels, source }),
        forget() {
          if (syncs.get(id) === last) syncs.delete(id);
        },
      };
    },
    families() {
      const all = [...syncs.values()];
      return [
        ...[api, parser, reconcile, remediate].map((one) => one.family()),
        ...kept.map((one) => one.family()),
        ...errorFamilies(all),
        ...attemptFamilies(all),
        ...inventoryFamilies(all),
      ];
    },
  };
}

function createSums(name: string, help: string) {
  const series = new Map<string, { labels: Labels; value: number }>();
  return {
    add(labels: Labels): void {
      const key = JSON.stringify(labels);
      const known = series.get(key);
      if (known) known.value++;
      else if (series.size < MAX_SERIES) series.set(key, { labels, value: 1 });
    },
    family: (): ValueFamily => ({
      name: `config_sync_${name}`,
      help,
      type: 'counter',
      samples: [...series.values()],
    }),
  };
}

const family = (
  name: string,
  help: string,
  samples: ValueFamily['samples'],
  type: ValueFamily['type'] = 'gauge',
): ValueFamily => ({ name: `config_sync_${name}`, help, type, samples });

function errorFamilies(all: readonly Last[]): ValueFamily[] {
  return [
    family(
      'reconciler_errors',
      'Errors in the status of a sync, by stage and class of code.',
      all.flatMap(({ labels, status }) =>
        STAGES.flatMap((component) => {
          const errors = status?.[component]?.errors ?? [];
          return CLASSES.map((errorclass) => ({
            labels: { ...labels, component, errorclass },
            value: errors.filter(({ code }) => `${code[0]}xxx` === errorclass).length,
          }));
        }),
      ),
    ),
    family(
      'pipeline_error_observed',
      '1 while a stage of a sync has an error.',
      all.flatMap(({ labels, reconciler, status, attempt }) =>
        [...STAGES, 'readiness' as const].map((component) => ({
          labels: { ...labels, name: labels['configsync_sync_name']!, reconciler, component },
          value: (
            component === 'readiness'
              ? attempt?.statuses.some((one) => one.status === 'Failed')
              : (status?.[component]?.errorSummary?.totalCount ?? 0) > 0
          )
            ? 1
            : 0,
        })),
      ),
    ),
  ];
}

function attemptFamilies(all: readonly Last[]): MetricFamily[] {
  const done = all.flatMap(({ attempt, ...last }) => (attempt ? [{ ...last, attempt }] : []));
  const of = (labels: Labels, attempt: Attempted): Labels => ({ ...labels, commit: attempt.commit });
  const withStatus = (labels: Labels, attempt: Attempted): Labels => ({
    ...of(labels, attempt),
    status: word(attempt.ok),
  });
  const duration: HistogramFamily = {
    name: 'config_sync_apply_duration_seconds',
    help: 'Time that applying and pruning a commit took.',
    type: 'histogram',
    bounds: BOUNDS,
    samples: done.flatMap(({ labels, attempt, durations }) =>
      [...durations].map(([status, one]) => ({ labels: { ...of(labels, attempt), status }, durations: one })),
    ),
  };
  const seconds = (ms: number): number => Math.floor(ms / 1000);
  return [
    duration,
    family(
      'last_apply_timestamp',
      'When the last attempt ended, seconds since 1970.',
      done.map(({ labels, attempt }) => ({ labels: withStatus(labels, attempt), value: seconds(attempt.at) })),
    ),
    family(
      'last_sync_timestamp',
      'When the last sync ended, seconds since 1970.',
      done.map(({ labels, attempt }) => ({ labels: withStatus(labels, attempt), value: seconds(attempt.at) })),
    ),
    family(
      'declared_resources',
      'Objects that the commit declares.',
      done.map(({ labels, attempt }) => ({ labels: of(labels, attempt), value: attempt.declared })),
    ),
    family(
      'resource_conflicts_total',
      'Objects that another sync manages.',
      done.map(({ labels, attempt, conflicts }) => ({ labels: of(labels, attempt), value: conflicts })),
      'counter',
    ),
  ];
}

/** What upstream's controller of ResourceGroups has: one group is one sync. */
function inventoryFamilies(all: readonly Last[]): ValueFamily[] {
  const groups = all.flatMap(({ labels, attempt }) =>
    attempt
      ? [
          {
            labels: { resourcegroup: `${labels['configsync_sync_namespace']}/${labels['configsync_sync_name']}` },
            statuses: attempt.statuses,
          },
        ]
      : [],
  );
  const count = (name: string, help: string, test: (statuses: readonly ResourceStatus[]) => number): ValueFamily =>
    family(
      name,
      help,
      groups.map(({ labels, statuses }) => ({ labels, value: test(statuses) })),
    );
  const number =
    (test: (status: ResourceStatus) => boolean) =>
    (statuses: readonly ResourceStatus[]): number =>
      statuses.filter(test).length;
  return [
    family('resource_group_total', 'Inventories of syncs.', [{ labels: {}, value: groups.length }]),
    count('resource_count', 'Objects of an inventory.', ({ length }) => length),
    count(
      'ready_resource_count',
      'Objects that are as they should be.',
      number(({ status }) => status === 'Current'),
    ),
    count(
      'resource_ns_count',
      'Namespaces that objects of an inventory are in.',
      (statuses) => new Set(statuses.map(({ namespace }) => namespace).filter((name) => name !== '')).size,
    ),
    count(
      'cluster_scoped_resource_count',
      'Objects of an inventory that are in no namespace.',
      number(({ namespace }) => namespace === ''),
    ),
    count(
      'crd_count',
      'Definitions of kinds in an inventory.',
      number(({ kind }) => kind === 'CustomResourceDefinition'),
    ),
  ];
}
