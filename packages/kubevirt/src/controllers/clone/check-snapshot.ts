/** Waits for the snapshot, and looks whether it holds all that the target needs. */
import { uncloneableContent } from '../../rules/clone/cloneable.ts';
import { contentNameOf } from '../../rules/snapshot/snapshot-names.ts';
import {
  type CloneStep,
  fail,
  goOnLater,
  hasSnapshotSource,
  isBeforeRestore,
  snapshotNameOf,
  wait,
} from './clone-pass.ts';

export const snapshotLost = (name: string): string => `snapshot ${name} does not exist anymore`;

export const checkSnapshot: CloneStep = async (pass) => {
  const { clone, status, cluster } = pass;
  if (!isBeforeRestore(pass)) return 'continue';
  const { name: cloneName, namespace } = clone.metadata;
  const name = snapshotNameOf(pass);
  const snapshot = await cluster.snapshot(name);
  const isGoing = snapshot?.metadata.deletionTimestamp !== undefined;
  if (snapshot === undefined || isGoing) {
    return hasSnapshotSource(clone)
      ? wait(pass, 'SourceDoesNotExist', `Source doesnt exist: VirtualMachineSnapshot ${namespace}/${name}`)
      : fail(pass, 'SnapshotDeleted', snapshotLost(name));
  }
  status.phase = 'SnapshotInProgress';
  if (snapshot.status?.phase === 'Failed') {
    const why = snapshot.status.error?.message;
    const message = `snapshot ${name} for clone ${cloneName} failed${why ? `: ${why}` : ''}`;
    return fail(pass, 'SnapshotFailed', message, 'Warning');
  }
  if (snapshot.status?.readyToUse !== true) {
    const why = snapshot.status?.error?.message;
    return goOnLater(pass, why && `snapshot ${name}: ${why}`);
  }
  const contentName = contentNameOf(snapshot);
  const content = await cluster.content(contentName);
  const problem =
    content === undefined
      ? `snapshot content ${contentName} in namespace ${namespace} does not exist`
      : uncloneableContent(content);
  if (problem !== undefined) return fail(pass, 'SnapshotContentInvalid', problem);
  pass.record('Normal', 'SnapshotReady', `snapshot ${name} for clone ${cloneName} is ready to use`);
  status.phase = 'RestoreInProgress';
  return 'continue';
};
