/**
 * `metrics.k8s.io/v1beta1`, answered in this process: `kubectl top` and autoscalers work without a metrics-server. Who
 * installs one gives the group to it by its APIService, as any group of this process.
 */
import type { DeepReadonly, ObjectMeta, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { methodNotAllowed, notFound } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { PolicyRole } from '@coracle/apiserver/auth/bootstrap-policy';
import type { ObjectStore, StoredObject } from '@coracle/apiserver/cache/object-store';
import type { AggregatedApi } from '@coracle/apiserver/endpoints/aggregated-api';
import { authorizationAttributes } from '@coracle/apiserver/endpoints/authorization';
import { type Computed, computedResponse } from '@coracle/apiserver/endpoints/computed-response';
import { createSelection } from '@coracle/apiserver/registry/selection';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MeasuredNode, NodeUsage } from './node-usage.ts';
import { METRICS_GROUP, METRICS_TABLE, METRICS_VERSION, nodeMetrics, podMetrics } from './usage-objects.ts';

export interface MetricsApiOptions {
  readonly store: Pick<ObjectStore, 'get' | 'list'>;
  /** Nodes and Pods of the core group. */
  readonly nodes: ResourceInfo;
  readonly pods: ResourceInfo;
  readonly usage: NodeUsage;
  readonly clock: Clock;
}

/** metrics-server's role, with which viewers, editors and admins of a namespace read it. */
export const METRICS_READER: PolicyRole = {
  kind: 'ClusterRole',
  name: 'system:aggregated-metrics-reader',
  labels: Object.fromEntries(
    ['admin', 'edit', 'view'].map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true']),
  ),
  rules: [{ apiGroups: [METRICS_GROUP], resources: ['pods', 'nodes'], verbs: ['get', 'list', 'watch'] }],
};

/** What is measured of one of the two resources. */
interface Measured {
  /** The objects that are measured. */
  readonly of: ResourceInfo;
  /** As upstream names it in messages. */
  readonly kind: 'NodeMetrics' | 'PodMetrics';
  /** The node whose agent knows; '' when there is none. */
  readonly nodeOf: (object: Readonly<UnstructuredObject>) => string;
  readonly metricsOf: (
    object: Readonly<UnstructuredObject>,
    measured: MeasuredNode | undefined,
  ) => UnstructuredObject | undefined;
}

/** Makes the group. */
export function createMetricsApi({ store, nodes, pods, usage, clock }: MetricsApiOptions): AggregatedApi {
  const kinds: Readonly<Record<string, Measured>> = {
    nodes: { of: nodes, kind: 'NodeMetrics', nodeOf: ({ metadata }) => metadata.name ?? '', metricsOf: nodeMetrics },
    pods: {
      of: pods,
      kind: 'PodMetrics',
      nodeOf: (pod) => (pod as { readonly spec?: { readonly nodeName?: string } }).spec?.nodeName ?? '',
      metricsOf: podMetrics,
    },
  };
  /** Those of the objects that have a sample, in their order. */
  const measure = async (found: readonly StoredObject[], kind: Measured): Promise<UnstructuredObject[]> => {
    const objects = found.map(({ object }) => object as DeepReadonly<UnstructuredObject> as UnstructuredObject);
    const names = [...new Set(objects.map(kind.nodeOf))].filter((name) => name !== '');
    const byNode = new Map(await Promise.all(names.map(async (name) => [name, await usage(name)] as const)));
    return objects.flatMap((object) => kind.metricsOf(object, byNode.get(kind.nodeOf(object))) ?? []);
  };

  const getOne = async (
    kind: Measured,
    { namespace, name }: Pick<ObjectMeta, 'namespace' | 'name'>,
  ): Promise<Computed> => {
    const key = { prefix: storagePrefix(kind.of), namespace: namespace ?? '', name: name ?? '' };
    const stored = store.get(key);
    if (!stored) throw notFound(kind.of, key.name);
    const [object] = await measure([stored], kind);
    const resource = kind.kind.toLowerCase();
    if (!object) throw notFound({ group: METRICS_GROUP, resource }, namespace ? `${namespace}/${name}` : key.name);
    return { type: 'object', object };
  };

  const listAll = async (kind: Measured, namespace: string, query: URLSearchParams): Promise<Computed> => {
    const selection = createSelection(kind.of, {
      labelSelector: query.get('labelSelector') ?? '',
      fieldSelector: query.get('fieldSelector') ?? '',
    });
    const { items } = store.list(storagePrefix(kind.of), namespace === '' ? {} : { namespace });
    const objects = await measure(items.filter(selection.matches), kind);
    return { type: 'list', apiVersion: `${METRICS_GROUP}/${METRICS_VERSION}`, kind: `${kind.kind}List`, objects };
  };

  return {
    group: METRICS_GROUP,
    versions: [METRICS_VERSION],
    discovery: Object.entries(kinds).map(([name, { of, kind }]) => ({
      name,
      singularName: '',
      namespaced: of.namespaced,
      kind,
      verbs: ['get', 'list'],
    })),
    operations: [],
    async handle(request, user, info, authorize) {
      const attributes = authorizationAttributes(info, request.query);
      if (info.namespace !== '') await authorize(user, attributes);
      const kind = Object.hasOwn(kinds, info.resource) ? kinds[info.resource]! : undefined;
      const isHere = kind && info.subresource === '' && (kind.of.namespaced || info.namespace === '');
      if (!isHere) throw notFound({ group: METRICS_GROUP, resource: info.resource }, info.name);
      if (info.verb !== 'get' && info.verb !== 'list') throw methodNotAllowed();
      const answer =
        info.verb === 'get'
          ? await getOne(kind, info)
          : await listAll(kind, info.namespace, new URLSearchParams(request.query));
      return computedResponse(request, { answer, table: METRICS_TABLE, now: clock.now() });
    },
  };
}
