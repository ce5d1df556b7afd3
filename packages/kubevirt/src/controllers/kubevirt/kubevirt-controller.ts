/** Keeps the status of the KubeVirt object true: the generation in effect, and the version that serves it. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import { policyRules } from '@coracle/apimachinery/types/policy-rules';
import { CUSTOM_RESOURCE_DEFINITIONS } from '@coracle/apimachinery/types/resource-types';
import { commit } from '@coracle/client/commit/commit';
import { createController, ownKeys } from '@coracle/client/controller/controller';
import type { ControllerEnvironment, Runnable } from '@coracle/client/controller/environment';
import { KUBEVIRTS, type KubeVirt, type ReadonlyKubeVirt } from '../../kinds/kubevirt.ts';
import { kubeVirtStatusOf } from './kubevirt-status.ts';

/** The name of a definition is that of its resource and of its group. */
const GROUP_SUFFIX = '.kubevirt.io';

/** Rights the controller needs, and no others. */
export const kubeVirtControllerRules = policyRules(
  'get list watch : kubevirt.io : kubevirts',
  'patch : kubevirt.io : kubevirts/status',
  'list : apiextensions.k8s.io : customresourcedefinitions',
);

export interface KubeVirtControllerOptions extends ControllerEnvironment {
  /** The version that runs, as the status gives it. */
  readonly version: string;
}

/** Makes the controller; nothing happens before `start`. */
export function createKubeVirtController({
  client,
  informers,
  clock,
  log,
  version,
}: KubeVirtControllerOptions): Runnable {
  const kubevirts = informers.of(KUBEVIRTS);
  return createController({
    name: 'kubevirt',
    client,
    clock,
    log,
    sources: [ownKeys(kubevirts)],
    reconcile: async (key, { signal }) => {
      const kubevirt: ReadonlyKubeVirt | undefined = kubevirts.get(key);
      if (!kubevirt || isDeleting(kubevirt)) return;
      // Listed and not watched: the program itself keeps them. Their schemas are megabytes that nobody looks at here.
      const { items } = await client.list(CUSTOM_RESOURCE_DEFINITIONS, { metadataOnly: true, signal });
      const definitions = items.filter(({ metadata }) => metadata.name?.endsWith(GROUP_SUFFIX));
      const after = { ...kubevirt, status: kubeVirtStatusOf(kubevirt, { version, definitions }) } as KubeVirt;
      await commit(client, KUBEVIRTS, { before: kubevirt, after, signal });
    },
  });
}
