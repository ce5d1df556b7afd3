/** The instance of a launcher, as the API shows it now. */
import { ApiError } from '@coracle/apimachinery/meta/status';
import { isNotFound, orExpected } from '@coracle/client/api-failure';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import type { LauncherState } from './launcher-state.ts';

/**
 * True for the Node authorizer's no to an instance that exists and has nothing to do with this node. The instance's node,
 * the ends of its migration and the Pods bound here are all that makes a relationship: where none does, the guest is
 * another's by now, not ours to report on, and none that was sent away comes back.
 */
export const isOfOthers = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 403 && error.message.includes('no relationship found between node');

/** The instance of the guest's name; undefined where there is none, or none that is this node's. Throws what the API says. */
export async function namedInstance({
  record,
  vmi,
  environment,
}: LauncherState): Promise<VirtualMachineInstance | undefined> {
  const { namespace = '', name } = record ?? vmi?.metadata ?? {};
  if (!name) return undefined;
  const { client, signal } = environment;
  return orExpected(client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, { signal }), isNotFound, isOfOthers);
}

/** The same, where it is the very one that the launcher is of. */
export async function ownInstance(launcher: LauncherState): Promise<VirtualMachineInstance | undefined> {
  const found = await namedInstance(launcher);
  return found?.metadata.uid === launcher.vmiUid ? found : undefined;
}
