/** The guest comes from another node: everything is made ready here, and `migration/` takes it over. */
import { pinnedInstance } from '../migration/pinned-instance.ts';
import { receiveGuest } from '../migration/receive-guest.ts';
import { foreignImage } from './functional-test-hooks.ts';
import { startRequest } from './launcher-cold-start.ts';
import { type LauncherState, MAX_RETRY_MS } from './launcher-state.ts';
import { ended, type StageOutcomes } from './launcher-step.ts';
import { afterFailure, DELETED_BEFORE_START } from './start-failure.ts';
import { prepareVm } from './start-vm.ts';

/** Rejects only with the end of the agent. */
export async function receive(launcher: LauncherState, attempt: number): Promise<StageOutcomes['receive']> {
  const request = startRequest(launcher);
  if (!request) return ended(DELETED_BEFORE_START);
  try {
    const foreign = await foreignImage(launcher);
    if (foreign !== undefined) {
      await cannotPull(launcher, foreign);
      return ended(DELETED_BEFORE_START);
    }
    const vmi = pinnedInstance(request.vmi, request.pod);
    const result = await receiveGuest(launcher, await prepareVm(launcher.environment, { ...request, vmi }));
    return result ? ended(result) : { type: 'runs' };
  } catch (error) {
    return afterFailure(launcher, error, attempt);
  }
}

/** What a kubelet says of an image that it cannot have, until the Pod goes. */
async function cannotPull(launcher: LauncherState, image: string): Promise<void> {
  const message = `image ${JSON.stringify(image)} is not on this node, and no launcher is pulled`;
  for (let attempt = 0; !launcher.isDeleting(); attempt++) {
    const reason = attempt === 0 ? 'ErrImagePull' : 'ImagePullBackOff';
    await launcher.report({ state: 'creating', reason, message, container: 'compute' });
    await launcher.pause(MAX_RETRY_MS);
  }
}
