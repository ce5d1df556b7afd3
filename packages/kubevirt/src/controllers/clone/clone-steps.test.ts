import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CloneStatus, VirtualMachineClone } from '../../kinds/kubevirt.ts';
import {
  contentOf,
  machineOf,
  type Objects,
  playPass,
  RESTORE,
  restoreOf,
  SNAPSHOT,
  snapshotOf,
} from './clone-pass.fixture.ts';
import { takeSteps } from './clone-steps.ts';

interface Row {
  readonly name: string;
  readonly status?: CloneStatus;
  readonly objects?: Objects;
  readonly metadata?: Partial<VirtualMachineClone['metadata']>;
  readonly phase: CloneStatus['phase'] | undefined;
  readonly writes?: readonly string[];
}
const machines = { db: machineOf() };
const saved = {
  machines,
  snapshots: { [SNAPSHOT]: snapshotOf({ phase: 'Succeeded', readyToUse: true }) },
  contents: { content: contentOf() },
};
const ROWS: readonly Row[] = [
  {
    name: 'a clone begins with its snapshot, and waits for it',
    objects: { machines },
    phase: 'SnapshotInProgress',
    writes: [`create snapshot ${SNAPSHOT}`],
  },
  {
    name: 'a snapshot that is ready is followed by the restore in the same pass',
    status: { phase: 'SnapshotInProgress', snapshotName: SNAPSHOT },
    objects: saved,
    phase: 'RestoreInProgress',
    writes: [`create restore ${RESTORE}`],
  },
  {
    name: 'a restore under way is waited for',
    status: { phase: 'RestoreInProgress', snapshotName: SNAPSHOT, restoreName: RESTORE },
    objects: { ...saved, restores: { [RESTORE]: restoreOf({ complete: false }) } },
    phase: 'RestoreInProgress',
  },
  { name: 'a clone that failed stays as it is', status: { phase: 'Failed' }, objects: { machines }, phase: 'Failed' },
  {
    name: 'a clone that is deleted begins nothing more',
    metadata: { deletionTimestamp: '2030-01-01T00:00:00Z' },
    objects: { machines },
    phase: undefined,
  },
];
for (const { name, status = {}, objects = {}, metadata, phase, writes = [] } of ROWS)
  test(name, async () => {
    const { pass, writes: made } = playPass({ status, objects });
    Object.assign(pass.clone.metadata, metadata);
    await takeSteps(pass);
    assert.deepEqual({ phase: pass.status.phase, writes: made }, { phase, writes });
  });
