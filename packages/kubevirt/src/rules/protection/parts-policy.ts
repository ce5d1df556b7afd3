/**
 * The part of the decisions that a ValidatingAdmissionPolicy can make, for clusters where none of our admission runs: its
 * parameters are the protected machines of the namespace, so that each is asked whether it refers to the object. It sees
 * the API server's copy of them, which may be a moment behind, and neither firmware state nor what follows from claims,
 * restores and namespaces: the net under the webhook, not in its place.
 */
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '@coracle/apimachinery/types/types';
import { DELETE_PROTECTION_LABEL } from './delete-protection.ts';
import { type ResourceName, referencePlaces } from './references.ts';

/** Name of the policy and of its binding. */
export const PARTS_POLICY_NAME = 'coracle-protected-parts';

/** The kinds that it decides about, with their versions. */
export const PARTS: readonly (ResourceName & { readonly version: string })[] = [
  { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  { group: '', version: 'v1', resource: 'secrets' },
  { group: '', version: 'v1', resource: 'configmaps' },
  { group: '', version: 'v1', resource: 'serviceaccounts' },
  { group: 'apps', version: 'v1', resource: 'controllerrevisions' },
  { group: 'cdi.kubevirt.io', version: 'v1beta1', resource: 'datavolumes' },
];

const optional = (from: string, path: string): string =>
  path
    .split('.')
    .map((step) => `.?${step}`)
    .join('')
    .replace(/^/, from);
const orNothing = (from: string, path: string): string => `${optional(from, path)}.orValue('')`;

/** True where the machine in `params` refers to the object: the places of `referencesOf`. */
function refersTo(kind: ResourceName): string {
  const { fields, lists } = referencePlaces(kind);
  const name = 'oldObject.metadata.name';
  const terms = lists.map(
    ([list, paths]) =>
      `${optional('params', list)}.orValue([]).exists(e, ${name} in [${paths.map((path) => orNothing('e', path)).join(', ')}])`,
  );
  if (fields.length > 0) terms.unshift(`${name} in [${fields.map((path) => orNothing('params', path)).join(', ')}]`);
  return terms.join(' || ');
}

const refers = PARTS.map(
  (kind) =>
    `request.resource.group == '${kind.group}' && request.resource.resource == '${kind.resource}' ? (${refersTo(kind)}) : `,
).join('');

/** Policy and binding. `components`: how the user names of KubeVirt's components begin, whose restores may replace parts. */
export function partsPolicy(components: string): [ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding] {
  return [
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: PARTS_POLICY_NAME },
      spec: {
        failurePolicy: 'Fail',
        paramKind: { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' },
        matchConstraints: {
          resourceRules: PARTS.map(({ group, version, resource }) => ({
            apiGroups: [group],
            apiVersions: [version],
            operations: ['DELETE'],
            resources: [resource],
            // As the server completes it, so that to apply it again changes nothing.
            scope: '*',
          })),
        },
        matchConditions: [{ name: 'not-going-already', expression: '!has(oldObject.metadata.deletionTimestamp)' }],
        variables: [{ name: 'refers', expression: `${refers}false` }],
        validations: [
          {
            expression:
              `params == null || has(params.metadata.deletionTimestamp) || ` +
              `(params.?status.?restoreInProgress.orValue('') != '' && request.userInfo.username.startsWith('${components}')) || ` +
              '!variables.refers',
            messageExpression:
              `'protected VirtualMachine ' + params.metadata.namespace + '/' + params.metadata.name + ' refers to it; ` +
              `disable/remove label \\'${DELETE_PROTECTION_LABEL}\\' from that VirtualMachine before deleting it'`,
            reason: 'Forbidden',
          },
        ],
      },
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: PARTS_POLICY_NAME },
      spec: {
        policyName: PARTS_POLICY_NAME,
        paramRef: {
          selector: {
            matchExpressions: [{ key: DELETE_PROTECTION_LABEL, operator: 'In', values: ['true', 'True'] }],
          },
          parameterNotFoundAction: 'Allow',
        },
        validationActions: ['Deny'],
      },
    },
  ];
}
