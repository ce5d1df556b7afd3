/** The status of the KubeVirt object (virt-operator's UpdateConditions and SetTargetDeploymentConfig): pure. */

import { hexOf } from '@coracle/apimachinery/meta/hex';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { KubeVirtStatus, ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';
import { sha1 } from '../../rules/identity/sha1.ts';

const encoder = new TextEncoder();

/**
 * What identifies a deployment: upstream hashes its configuration; here that is the namespace of the object and the
 * version of the one program that does all the work. Forty hex digits.
 */
export function deploymentId(namespace: string, version: string): string {
  return hexOf(sha1(encoder.encode(JSON.stringify({ namespace, version }))));
}

/** What runs: the version of the program, and the definitions of KubeVirt's kinds that it keeps. */
export interface Deployment {
  readonly version: string;
  readonly definitions: readonly { readonly metadata: { readonly name?: string; readonly generation?: number } }[];
}

/** The status as it is when this deployment serves this generation of the object; other fields stay as they are. */
export function kubeVirtStatusOf(
  kubevirt: ReadonlyKubeVirt,
  { version, definitions }: Deployment,
): DeepReadonly<KubeVirtStatus> {
  const { namespace = '', generation } = kubevirt.metadata;
  const id = deploymentId(namespace, version);
  return {
    ...kubevirt.status,
    phase: 'Deployed',
    operatorVersion: version,
    targetKubeVirtVersion: version,
    observedKubeVirtVersion: version,
    targetDeploymentID: id,
    observedDeploymentID: id,
    generations: definitions
      .map(({ metadata: { name = '', generation = 1 } }) => ({
        group: 'apiextensions.k8s.io',
        resource: 'customresourcedefinitions',
        name,
        lastGeneration: generation,
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    ...(generation !== undefined && { observedGeneration: generation }),
  };
}
