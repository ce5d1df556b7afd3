/**
 * A node reports on the instances that run on it, or are on their way there, and on no others: what NodeRestriction is
 * for Pods. An instance has no `/status`, so that its report comes as a write of the whole: of that the status may differ
 * and nothing else. (Upstream leaves this to a ValidatingAdmissionPolicy for virt-handler.)
 */
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { forbidden } from '../../api/meta/status.ts';
import type { AdmissionPlugin } from '../../server/admission/plugin.ts';
import { nodeIdentity } from '../../server/auth/node-authorizer.ts';

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
