/** What tests of moving guests ask again and again: a guest that beats, one that stays, one that has moved. */
import assert from 'node:assert/strict';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { eventually } from '../testkit/eventually.ts';
import { kernelSpec } from './board.ts';
import { type Handed, heartbeat, httpPortOf, type MigrationBoard } from './migration-board.ts';

/** So slow that there is time to do something in the middle. */
export const SLOW = { bandwidthPerMigration: '4Mi' };

/** The words of a board that has started. */
export function movingGuests(board: MigrationBoard) {
  const running = (name: string) => board.until(name, 'running', (vmi) => vmi.status?.phase === 'Running');

  /** Starts a guest that is reached by HTTP; resolves with its counter. */
  async function startGuest(name: string): Promise<{ vmi: VirtualMachineInstance; beats: number }> {
    await board.createVmi(name, kernelSpec());
    const vmi = await running(name);
    return { vmi, beats: await heartbeat(vmi) };
  }

  const httpPort = async (name: string, node: string): Promise<number> =>
    httpPortOf(
      (await board.launchers(name)).find(({ spec, status }) => spec.nodeName === node && status?.phase === 'Running'),
    );

  /** The migration is in the middle of its stream. */
  const underWay = (name: string): Promise<unknown> =>
    board.until(name, 'under way', (vmi) => typeof vmi.status?.migrationState?.startTimestamp === 'string');

  /** The guest stays: it never stopped, one QEMU is left and it is that of the source, and the failure is reported. */
  async function staysAt(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
    const vmi = await board.until(name, 'failed', ({ status }) => status?.migrationState?.failed === true);
    assert.ok(vmi.status?.migrationState?.endTimestamp);
    assert.equal(vmi.status?.nodeName, handed.source);
    assert.ok((await heartbeat(vmi, () => httpPort(name, handed.source))) >= before, 'another boot');
    await eventually('the QEMU of the target is gone', async () => (await board.qemus(vmi)).size === 1);
    assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.source]);
    assert.equal((await board.vmi(name)).status?.phase, 'Running');
    await eventually('the target pod has failed', async () =>
      (await board.launchers(name)).some(
        (pod) => pod.metadata.name === handed.targetPod && pod.status?.phase === 'Failed',
      ),
    );
    await eventually(
      'the record is an ordinary one',
      async () => (await board.record(handed.source, vmi))?.['migration'] === undefined,
    );
    return vmi;
  }

  /** The guest has moved: it never stopped, one QEMU is left and it is that of the target. */
  async function movedTo(name: string, handed: Handed, before: number): Promise<VirtualMachineInstance> {
    const vmi = await board.until(
      name,
      'moved',
      ({ status }) => status?.nodeName === handed.target || status?.migrationState?.failed === true,
    );
    assert.equal(vmi.status?.migrationState?.failed, undefined, vmi.status?.migrationState?.failureReason ?? '');
    assert.ok((await heartbeat(vmi)) >= before, 'another boot');
    await eventually('the QEMU of the source is gone', async () => (await board.qemus(vmi)).size === 1);
    assert.deepEqual([...(await board.qemus(vmi)).keys()], [handed.target]);
    await eventually('the source pod is completed', async () =>
      (await board.launchers(name)).some(
        (pod) => pod.spec.nodeName === handed.source && pod.status?.phase === 'Succeeded',
      ),
    );
    await eventually(
      'the files of the source are gone',
      async () => (await board.record(handed.source, vmi)) === undefined,
    );
    assert.equal((await board.vmi(name)).status?.phase, 'Running');
    return board.until(
      name,
      'the label',
      ({ metadata }) => metadata.labels?.['kubevirt.io/nodeName'] === handed.target,
    );
  }

  async function clean(name: string): Promise<void> {
    for (const pod of await board.launchers(name))
      if (pod.status?.phase !== 'Running') await board.removePod(pod.metadata.name ?? '');
  }

  return { running, startGuest, httpPort, underWay, staysAt, movedTo, clean };
}

export type MovingGuests = ReturnType<typeof movingGuests>;
