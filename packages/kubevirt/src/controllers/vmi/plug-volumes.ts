/** The Pods that hold the volumes which are plugged into a guest, and what its instance's status says of them. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { keyOf } from '@coracle/apimachinery/meta/object';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import { isAlreadyExists, orGone } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { EventRecorder } from '@coracle/client/events/recorder';
import type { ReadonlyKubeVirt, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { attachedVolumes, attachmentPod } from '../../rules/launcher/attachment-pod.ts';
import { type PluggedVolumesInput, pluggedVolumes } from '../../rules/live-update/plugged-volumes.ts';

/** Makes and deletes the Pods, and edits the status of `vmi`. Throws what the API says. */
export async function plugVolumes(
  vmi: VirtualMachineInstance,
  input: Omit<PluggedVolumesInput, 'vmi' | 'launcher'> & {
    readonly launcher: PluggedVolumesInput['launcher'] | undefined;
  },
  {
    client,
    events,
    kubeVirt,
  }: {
    readonly client: Client;
    readonly events: EventRecorder;
    readonly kubeVirt: ReadonlyKubeVirt | undefined;
  },
): Promise<void> {
  const { launcher, launchers, attachments } = input;
  if (hasEnded(vmi)) {
    // Its claims are nobody's any more, however long the instance stays.
    const ours = attachments.filter((pod) => attachedVolumes(pod, vmi, launchers) !== undefined);
    for (const pod of ours) if (!isDeleting(pod)) await remove(client, pod);
    return;
  }
  if (!launcher || !vmi.status || isDeleting(vmi)) return;
  const { volumeStatus, attach, detach } = pluggedVolumes({ ...input, vmi, launcher });
  for (const { name, phase, reason, message } of volumeStatus) {
    const before = vmi.status.volumeStatus?.find((one) => one.name === name);
    const isMissing = reason === 'FailedPvcNotFound';
    const isTold = phase === 'AttachedToNode' || reason === 'SuccessfulDelete' || isMissing;
    if (isTold && (before?.phase !== phase || before?.reason !== reason))
      events.event(vmi, isMissing ? 'Warning' : 'Normal', reason ?? '', message ?? '');
  }
  if (!deepEqual(vmi.status.volumeStatus ?? [], volumeStatus)) vmi.status.volumeStatus = [...volumeStatus];
  for (const volumes of attach) {
    const pod = attachmentPod(vmi, launcher, volumes, kubeVirt);
    try {
      await client.create(PODS, pod);
      events.event(vmi, 'Normal', 'SuccessfulCreate', `Created attachment pod ${pod.metadata.name}`);
    } catch (error) {
      // Also one of the name that is going: it is seen to go, and made anew then.
      if (isAlreadyExists(error)) continue;
      const text = error instanceof Error ? error.message : String(error);
      events.event(vmi, 'Warning', 'FailedCreate', `Error creating attachment pod: ${text}`);
      throw error;
    }
  }
  for (const pod of detach) await remove(client, pod);
}

async function remove(client: Client, pod: ReadonlyPod): Promise<void> {
  await orGone(client.delete(PODS, keyOf(pod as Pod), { preconditions: { uid: pod.metadata.uid ?? '' } }));
}
