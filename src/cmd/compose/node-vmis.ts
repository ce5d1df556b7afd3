/**
 * A node reports on the instances that run on it, or are on their way there, and on no others: what NodeRestriction is
 * for Pods. (Upstream leaves this to a ValidatingAdmissionPolicy for virt-handler.)
 */
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
    operation === 'UPDATE' &&
    info.group === 'kubevirt.io' &&
    info.resource === 'virtualmachineinstances' &&
    subresource === 'status',
  validate({ user, info, name, oldObject }) {
    const node = nodeIdentity(user);
    if (node === undefined || (oldObject && nodesOf(oldObject).includes(node))) return;
    throw forbidden(info, name, `node ${JSON.stringify(node)} can only update the status of instances on itself`);
  },
};

function nodesOf(instance: Readonly<UnstructuredObject>): (string | undefined)[] {
  const { nodeName, migrationState } = (instance as InstanceParts).status ?? {};
  const labels = instance.metadata.labels ?? {};
  return [nodeName, migrationState?.sourceNode, migrationState?.targetNode, ...NODE_LABELS.map((key) => labels[key])];
}
