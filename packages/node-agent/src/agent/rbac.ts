/**
 * What the agent asks of the API, as RBAC rules. A server of ours knows each agent as a node (`system:node:NAME`): its
 * Node authorizer gives it what a kubelet gets, and only of the Pods bound to it, so that a role has to add the rest.
 */
import { policyRules } from '@coracle/apimachinery/types/policy-rules';

/**
 * What the network of Pods is made of, as kube-proxy and network plug-ins read it, which have accounts of their own: a
 * server of ours gives it to nodes that run an agent, and to no others.
 */
export const POD_NETWORK_RULES = policyRules(
  'list watch : core : pods services nodes namespaces',
  'list watch : networking.k8s.io : networkpolicies',
  'list watch : discovery.k8s.io : endpointslices',
);

/** Beside what every node may do, for the group system:nodes. Instances: the Node authorizer, `nodeInstances`. */
export const NODE_VM_RULES = policyRules(
  'list : kubevirt.io : kubevirts',
  'get : core : events',
  'get : k8s.cni.cncf.io : network-attachment-definitions',
  // Where exports are served.
  'get : cdi.kubevirt.io : cdiconfigs',
);

/** Everything, for the agents' service account on a server that does not know them as nodes. */
export const NODE_AGENT_RULES = policyRules(
  ...POD_NETWORK_RULES,
  'get create patch : core : nodes',
  'patch : core : nodes/status',
  'create patch : coordination.k8s.io : leases',
  'get list watch delete : core : pods',
  'patch : core : pods/status',
  'get list watch patch : kubevirt.io : virtualmachineinstances',
  'list : kubevirt.io : kubevirts',
  'get : k8s.cni.cncf.io : network-attachment-definitions',
  // Where its definition has a status subresource; upstream's has none.
  'patch : kubevirt.io : virtualmachineinstances/status',
  'create patch : core : events',
  'get : core : secrets configmaps',
  'get : core : persistentvolumeclaims persistentvolumes',
  'create : core : serviceaccounts/token',
  // Whether the API server may ask for a log or a port (`server-access.ts`).
  'create : authorization.k8s.io : subjectaccessreviews',
  // The certificate by which agents know each other; the list of those to believe is a ConfigMap.
  'create get : certificates.k8s.io : certificatesigningrequests',
);
