/** Steps of a content: the guest's file systems are held still through its agent, as virt-api's subresources do it. */

import type { Client } from '@coracle/client/client';
import type { ReadonlySnapshot } from '../../kinds/kubevirt.ts';
import { failureDeadlineOf } from '../../rules/snapshot/deadline.ts';
import type { SourceState } from './source-state.ts';

/** Whether there is anybody who can hold the file systems still: an agent, in a guest that runs. */
const canFreeze = ({ online, paused, guestAgent }: SourceState): boolean => online && guestAgent && !paused;

const pathOf = ({ vm }: SourceState, action: string): string =>
  `/apis/subresources.kubevirt.io/v1/namespaces/${vm.metadata.namespace}/virtualmachineinstances/${vm.metadata.name}/${action}`;

/**
 * Freezes where that can be done; a paused guest, and one without an agent, is saved as it is. Should nobody thaw it, the
 * node does when the time of the snapshot is over.
 * @throws Error when the source is not locked, ApiError when the guest does not do it
 */
export async function freezeSource(source: SourceState, snapshot: ReadonlySnapshot, client: Client): Promise<void> {
  if (!source.locked) throw new Error('attempting to freeze unlocked VM');
  if (source.frozen || !canFreeze(source)) return;
  await client.raw('PUT', pathOf(source, 'freeze'), { body: { unfreezeTimeout: failureDeadlineOf(snapshot) } });
}

/**
 * Thaws where that can be done. May be repeated.
 * @throws ApiError when the guest does not do it
 */
export async function thawSource(source: SourceState | undefined, client: Client): Promise<void> {
  if (source !== undefined && canFreeze(source)) await client.raw('PUT', pathOf(source, 'unfreeze'));
}
