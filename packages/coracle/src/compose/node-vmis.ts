/**
 * A node reports on the instances that run on it, or are on their way there, and on no others: what NodeRestriction is
 * for Pods. An instance has no `/status`, so that its report comes as a write of the whole: of that the status may differ
 * and nothing else. (Upstream leaves this to a ValidatingAdmissionPolicy for virt-handler.)
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { AdmissionPlugin } from '@coracle/apiserver/admission/plugin';
import type { AuthorizationDecision } from '@coracle/apiserver/auth/identity';
import { type NodeDecision, nodeIdentity } from '@coracle/apiserver/auth/node-authorizer';
import type { NodeGraph } from '@coracle/apiserver/auth/node-graph';
import type { ObjectStore } from '@coracle/apiserver/cache/object-store';

interface InstanceParts {
  status?: { nodeName?: string; migrationState?: { sourceNode?: string; targetNode?: string } };
}

const NODE_LABELS = ['kubevirt.io/nodeName', 'kubevirt.io/migrationTargetNodeName'];

export const nodeVmis: AdmissionPlugin = {
  name: 'NodeVirtualMachineInstances',
  matches: (operation, info, subresource) =>
    operation !== 'CONNECT' &&
    info.group === 'kubevirt.io' &&
    info.resource === 'virtualmachineinstances' &&
    subresource === '',
  validate({ user, info, name, object, oldObject, operation }) {
    const node = nodeIdentity(user);
    if (node === undefined) return;
    const who = `node ${JSON.stringify(node)}`;
    if (operation !== 'UPDATE' || !object || !oldObject || !nodesOf(oldObject).includes(node))
      throw forbidden(info, name, `${who} can only update the status of instances on itself`);
    if (!deepEqual(beyondStatus(object), beyondStatus(oldObject)))
      throw forbidden(info, name, `${who} can only update the status of instances, and nothing else of them`);
  },
};

/** What is the server's own to write, with every update. */
const KEPT_BY_SERVER = new Set(['managedFields', 'resourceVersion', 'generation']);

function beyondStatus(instance: Readonly<UnstructuredObject>): Record<string, unknown> {
  const { status: _, metadata, ...rest } = instance as UnstructuredObject & InstanceParts;
  const kept = Object.entries(metadata).filter(([field]) => !KEPT_BY_SERVER.has(field));
  return { ...rest, metadata: Object.fromEntries(kept) };
}

function nodesOf(instance: Readonly<UnstructuredObject>): (string | undefined)[] {
  const { nodeName, migrationState } = (instance as InstanceParts).status ?? {};
  const labels = instance.metadata.labels ?? {};
  return [nodeName, migrationState?.sourceNode, migrationState?.targetNode, ...NODE_LABELS.map((key) => labels[key])];
}

const INSTANCES = 'kubevirt.io/virtualmachineinstances';
const ALLOW: AuthorizationDecision = { allowed: true, reason: '' };
const no = (reason: string): AuthorizationDecision => ({ allowed: false, reason });

/**
 * Which instances a node reads, and reports on: those that run on it, move to or from it, or whose launcher is bound to
 * it. Lists and watches are narrowed to it by one of the labels that say so. An instance that is not there is "not
 * found": an agent that looks for the end of a guest must hear that.
 */
export const nodeInstances =
  (facts: { readonly graph: Pick<NodeGraph, 'controls'>; readonly store: Pick<ObjectStore, 'get'> }): NodeDecision =>
  (node, { verb, namespace, name, subresource, labelSelector }) => {
    if (subresource !== '' && subresource !== 'status') return no('cannot use subresources of instances');
    if ((verb === 'list' || verb === 'watch') && subresource === '') {
      const isNarrowed = labelSelector?.requirements.some(
        ({ key, operator, values }) =>
          NODE_LABELS.includes(key) &&
          ['=', '==', 'in'].includes(operator) &&
          values.length === 1 &&
          values[0] === node,
      );
      if (isNarrowed) return ALLOW;
      return no('can only list/watch instances with a label selector for the own node');
    }
    if (verb !== 'get' && verb !== 'patch') return no('can only read instances, and patch their status');
    if (name === '') return no('No Object name found');
    const found = facts.store.get({ prefix: INSTANCES, namespace, name });
    const owner = { group: 'kubevirt.io', kind: 'VirtualMachineInstance', namespace, name };
    if (!found || nodesOf(found.object).includes(node) || facts.graph.controls(node, owner)) return ALLOW;
    return no(`no relationship found between node '${node}' and this object`);
  };
