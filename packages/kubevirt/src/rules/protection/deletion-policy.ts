/**
 * The ValidatingAdmissionPolicy and its binding that refuse the deletion of a protected virtual machine: names, shape,
 * expressions and labels of those that ssp-operator writes (internal/operands/vm-delete-protection), byte for byte, so
 * that the two can stand in for one another.
 */
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '@coracle/apimachinery/types/types';
import { DELETE_PROTECTION_LABEL } from './delete-protection.ts';

/** Name of the policy and of its binding. */
export const DELETION_POLICY_NAME = 'kubevirt-vm-deletion-protection';

/** What is refused is refused to the client in these words. */
const MESSAGE = `'VirtualMachine ' + string(oldObject.metadata.name) + ' cannot be deleted, disable/remove label \\'${DELETE_PROTECTION_LABEL}\\' from VirtualMachine before deleting it'`;

/** Both as they are created, without what an SSP object adds. */
export const DELETION_POLICY: ValidatingAdmissionPolicy = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: DELETION_POLICY_NAME },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: {
      resourceRules: [
        {
          operations: ['DELETE'],
          apiGroups: ['kubevirt.io'],
          apiVersions: ['v1', 'v1alpha3'],
          resources: ['virtualmachines'],
        },
      ],
    },
    variables: [{ name: 'label', expression: `string('${DELETE_PROTECTION_LABEL}')` }],
    validations: [
      {
        expression:
          '(!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || ' +
          "!oldObject.metadata.labels[variables.label].matches('^(true|True)$'))",
        messageExpression: MESSAGE,
      },
    ],
  },
};

export const DELETION_POLICY_BINDING: ValidatingAdmissionPolicyBinding = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: DELETION_POLICY_NAME },
  spec: { policyName: DELETION_POLICY_NAME, validationActions: ['Deny'] },
};
