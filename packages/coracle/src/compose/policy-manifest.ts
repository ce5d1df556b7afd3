/** An object as `kubectl apply` takes it. */
export type Manifest = { readonly apiVersion: string; readonly kind: string } & Record<string, unknown>;

/** What a policy of ours refuses on an external cluster, where none of our admission runs. */
export interface Refusals {
  /** The writes that it looks at. */
  readonly of: Record<'apiGroups' | 'apiVersions' | 'operations' | 'resources', readonly string[]>;
  /** Objects that its expressions know as `params`, and which of them. */
  readonly params?: { readonly kind: object; readonly ref: object };
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  /** What must be true, or else the write is Forbidden with the message. */
  readonly validations: readonly object[];
}

/** A ValidatingAdmissionPolicy that is closed when it fails, and its binding, both of that name. */
export const policyManifests = (
  name: string,
  labels: Readonly<Record<string, string>>,
  { of, params, variables, validations }: Refusals,
): Manifest[] => [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name, labels },
    spec: {
      failurePolicy: 'Fail',
      ...(params && { paramKind: params.kind }),
      // Its scope as the server completes it, so that to apply it again changes nothing.
      matchConstraints: { resourceRules: [{ ...of, scope: '*' }] },
      ...(variables && { variables }),
      validations: validations.map((validation) => ({ ...validation, reason: 'Forbidden' })),
    },
  },
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name, labels },
    spec: { policyName: name, ...(params && { paramRef: params.ref }), validationActions: ['Deny'] },
  },
];
