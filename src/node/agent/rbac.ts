/** What the agent asks of the API, as RBAC rules: `cmd/compose` binds them to the agent's account. */
import type { PolicyRule } from '../../api/kinds/builtin/access-types.ts';

export const NODE_AGENT_ROLE = 'coracle:node-agent';

export const NODE_AGENT_RULES: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['list'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch', 'update'] },
  { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims', 'persistentvolumes'], verbs: ['get'] },
  { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
];
