/**
 * The priority levels and flow schemas every cluster starts with (pkg/apis/flowcontrol/bootstrap). `endpoints/flow-control`
 * gives requests their seats by them.
 */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS } from '../kinds/builtin/mandatory-flow-control.ts';

const API_VERSION = 'flowcontrol.apiserver.k8s.io/v1';
const metadata = (name: string) => ({ name, annotations: { 'apf.kubernetes.io/autoupdate-spec': 'true' } });

interface Queues {
  readonly queues: number;
  readonly handSize: number;
}

const level = (name: string, spec: object): UnstructuredObject => ({
  apiVersion: API_VERSION,
  kind: 'PriorityLevelConfiguration',
  metadata: metadata(name),
  spec,
});

const limited = (name: string, shares: number, lendablePercent: number, queuing: Queues): UnstructuredObject =>
  level(name, {
    type: 'Limited',
    limited: {
      nominalConcurrencyShares: shares,
      lendablePercent,
      limitResponse: { type: 'Queue', queuing: { ...queuing, queueLengthLimit: 50 } },
    },
  });

const WIDE: Queues = { queues: 128, handSize: 6 };
const NARROW: Queues = { queues: 64, handSize: 6 };

const PRIORITY_LEVELS: readonly UnstructuredObject[] = [
  level('exempt', MANDATORY_LEVELS['exempt']!),
  limited('system', 30, 33, NARROW),
  limited('node-high', 40, 25, NARROW),
  limited('leader-election', 10, 0, { queues: 16, handSize: 4 }),
  limited('workload-high', 40, 50, WIDE),
  limited('workload-low', 100, 90, WIDE),
  limited('global-default', 20, 50, WIDE),
  level('catch-all', MANDATORY_LEVELS['catch-all']!),
];

const group = (name: string) => ({ kind: 'Group', group: { name } });
const user = (name: string) => ({ kind: 'User', user: { name } });
const accounts = (namespace: string) => ({ kind: 'ServiceAccount', serviceAccount: { namespace, name: '*' } });
const EVERYONE = [group('system:unauthenticated'), group('system:authenticated')];

const resources = (rule: { verbs?: string[]; apiGroups?: string[]; resources?: string[]; clusterScope?: boolean }) => {
  const { verbs = ['*'], apiGroups = ['*'], resources: names = ['*'], clusterScope = true } = rule;
  return { verbs, apiGroups, resources: names, namespaces: ['*'], ...(clusterScope && { clusterScope }) };
};
const paths = (nonResourceURLs: string[], verbs: string[] = ['*']) => ({ verbs, nonResourceURLs });

interface Schema {
  readonly level: string;
  readonly precedence: number;
  readonly by?: 'ByUser' | 'ByNamespace';
  readonly subjects: readonly object[];
  /** Absent = all of them. */
  readonly resourceRules?: readonly object[];
  readonly nonResourceRules?: readonly object[];
}

const schemaOf = (name: string, spec: object): UnstructuredObject => ({
  apiVersion: API_VERSION,
  kind: 'FlowSchema',
  metadata: metadata(name),
  spec,
  status: { conditions: [{ type: 'Dangling', status: 'False', reason: 'Found' }] },
});

function schema(name: string, { level: named, precedence, by, subjects, ...rules }: Schema): UnstructuredObject {
  const all = rules.resourceRules === undefined && rules.nonResourceRules === undefined;
  return schemaOf(name, {
    priorityLevelConfiguration: { name: named },
    matchingPrecedence: precedence,
    ...(by && { distinguisherMethod: { type: by } }),
    rules: [
      {
        subjects,
        ...(all ? { resourceRules: [resources({})], nonResourceRules: [paths(['*'])] } : rules),
      },
    ],
  });
}

const FLOW_SCHEMAS: readonly UnstructuredObject[] = [
  schemaOf('exempt', MANDATORY_SCHEMAS['exempt']!),
  schema('probes', {
    level: 'exempt',
    precedence: 2,
    subjects: EVERYONE,
    nonResourceRules: [paths(['/healthz', '/readyz', '/livez'], ['get'])],
  }),
  schema('system-leader-election', {
    level: 'leader-election',
    precedence: 100,
    by: 'ByUser',
    subjects: [user('system:kube-controller-manager'), user('system:kube-scheduler'), accounts('kube-system')],
    resourceRules: [
      resources({
        verbs: ['get', 'create', 'update'],
        apiGroups: ['coordination.k8s.io'],
        resources: ['leases'],
        clusterScope: false,
      }),
    ],
  }),
  schema('system-node-high', {
    level: 'node-high',
    precedence: 400,
    by: 'ByUser',
    subjects: [group('system:nodes')],
    resourceRules: [
      resources({ apiGroups: [''], resources: ['nodes', 'nodes/status'] }),
      resources({ apiGroups: ['coordination.k8s.io'], resources: ['leases'], clusterScope: false }),
    ],
  }),
  schema('system-nodes', { level: 'system', precedence: 500, by: 'ByUser', subjects: [group('system:nodes')] }),
  schema('kube-controller-manager', {
    level: 'workload-high',
    precedence: 800,
    by: 'ByNamespace',
    subjects: [user('system:kube-controller-manager')],
  }),
  schema('kube-scheduler', {
    level: 'workload-high',
    precedence: 800,
    by: 'ByNamespace',
    subjects: [user('system:kube-scheduler')],
  }),
  schema('kube-system-service-accounts', {
    level: 'workload-high',
    precedence: 900,
    by: 'ByNamespace',
    subjects: [accounts('kube-system')],
  }),
  schema('service-accounts', {
    level: 'workload-low',
    precedence: 9000,
    by: 'ByUser',
    subjects: [group('system:serviceaccounts')],
  }),
  schema('global-default', { level: 'global-default', precedence: 9900, by: 'ByUser', subjects: EVERYONE }),
  schemaOf('catch-all', MANDATORY_SCHEMAS['catch-all']!),
];

export const FLOW_CONTROL_OBJECTS: readonly UnstructuredObject[] = [...PRIORITY_LEVELS, ...FLOW_SCHEMAS];
