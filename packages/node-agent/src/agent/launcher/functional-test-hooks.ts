/** Whether something of a launcher is to fail or wait because KubeVirt's functional tests say so. */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { KUBEVIRTS } from '@coracle/kubevirt/kinds/kinds';
import { SIMULATE_CRASH, TARGET_IMAGE_HOOK } from '@coracle/kubevirt/rules/launcher/functional-test-hooks';
import { clusterConfigOf } from '@coracle/kubevirt/rules/machine-defaults/cluster-config';
import type { AgentEnvironment } from '../environment.ts';
import type { LauncherState } from './launcher-state.ts';

/** True when the instance carries the annotation and the cluster serves it. Asks the API in that case only. */
export const hasHook = async ({ environment, vmi }: LauncherState, annotation: string): Promise<boolean> =>
  vmi?.metadata.annotations?.[annotation] !== undefined && (await servesHooks(environment));

async function servesHooks({ client, signal }: AgentEnvironment): Promise<boolean> {
  const { items } = await client.list(KUBEVIRTS, { signal });
  return clusterConfigOf(items[0]).isEnabled('FunctionalTestHooks');
}

/** True for a launcher whose command says that it shall fail. */
export const simulatesCrash = (pod: ReadonlyPod | undefined): boolean =>
  pod?.spec.containers.some(({ name, command }) => name === 'compute' && command?.includes(SIMULATE_CRASH)) ?? false;

/**
 * The image that a target Pod shall have its launcher from, where that is not ours: no node has another, and none is
 * pulled.
 */
export async function foreignImage({ environment, pod }: LauncherState): Promise<string | undefined> {
  const image = pod?.metadata.annotations?.[TARGET_IMAGE_HOOK];
  return image !== undefined && image !== '' && (await servesHooks(environment)) ? image : undefined;
}
