/**
 * Who reads what the network of Pods is made of: a node that runs an agent, which says so on its Node. Other nodes read
 * their own Pods and no more, as upstream.
 */
import type { NodeDecision } from '@coracle/apiserver/auth/node-authorizer';
import { allowsResource } from '@coracle/apiserver/auth/rbac';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';
import { POD_NETWORK_RULES } from '@coracle/node-agent/agent/rbac';
import { AGENT_ID_ANNOTATION } from '@coracle/node-agent/agent/registration/node-object';

/** The decision of the Node authorizer beside what every node may. */
export const podNetworkRights =
  (store: Pick<ObjectStore, 'get'>): NodeDecision =>
  (node, attributes) => {
    if (!POD_NETWORK_RULES.some((rule) => allowsResource(rule, attributes))) return { allowed: false, reason: '' };
    const found = store.get({ prefix: '/nodes', namespace: '', name: node });
    const isAgent = found?.object.metadata.annotations?.[AGENT_ID_ANNOTATION] !== undefined;
    return { allowed: isAgent, reason: '' };
  };
