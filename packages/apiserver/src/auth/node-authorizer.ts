/**
 * The Node authorizer (plugin/pkg/auth/authorizer/node): a node reads the Secrets, ConfigMaps, claims and volumes of the
 * Pods bound to it, and its own Node and Lease; it creates no Pods, and has nothing to do with CSI drivers and devices,
 * which no agent of a node serves. It has no opinion of anybody else, and what it does not allow
 * RBAC may. Whose objects a node writes is checked by the NodeRestriction admission plug-in.
 */

import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { AuthorizationAttributes, AuthorizationDecision, InstantAuthorizer, UserInfo } from './identity.ts';
import type { NodeGraph, ReferredResource } from './node-graph.ts';
import { allows } from './rbac.ts';

const NODE_USER = 'system:node:';
const NODES_GROUP = 'system:nodes';
const NODE_LEASES = 'kube-node-lease';

/** The node a user is: its name, '' when it says no name, undefined when it is no node. */
export function nodeIdentity(user: Pick<UserInfo, 'username' | 'groups'>): string | undefined {
  if (!user.username.startsWith(NODE_USER) || !user.groups.includes(NODES_GROUP)) return undefined;
  return user.username.slice(NODE_USER.length);
}

export type ResourceAttributes = AuthorizationAttributes & { type: 'resource' };

const ALLOW: AuthorizationDecision = { allowed: true, reason: '' };
const no = (reason: string): AuthorizationDecision => ({ allowed: false, reason });
const NO_OPINION = no('');

const READS = new Set(['get', 'list', 'watch']);
const OWN_OBJECT_VERBS = new Set(['get', 'create', 'update', 'patch', 'delete']);

/** What a node may do with one object, or with a selection of them. */
export type NodeDecision = (node: string, attributes: ResourceAttributes) => AuthorizationDecision;

export interface NodeAuthorizerOptions {
  readonly graph: NodeGraph;
  /** What every node may do (the rules of ClusterRole system:node). */
  readonly rules: readonly PolicyRule[];
  /** By `group/resource`: what nodes may do with kinds that this server does not know of itself. */
  readonly more?: Readonly<Record<string, NodeDecision>>;
  /** Asked where all of that does not allow: what some nodes may do beside it. */
  readonly beside?: NodeDecision;
}

/** The authorizer; its decision on users that are no nodes is "no opinion". */
export function createNodeAuthorizer({
  graph,
  rules,
  more = {},
  beside = () => NO_OPINION,
}: NodeAuthorizerOptions): InstantAuthorizer {
  const decisions: Decisions = {
    ...NOT_OF_NODES,
    ...OWN_OBJECTS,
    ...relatedObjects(graph),
    '/pods': podDecision(graph),
  };

  const everyNode = (_: string, attributes: AuthorizationAttributes): AuthorizationDecision =>
    rules.some((rule) => allows(rule, attributes)) ? ALLOW : NO_OPINION;

  return (user, attributes) => {
    const node = nodeIdentity(user);
    if (node === undefined) return NO_OPINION;
    if (node === '') return no(`unknown node for user ${JSON.stringify(user.username)}`);
    if (attributes.type === 'path') return everyNode(node, attributes);
    const kind = `${attributes.group}/${attributes.resource}`;
    const decide = decisions[kind] ?? more[kind] ?? everyNode;
    const decision = decide(node, attributes);
    return decision.allowed || !beside(node, attributes).allowed ? decision : ALLOW;
  };
}

/** By `group/resource`: what is asked about the object, not about the kind. */
type Decisions = Readonly<Record<string, NodeDecision>>;

const related = (node: string, ok: boolean): AuthorizationDecision =>
  ok ? ALLOW : no(`no relationship found between node '${node}' and this object`);
const ifNamed = ({ name }: ResourceAttributes, ask: () => AuthorizationDecision): AuthorizationDecision =>
  name === '' ? no('No Object name found') : ask();

const getOnly = (a: ResourceAttributes, ask: () => AuthorizationDecision): AuthorizationDecision => {
  if (a.verb !== 'get') return no('can only get individual resources of this type');
  if (a.subresource !== '') return no('cannot get subresource');
  return ask();
};
const readNamespaced = (a: ResourceAttributes, ask: () => AuthorizationDecision): AuthorizationDecision => {
  if (!READS.has(a.verb)) return no('can only read resources of this type');
  if (a.subresource !== '') return no('cannot read subresource');
  if (a.namespace === '') return no('can only read namespaced object of this type');
  return ask();
};

