/**
 * The specs that the flow schemas and priority levels `exempt` and `catch-all` have in every cluster, and keep
 * (pkg/apis/flowcontrol/bootstrap): without them a request might find no level at all.
 */
import type { JsonObject } from '@coracle/apimachinery/types/read-value';

const everything = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
};
const group = (name: string) => ({ kind: 'Group', group: { name } });

/** By name of the flow schema. */
export const MANDATORY_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  exempt: {
    priorityLevelConfiguration: { name: 'exempt' },
    matchingPrecedence: 1,
    rules: [{ subjects: [group('system:masters')], ...everything }],
  },
  'catch-all': {
    priorityLevelConfiguration: { name: 'catch-all' },
    matchingPrecedence: 10_000,
    distinguisherMethod: { type: 'ByUser' },
    rules: [{ subjects: [group('system:unauthenticated'), group('system:authenticated')], ...everything }],
  },
};

/** By name of the priority level. */
export const MANDATORY_LEVELS: Readonly<Record<string, JsonObject>> = {
  exempt: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  'catch-all': {
    type: 'Limited',
    limited: { nominalConcurrencyShares: 5, lendablePercent: 0, limitResponse: { type: 'Reject' } },
  },
};
