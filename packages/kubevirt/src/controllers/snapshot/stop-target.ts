/** Step of a restore with the policy StopTarget: virt-api is asked to stop the machine, as a user would. */

import { isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { effectiveRunStrategy } from '../../rules/run-strategy/run-strategy.ts';

/** Asks once: a machine that was asked already, or whose instance is on its way out, is left alone. */
export async function stopTarget(
  { metadata, spec, status }: ReadonlyVm,
  vmi: ReadonlyVmi | undefined,
  client: Client,
): Promise<void> {
  if (vmi === undefined || isDeleting(vmi)) return;
  if (effectiveRunStrategy(spec) === 'Halted') return;
  if (status?.stateChangeRequests?.some(({ action, uid }) => action === 'Stop' && uid === vmi.metadata.uid)) return;
  await client.raw(
    'PUT',
    `/apis/subresources.kubevirt.io/v1/namespaces/${metadata.namespace}/virtualmachines/${metadata.name}/stop`,
    { body: {} },
  );
}
