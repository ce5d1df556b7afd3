/**
 * What keeps launcher Pods to KubeVirt's controllers on an external cluster, where none of our admission runs: a
 * ValidatingAdmissionPolicy with the rule of `launcher-pods.ts`. Without it whoever may make Pods in the namespace of an
 * instance could have its guest started with requests, and on a node, of his choice.
 */
import {
  CREATED_BY_LABEL,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  MIGRATION_JOB_LABEL,
} from '@coracle/kubevirt/rules/launcher/launcher-labels';
import { COMPONENT_NAMESPACE } from './components.ts';
import { type Manifest, policyManifests } from './policy-manifest.ts';

const NAME = 'coracle-launcher-pods';
const ACCOUNTS = `system:serviceaccount:${COMPONENT_NAMESPACE}:`;

/** Labels of a Pod, or none. */
const labelsOf = (pod: string): string => `${pod}.metadata.?labels.orValue({})`;
const label = (pod: string, key: string): string => `${labelsOf(pod)}[?'${key}'].orValue('')`;

/** What a Pod says it is the launcher of: uid and name of the instance, and the migration; empty when nothing. */
const claimOf = (pod: string): string =>
  `${label(pod, LAUNCHER_LABEL)} != '${LAUNCHER_VALUE}' ? [] : ` +
  `${pod}.metadata.?ownerReferences.orValue([])` +
  `.filter(o, o.?controller.orValue(false) && o.kind == 'VirtualMachineInstance' && o.apiVersion.startsWith('kubevirt.io/'))` +
  `.map(o, o.uid + '/' + o.name + '/' + ${label(pod, CREATED_BY_LABEL)} + '/' + ${label(pod, MIGRATION_JOB_LABEL)})`;

/** The policy and its binding. */
export const launcherPodsPolicy = (labels: Readonly<Record<string, string>>): Manifest[] =>
  policyManifests(NAME, labels, {
    of: {
      apiGroups: [''],
      apiVersions: ['v1'],
      operations: ['CREATE', 'UPDATE'],
      resources: ['pods', 'pods/resize'],
    },
    variables: [
      { name: 'claim', expression: claimOf('object') },
      { name: 'oldClaim', expression: `oldObject == null ? [] : (${claimOf('oldObject')})` },
    ],
    validations: [
      {
        // Losing what made it one, or keeping it, is no claim.
        expression:
          `variables.claim.size() == 0 || (variables.claim == variables.oldClaim && ` +
          `!(has(request.subResource) && request.subResource == 'resize')) || ` +
          `request.userInfo.username.startsWith('${ACCOUNTS}') || ` +
          `request.userInfo.groups.exists(g, g == 'system:masters')`,
        message: "only KubeVirt's controllers make launcher pods, and resize them",
      },
    ],
  });
