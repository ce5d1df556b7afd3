/**
 * The right to switch the protection of a virtual machine off, as a permission of its own: the verb `unprotect` on
 * virtualmachines of kubevirt.io. Ours, for whoever may change a machine may change its labels.
 */
import type { DeepReadonly, ObjectMeta } from '@coracle/apimachinery/meta/object';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { DELETE_PROTECTION_LABEL, guardsItsParts, isDeleteProtected } from './delete-protection.ts';

/** Asked about by name, so that a role may list single machines in resourceNames. */
export const UNPROTECT_VERB = 'unprotect';

/** ClusterRole that has the verb and nothing else; part of no other role. */
export const UNPROTECT_ROLE = 'coracle:unprotect';

/** The rules of that role. */
export const UNPROTECT_RULES = policyRules(`${UNPROTECT_VERB} : kubevirt.io : virtualmachines`);

type Labelled = { readonly metadata: DeepReadonly<ObjectMeta> };

/** Whether a write takes the protection away, however it does. A machine whose deletion has begun has lost it already. */
export const switchesProtectionOff = (before: Labelled, after: Labelled): boolean =>
  guardsItsParts(before) && !isDeleteProtected(after);

/** What the refusal says to those who may not: the missing right, the machine, and how an administrator grants it. */
export function unprotectRefusal(request: {
  readonly username: string;
  readonly namespace: string;
  readonly name: string;
}): string {
  const { username, namespace, name } = request;
  return (
    `user ${JSON.stringify(username)} cannot ${UNPROTECT_VERB} resource "virtualmachines" in API group "kubevirt.io" in ` +
    `the namespace "${namespace}": to switch off label ${DELETE_PROTECTION_LABEL} of VirtualMachine ${namespace}/${name} ` +
    `takes the verb "${UNPROTECT_VERB}". An administrator grants it with: kubectl create rolebinding unprotect ` +
    `-n ${namespace} --clusterrole=${UNPROTECT_ROLE} ${subjectFlag(username)}`
  );
}

/** Names that a shell takes as they are; of others the administrator writes them. */
const PLAIN = /^[\w@.:/+-]+$/;

function subjectFlag(username: string): string {
  const [, account] = /^system:serviceaccount:([^:]+:[^:]+)$/.exec(username) ?? [];
  const flag = account === undefined ? `--user=${username}` : `--serviceaccount=${account}`;
  return PLAIN.test(username) ? flag : '--user=NAME';
}
