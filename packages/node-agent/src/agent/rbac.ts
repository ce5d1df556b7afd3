/**
 * What the agent asks of the API, as RBAC rules. A server of ours knows each agent as a node (`system:node:NAME`): its
 * Node authorizer gives it what a kubelet gets, and only of the Pods bound to it, so that a role has to add the rest.
 */
import type { PolicyRule } from '@coracle/apimachinery/types/access-types';

/**
 * What the network of Pods is made of, as kube-proxy and network plug-ins read it, which have accounts of their own: a
 * server of ours gives it to nodes that run an agent, and to no others.
 */
export const POD_NETWORK_RULES: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['pods', 'services', 'nodes', 'namespaces'], verbs: ['list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
];

/** Beside what every node may do, for the group system:nodes. Instances: the Node authorizer, `nodeInstances`. */
export const NODE_VM_RULES: readonly PolicyRule[] = [
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['list'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get'] },
];

/** Everything, for the agents' service account on a server that does not know them as nodes. */
export const NODE_AGENT_RULES: readonly PolicyRule[] = [
  ...POD_NETWORK_RULES,
  { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances'], verbs: ['get', 'list', 'watch', 'patch'] },
  { apiGroups: ['kubevirt.io'], resources: ['kubevirts'], verbs: ['list'] },
  // Where its definition has a status subresource; upstream's has none.
  { apiGroups: ['kubevirt.io'], resources: ['virtualmachineinstances/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
  { apiGroups: [''], resources: ['secrets', 'configmaps'], verbs: ['get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims', 'persistentvolumes'], verbs: ['get'] },
  { apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'] },
  // Whether the API server may ask for a log or a port (`server-access.ts`).
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
  // The certificate by which agents know each other; the list of those to believe is a ConfigMap.
  { apiGroups: ['certificates.k8s.io'], resources: ['certificatesigningrequests'], verbs: ['create', 'get'] },
];
