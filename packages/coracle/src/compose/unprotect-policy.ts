/**
 * The right to switch protection off on an external cluster, where none of our admission runs: the role that has
 * it, and a ValidatingAdmissionPolicy with the rule of `unprotect-rights.ts`, which asks the cluster's authorizer. Its
 * parameter is the KubeVirt object, so that the same annotation turns it on.
 */
import { DELETE_PROTECTION_LABEL } from '@coracle/kubevirt/rules/protection/delete-protection';
import { UNPROTECT_PERMISSION_ANNOTATION } from '@coracle/kubevirt/rules/protection/protection-settings';
import {
  UNPROTECT_ROLE,
  UNPROTECT_RULES,
  UNPROTECT_VERB,
} from '@coracle/kubevirt/rules/protection/unprotect-permission';
import { COMPONENT_NAMESPACE } from './components.ts';
import { type Manifest, policyManifests } from './policy-manifest.ts';

const NAME = 'coracle-unprotect';

const isOn = (machine: string): string =>
  `${machine}.metadata.?labels.orValue({})[?'${DELETE_PROTECTION_LABEL}'].orValue('') in ['true', 'True']`;
const needsPermission = `params.metadata.?annotations.orValue({})[?'${UNPROTECT_PERMISSION_ANNOTATION}'].orValue('') == 'true'`;
const mayUnprotect =
  `authorizer.group('kubevirt.io').resource('virtualmachines').namespace(request.namespace)` +
  `.name(request.name).check('${UNPROTECT_VERB}').allowed()`;

/** The text of `unprotectRefusal`; CEL cannot see which names a shell takes as they are. */
const message =
  `'user "' + request.userInfo.username + '" cannot ${UNPROTECT_VERB} resource "virtualmachines" in API group ` +
  `"kubevirt.io" in the namespace "' + request.namespace + '": to switch off label ${DELETE_PROTECTION_LABEL} of ` +
  `VirtualMachine ' + request.namespace + '/' + request.name + ' takes the verb "${UNPROTECT_VERB}". An administrator ` +
  `grants it with: kubectl create rolebinding unprotect -n ' + request.namespace + ' --clusterrole=${UNPROTECT_ROLE} ` +
  `--user=NAME'`;

/** The role, the policy and its binding. */
export const unprotectPolicy = (labels: Readonly<Record<string, string>>): Manifest[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: UNPROTECT_ROLE, labels },
    rules: UNPROTECT_RULES,
  },
  ...policyManifests(NAME, labels, {
    of: {
      apiGroups: ['kubevirt.io'],
      apiVersions: ['v1', 'v1alpha3'],
      operations: ['UPDATE'],
      resources: ['virtualmachines', 'virtualmachines/*'],
    },
    params: {
      kind: { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt' },
      ref: { namespace: COMPONENT_NAMESPACE, selector: {}, parameterNotFoundAction: 'Allow' },
    },
    validations: [
      {
        // The authorizer is asked last: only where protection would go.
        expression:
          `!(${needsPermission}) || has(oldObject.metadata.deletionTimestamp) || !(${isOn('oldObject')}) || ` +
          `(${isOn('object')}) || ${mayUnprotect}`,
        messageExpression: message,
      },
    ],
  }),
];
