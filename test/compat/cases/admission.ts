import type { Group } from '../steps.ts';

/** A policy over the config maps of the group's own namespace, with the size limit of a parameter. */
const policy = (name: string, actions: string) => `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${name}-{ns}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}
    excludeResourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"], resourceNames: [limit, kube-root-ca.crt]}
  matchConditions:
  - {name: has-data, expression: "has(object.data)"}
  variables:
  - {name: most, expression: "int(params.data.most)"}
  validations:
  - expression: "size(object.data) <= variables.most"
    messageExpression: "'at most ' + string(variables.most) + ' keys'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${name}-{ns}
spec:
  policyName: ${name}-{ns}
  validationActions: [${actions}]
  paramRef: {name: limit, parameterNotFoundAction: Deny}
`;

const applied = (name: string): string =>
  ['validatingadmissionpolicy', 'validatingadmissionpolicybinding']
    .map((kind) => `${kind}.admissionregistration.k8s.io/${name}-{ns} created`)
    .join('\n');

export const ADMISSION: readonly Group[] = [
  {
    name: 'policies',
    steps: [
      { run: 'apply -f -', input: policy('deny', 'Deny'), out: applied('deny') },
      {
        run: 'create cm one --from-literal=a=b',
        err: `error: failed to create configmap: configmaps "one" is forbidden: ValidatingAdmissionPolicy 'deny-{ns}' with binding 'deny-{ns}' denied request: failed to configure binding: no params found for policy binding with \`Deny\` parameterNotFoundAction`,
        code: 1,
      },
      { run: 'create cm limit --from-literal=most=1', out: 'configmap/limit created' },
      { run: 'create cm one --from-literal=a=b', out: 'configmap/one created' },
      {
        run: 'create cm two --from-literal=a=b --from-literal=c=d',
        err: `error: failed to create configmap: configmaps "two" is forbidden: ValidatingAdmissionPolicy 'deny-{ns}' with binding 'deny-{ns}' denied request: at most 1 keys`,
        code: 1,
      },
      {
        run: `patch cm one -p '{"data":{"c":"d"}}'`,
        err: `The configmaps "one" is invalid: : ValidatingAdmissionPolicy 'deny-{ns}' with binding 'deny-{ns}' denied request: at most 1 keys`,
        code: 1,
      },
      {
        run: 'delete validatingadmissionpolicybinding deny-{ns}',
        out: 'validatingadmissionpolicybinding.admissionregistration.k8s.io "deny-{ns}" deleted',
        err: 'Warning: deleting cluster-scoped resources, not scoped to the provided namespace',
      },
      { run: 'apply -f -', input: policy('warn', 'Warn'), out: applied('warn') },
      {
        run: 'create cm two --from-literal=a=b --from-literal=c=d',
        out: 'configmap/two created',
        err: `Warning: Validation failed for ValidatingAdmissionPolicy 'warn-{ns}' with binding 'warn-{ns}': at most 1 keys`,
      },
      {
        run: 'delete validatingadmissionpolicybinding warn-{ns}',
        out: 'validatingadmissionpolicybinding.admissionregistration.k8s.io "warn-{ns}" deleted',
        err: 'Warning: deleting cluster-scoped resources, not scoped to the provided namespace',
      },
    ],
  },
];
