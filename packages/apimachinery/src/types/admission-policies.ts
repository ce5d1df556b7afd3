/** ValidatingAdmissionPolicies and their bindings, as controllers write and read them (admissionregistration.k8s.io/v1). */
import { clusterType } from '../meta/gvk.ts';
import type { KubeObject } from '../meta/object.ts';

export interface ValidatingAdmissionPolicy extends KubeObject {
  spec: {
    failurePolicy?: 'Fail' | 'Ignore';
    paramKind?: { apiVersion: string; kind: string };
    matchConstraints?: {
      resourceRules?: {
        operations?: string[];
        apiGroups?: string[];
        apiVersions?: string[];
        resources?: string[];
        [field: string]: unknown;
      }[];
      [field: string]: unknown;
    };
    variables?: { name: string; expression: string }[];
    validations?: { expression: string; message?: string; messageExpression?: string; reason?: string }[];
    [field: string]: unknown;
  };
  status?: {
    observedGeneration?: number;
    /** Absent until the expressions were looked at. */
    typeChecking?: { expressionWarnings?: { fieldRef: string; warning: string }[] };
  };
}

export interface ValidatingAdmissionPolicyBinding extends KubeObject {
  spec: { policyName?: string; validationActions?: string[]; [field: string]: unknown };
}

const group = 'admissionregistration.k8s.io';

export const VALIDATING_ADMISSION_POLICIES = clusterType<ValidatingAdmissionPolicy>(
  `${group}/v1`,
  'validatingadmissionpolicies',
  'ValidatingAdmissionPolicy',
);

export const VALIDATING_ADMISSION_POLICY_BINDINGS = clusterType<ValidatingAdmissionPolicyBinding>(
  `${group}/v1`,
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);