/** Of CSI drivers and devices, which no agent of a node serves, though the rules of every node name them. */
const NOT_OF_NODES: Decisions = Object.fromEntries(
  [
    'storage.k8s.io/csinodes',
    'storage.k8s.io/volumeattachments',
    'resource.k8s.io/resourceclaims',
    'resource.k8s.io/resourceslices',
  ].map((kind) => [kind, () => no('no agent of a node serves CSI drivers or devices')]),
);

/** What a node has only to do with because of its Pods. */
function relatedObjects(graph: NodeGraph): Decisions {
  const refers = (node: string, resource: ReferredResource, a: ResourceAttributes): AuthorizationDecision =>
    ifNamed(a, () => related(node, graph.refers(node, resource, a.namespace, a.name)));
  return {
    '/secrets': (node, a) => readNamespaced(a, () => refers(node, 'secrets', a)),
    '/configmaps': (node, a) => readNamespaced(a, () => refers(node, 'configmaps', a)),
    '/persistentvolumeclaims'(node, a) {
      if (a.subresource !== 'status') return getOnly(a, () => refers(node, 'persistentvolumeclaims', a));
      if (a.verb !== 'update' && a.verb !== 'patch') return no('can only get/update/patch this type');
      return refers(node, 'persistentvolumeclaims', a);
    },
    '/persistentvolumes': (node, a) =>
      getOnly(a, () => ifNamed(a, () => related(node, graph.usesVolume(node, a.name)))),
    '/serviceaccounts'(node, a) {
      // Credential providers of kubelets look at the account of the Pod an image is pulled for (KEP-4412).
      if (a.subresource === '' && a.verb === 'get') return refers(node, 'serviceaccounts', a);
      if (a.verb !== 'create' || a.name === '') return no('can only create tokens for individual service accounts');
      if (a.subresource !== 'token') return no('can only create token subresource of serviceaccount');
      return refers(node, 'serviceaccounts', a);
    },
  };
}

/** The objects that a node keeps of itself: they are known by its name, and no relation is asked for. */
const OWN_OBJECTS: Decisions = {
  'coordination.k8s.io/leases'(node, a) {
    if (!OWN_OBJECT_VERBS.has(a.verb)) return no('can only get, create, update, patch, or delete a node lease');
    if (a.namespace !== NODE_LEASES) return no(`can only access leases in the "${NODE_LEASES}" system namespace`);
    if (a.verb !== 'create' && a.name !== node)
      return no('can only access node lease with the same name as the requesting node');
    return ALLOW;
  },
  '/nodes'(node, a) {
    if (a.subresource === 'status') return a.verb === 'update' || a.verb === 'patch' ? ALLOW : NO_OPINION;
    if (a.subresource !== '') return NO_OPINION;
    if (a.verb === 'create' || a.verb === 'update' || a.verb === 'patch') return ALLOW;
    if (!READS.has(a.verb)) return NO_OPINION;
    if (a.name === node) return ALLOW;
    return a.name === ''
      ? no(`node '${node}' cannot read all nodes, only its own Node object`)
      : no(`node '${node}' cannot read '${a.name}', only its own Node object`);
  },
};

const podDecision =
  (graph: NodeGraph): NodeDecision =>
  (node, a) => {
    if (a.subresource === 'status') return a.verb === 'update' || a.verb === 'patch' ? ALLOW : NO_OPINION;
    if (a.subresource === 'eviction') return a.verb === 'create' ? ALLOW : NO_OPINION;
    if (a.subresource !== '') return NO_OPINION;
    const own = (): AuthorizationDecision => related(node, graph.runsPod(node, a.namespace, a.name));
    switch (a.verb) {
      case 'get':
        return ifNamed(a, own);
      case 'list':
      case 'watch':
        if (selects(a, 'spec.nodeName', node)) return ALLOW;
        return a.name === '' ? no('can only list/watch pods with spec.nodeName field selector') : own();
      case 'delete':
        return ALLOW;
      default:
        return NO_OPINION;
    }
  };

const selects = ({ fieldSelector = [] }: ResourceAttributes, field: string, value: string): boolean =>
  fieldSelector.some((one) => one.field === field && one.op === '=' && one.value === value);
