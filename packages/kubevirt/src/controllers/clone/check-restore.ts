/** Waits for the restore. */
import { snapshotLost } from './check-snapshot.ts';
import { type CloneStep, fail, goOnLater, snapshotNameOf } from './clone-pass.ts';

export const checkRestore: CloneStep = async (pass) => {
  const { clone, status, cluster } = pass;
  if (status.phase !== 'RestoreInProgress') return 'continue';
  const name = status.restoreName ?? '';
  const restore = await cluster.restore(name);
  if (restore === undefined) return fail(pass, 'RestoreDeleted', `restore ${name} does not exist anymore`, 'Warning');
  if (restore.status?.complete !== true) {
    const snapshotName = snapshotNameOf(pass);
    if ((await cluster.snapshot(snapshotName)) === undefined)
      return fail(pass, 'SnapshotDeleted', snapshotLost(snapshotName));
    const aspects = restore.status?.conditions ?? [];
    const failure = aspects.find(({ type, status: is }) => type === 'Failure' && is === 'True');
    // A restore that stumbles says so here, and tries again.
    const halt = aspects.find(({ type, status: is }) => type === 'Progressing' && is === 'False');
    if (failure === undefined) return goOnLater(pass, halt && `restore ${name}: ${halt.reason}`);
    const why = failure.message || failure.reason;
    const message = `restore ${name} for clone ${clone.metadata.name} failed${why ? `: ${why}` : ''}`;
    return fail(pass, 'RestoreFailed', message, 'Warning');
  }
  pass.record('Normal', 'RestoreReady', `restore ${name} for clone ${clone.metadata.name} is ready to use`);
  status.phase = 'CreatingTargetVM';
  status.targetName = restore.spec.target.name;
  return 'continue';
};
