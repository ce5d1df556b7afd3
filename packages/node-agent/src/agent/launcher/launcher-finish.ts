/** The last stage of a launcher: the result is recorded, then reported, then the files go. */
import { join } from 'node:path';
import { removeVmDirectory } from '../../disk/vm-directory.ts';
import { releaseAddress } from '../../network/address-pool.ts';
import { releaseVolumes } from '../guest/guest-volumes.ts';
import { keepLogs } from '../requests/pod-logs.ts';
import { deletePod, writeVmiStatus } from './api-writes.ts';
import type { LauncherState } from './launcher-state.ts';
import { ownInstance } from './own-instance.ts';
import type { LauncherView } from './pod-status.ts';
import { endProcess } from './stop-vm.ts';
import { ownUid } from './vm-namespace.ts';
import { readRecord, writeRecord } from './vm-record.ts';
import type { VmResult } from './vm-result.ts';
import { finalStatus } from './vmi-status.ts';

/** On a launcher Pod, by its instance: its container outlives a guest that failed. */
const KEEP = 'kubevirt.io/keep-launcher-alive-after-failure';

const isKept = ({ pod, record }: LauncherState, { phase }: VmResult): boolean =>
  phase === 'Failed' && record !== undefined && pod?.metadata.annotations?.[KEEP] === 'true';

/** Reports the end, cleans up, and lives until the Pod object is gone. */
export async function finishGuest(launcher: LauncherState, result: VmResult): Promise<void> {
  const { environment } = launcher;
  const finishedAt = launcher.record?.finishedAt ?? environment.clock.now();
  if (launcher.record) {
    await launcher.untilDone('guest not ended', () => endProcess(environment, launcher.record!, launcher.guest));
    launcher.guest?.close();
    const record = { ...launcher.record, result, finishedAt };
    launcher.record = record;
    await writeRecord(environment.vmsDirectory, record).catch((error: Error) =>
      launcher.log.warn('result not recorded', { error: error.message }),
    );
  }
  // Before anybody hears of the end: the next guest may want them at once.
  releaseVolumes(launcher);
  launcher.log.info('guest ended', { phase: result.phase, reason: result.reason });
  if (launcher.record && launcher.ownsInstance)
    launcher.event(result.phase === 'Failed' ? 'Warning' : 'Normal', 'Stopped', result.message);
  await launcher.untilDone('result not reported to the vmi', async () => {
    // A guest that moved on, or never came, is another node's to report on.
    const vmi = launcher.ownsInstance ? await ownInstance(launcher) : undefined;
    const guestless = launcher.record ? undefined : launcher.pod?.metadata.uid;
    const at = { node: environment.nodeName, now: environment.clock.now(), guestless };
    if (vmi) await writeVmiStatus(environment, vmi, (newest) => finalStatus(newest, result, at));
  });
  const view: LauncherView = {
    state: 'ended',
    result,
    startedAt: launcher.record?.startedAt,
    finishedAt,
    imageIds: launcher.record?.imageIds ?? {},
  };
  const reportPod = (): Promise<void> =>
    launcher.untilDone('result not reported to the pod', async () => {
      if (!(await launcher.report(view))) throw new Error('the write failed');
    });
  if (isKept(launcher, result)) {
    // The instance says it; the Pod runs on with the files of the guest, until somebody who has looked deletes it.
    launcher.endReported = true;
    const kept = `The files of the guest are kept until this Pod is deleted (${KEEP})`;
    launcher.podEvent('Normal', 'KeptAfterFailure', kept);
    while (!launcher.podGone && launcher.pod?.metadata.deletionTimestamp === undefined)
      await Promise.race([launcher.nextChange(), launcher.untilAborted()]);
  }
  await reportPod();
  launcher.endReported = true;
  await cleanUp(launcher, result);
  // The object is ours to remove once somebody has asked for it.
  while (!launcher.podGone) {
    const change = launcher.nextChange();
    const { pod } = launcher;
    if (!pod) return;
    if (pod.metadata.deletionTimestamp !== undefined)
      return launcher.untilDone('pod not deleted', () => deletePod(environment, pod));
    // An agent that has just started may see the Pod only now: nobody has reported to it yet.
    await reportPod();
    await Promise.race([change, launcher.untilAborted()]);
  }
}

async function cleanUp(launcher: LauncherState, result: VmResult): Promise<void> {
  const { environment } = launcher;
  const podUid = launcher.record?.podUid ?? launcher.pod?.metadata.uid ?? '';
  const vmiUid = await ownUid(launcher);
  await launcher.untilDone('end not recorded', () => environment.tombstones.add(podUid, result));
  const record = launcher.record;
  if (!record) {
    // The directory may be that of another launcher.
    if (vmiUid === '' || !launcher.holdFiles()) return;
    // Or it holds evidence of a damaged record.
    if ((await readRecord(environment.vmsDirectory, vmiUid)) === 'missing')
      await removeVmDirectory(environment.vmsDirectory, vmiUid).catch(() => {});
    launcher.holdsFiles = false;
    return;
  }
  launcher.keptLogs = await keepLogs(join(environment.vmsDirectory, vmiUid));
  if (!record.migration?.sharesAddress)
    await releaseAddress(environment.addressesDirectory, record.address, vmiUid).catch(() => {});
  await removeVmDirectory(environment.vmsDirectory, vmiUid).catch((error: Error) =>
    launcher.log.warn('files of the guest not removed', { error: error.message }),
  );
  launcher.holdsFiles = false;
}
