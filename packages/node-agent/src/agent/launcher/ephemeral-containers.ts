/**
 * Ephemeral containers (`kubectl debug`) of a launcher Pod. No node here runs containers, so they are ended at once, as a
 * kubelet ends one whose process cannot be started: whoever waits for it learns why, and `kubectl debug` comes back.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type { ContainerStatus, ReadonlyPod } from '@coracle/apimachinery/types/types';

/** What its status, its event and its log say. */
export const NO_EPHEMERAL_CONTAINERS =
  'this node runs virtual machines and no containers: a launcher Pod cannot be debugged with one (the guest has a console: virtctl console)';
/** The exit code of a process that could not be started. */
const NOT_STARTED = 128;

const ofPod = (pod: ReadonlyPod) => pod.spec.ephemeralContainers ?? [];
const statusesOf = (pod: ReadonlyPod): readonly DeepReadonly<ContainerStatus>[] =>
  pod.status?.ephemeralContainerStatuses ?? [];

/** True when the Pod names such a container. */
export const isEphemeral = (pod: ReadonlyPod | undefined, container: string): boolean =>
  pod !== undefined && ofPod(pod).some(({ name }) => name === container);

/** Names of those that have not been reported yet. */
export const freshEphemeral = (pod: ReadonlyPod): string[] =>
  ofPod(pod)
    .map(({ name }) => name)
    .filter((name) => !statusesOf(pod).some((status) => status.name === name));

/** Their statuses, for a merge into the Pod's; nothing where there are none. A status that was written stays as it is. */
export function ephemeralStatuses(pod: ReadonlyPod, now: string): { ephemeralContainerStatuses?: ContainerStatus[] } {
  const containers = ofPod(pod);
  if (containers.length === 0) return {};
  const before = statusesOf(pod);
  return {
    ephemeralContainerStatuses: containers.map(
      ({ name, image = '' }): ContainerStatus =>
        cloneJson<ContainerStatus | undefined>(before.find((status) => status.name === name)) ?? {
          name,
          image,
          imageID: '',
          restartCount: 0,
          ready: false,
          state: {
            terminated: {
              exitCode: NOT_STARTED,
              reason: 'StartError',
              message: NO_EPHEMERAL_CONTAINERS,
              startedAt: now,
              finishedAt: now,
            },
          },
          lastState: {},
        },
    ),
  };
}
