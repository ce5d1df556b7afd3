/** The images of a guest that moves are those it runs from: the target's Pod names them by digest. */

import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '@coracle/kubevirt/kinds/kinds';
import { isLocal, parseReference } from '@coracle/runtime/oci/reference';
import { imageContainer } from '../launcher/pod-status.ts';

/**
 * The instance with the images of its Pod's containers instead of its own, where those name a digest. The local store
 * knows no digests; what it has is compared with the source's before the guest moves.
 */
export function pinnedInstance(vmi: ReadonlyVmi, pod: ReadonlyPod): ReadonlyVmi {
  const pinned = (volume: string, image: string): string => {
    const name = imageContainer(volume);
    const found = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find(
      (container) => container.name === name || container.name === `${name}-init`,
    )?.image;
    return found?.includes('@sha256:') && !isLocalImage(found) ? found : image;
  };
  const { domain, volumes } = vmi.spec;
  const boot = domain.firmware?.kernelBoot?.container;
  const pinnedVolumes = volumes?.map((volume) => {
    const { name, containerDisk } = volume;
    return containerDisk
      ? { ...volume, containerDisk: { ...containerDisk, image: pinned(name, containerDisk.image) } }
      : volume;
  });
  return {
    ...vmi,
    spec: {
      ...vmi.spec,
      ...(pinnedVolumes && { volumes: pinnedVolumes }),
      domain: {
        ...domain,
        ...(boot && {
          firmware: {
            ...domain.firmware,
            kernelBoot: { ...domain.firmware?.kernelBoot, container: { ...boot, image: pinned('', boot.image) } },
          },
        }),
        // The type the guest was started with, not what its alias means here today.
        ...(vmi.status?.machine?.type && { machine: { ...domain.machine, type: vmi.status.machine.type } }),
      },
    },
  };
}

const isLocalImage = (image: string): boolean => {
  try {
    return isLocal(parseReference(image));
  } catch {
    return false;
  }
};
