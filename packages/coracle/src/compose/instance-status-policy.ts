/**
 * What keeps the status of instances to KubeVirt's accounts on an external cluster, where none of our admission
 * runs: a ValidatingAdmissionPolicy. An instance has no status subresource, so that rights alone cannot tell a report
 * from a change; upstream's webhook would leave such a change out, a policy can only refuse it.
 */

import { AGENT_ACCOUNT, COMPONENT_NAMESPACE } from './components.ts';
import { type Manifest, policyManifests } from './policy-manifest.ts';

const NAME = 'coracle-instance-status';
const ACCOUNTS = `system:serviceaccount:${COMPONENT_NAMESPACE}:`;

/** Equal, or absent in both. */
const kept = (field: string): string =>
  `has(object.${field}) == has(oldObject.${field}) && (!has(object.${field}) || object.${field} == oldObject.${field})`;
const both = (fields: readonly string[]): string => fields.map((field) => `(${kept(field)})`).join(' && ');

/** The policy and its binding. */
export const instanceStatusPolicy = (labels: Readonly<Record<string, string>>): Manifest[] =>
  policyManifests(NAME, labels, {
    of: {
      apiGroups: ['kubevirt.io'],
      apiVersions: ['*'],
      operations: ['UPDATE'],
      resources: ['virtualmachineinstances'],
    },
    validations: [
      {
        expression: `request.userInfo.username.startsWith('${ACCOUNTS}') || (${kept('status')})`,
        message: 'the status of an instance is written by the accounts of KubeVirt only',
      },
      {
        expression: `request.userInfo.username != '${ACCOUNTS}${AGENT_ACCOUNT}' || (${both([
          'spec',
          'metadata.labels',
          'metadata.annotations',
          'metadata.finalizers',
          'metadata.ownerReferences',
        ])})`,
        message: 'a node agent can only update the status of instances, and nothing else of them',
      },
    ],
  });
