/** The controller of the bin is killed after a given write; another one takes over. Over a pool in memory. */
import assert from 'node:assert/strict';
import { CONTENTS, RECORDS, SECRETS, startBinBoard, VMS } from './bin-board.ts';
import { crashOnce, runUntilWrite } from './crashing-component.ts';
import { CLAIMS, type Row, VOLUMES } from './storage-plane.ts';

export interface BinCrashBoard {
  /** Deletes a machine; true when the controller was done before it was to be killed. */
  remove(after: number): Promise<boolean>;
  /** Brings one back. */
  undelete(after: number): Promise<boolean>;
  /** Brings one back that the server refuses, and then once more. */
  refused(after: number): Promise<boolean>;
  /** Empties the bin of one, or of one on whose way back the controller was killed. */
  empty(after: number, when: 'kept' | 'undeleting'): Promise<boolean>;
  stop(): Promise<void>;
}

const OTHERS = ['vm', 'garbage-collector-controller', 'resourcequota-controller'];
const QUOTA = '/api/v1/namespaces/default/resourcequotas';

export async function startBinCrashBoard(): Promise<BinCrashBoard> {
  const board = await startBinBoard(OTHERS);
  let serial = 0;
  const facts = { rootCa: '', connectNode: (name: string) => board.pool.connect(name) };
  const start = (after: number) => runUntilWrite(board, 'bin', after, facts);
  const run = (after: number, done: () => Promise<unknown>): Promise<boolean> => crashOnce(start, after, done);
  const whole = (done: () => Promise<unknown>): Promise<boolean> => run(Number.POSITIVE_INFINITY, done);
  const uuid = (): string => `bbbbbbbb-0000-4000-8000-${String(serial).padStart(12, '0')}`;

  const kept = (name: string, phase = 'Deleted') =>
    board.settled(RECORDS, ({ items }) =>
      items?.some(
        ({ spec, status }: Row) =>
          spec.virtualMachine.name === name && status?.phase === phase && status.expiresAt !== undefined,
      ),
    );
  /** One in the bin, and the handle of its disk. */
  const inBin = async (): Promise<{ readonly name: string; readonly handle: string }> => {
    const name = `m${++serial}`;
    await board.machine(name, { uuid: uuid() });
    const handle = await board.handle(`${name}-disk`);
    await board.remove(name);
    await board.gone(`${VOLUMES}/pvc-${handle}`);
    await whole(() => kept(name));
    return { name, handle };
  };
  const back = async (name: string): Promise<void> => {
    await board.settled(`${VMS}/${name}`, ({ metadata }) => metadata !== undefined);
    await board.emptied();
    await board.settled(RECORDS, ({ items }) => items.length === 0);
  };
  /** All that a machine consists of is there, once, and nothing says that it came back. */
  const isWhole = async (name: string, handle: string): Promise<void> => {
    const { metadata } = await board.admin(`GET ${VMS}/${name}`);
    assert.equal(await board.handle(`${name}-disk`), handle);
    for (const path of [`${CLAIMS}/${name}-disk`, `${SECRETS}/${name}-login`]) {
      const object = await board.admin(`GET ${path}`);
      assert.deepEqual(
        object.metadata.ownerReferences.map((owner: Row) => owner['uid']),
        [metadata.uid],
      );
      assert.equal(object.metadata.annotations?.['coracle.dev/undeleted-from'], undefined);
    }
    const volumes = (await board.admin(`GET ${VOLUMES}`)).items as Row[];
    assert.deepEqual(
      volumes.flatMap(({ spec }) => (spec.csi.volumeHandle === handle ? [spec.claimRef.name] : [])),
      [`${name}-disk`],
    );
    assert.ok(board.pool.volumes.has(handle));
  };
  /** Takes the machine away for good. */
  const leave = async (name: string, handle: string): Promise<void> => {
    await board.setWindow('0');
    await board.remove(name);
    await board.gone(`${VOLUMES}/pvc-${handle}`);
    assert.equal(board.pool.volumes.has(handle), false);
    await board.setWindow(null);
  };

  return {
    async remove(after) {
      const name = `m${++serial}`;
      await board.machine(name, { uuid: uuid() });
      const handle = await board.handle(`${name}-disk`);
      await board.remove(name);
      await board.gone(`${VOLUMES}/pvc-${handle}`);
      const ended = await run(after, () => kept(name));
      assert.ok(board.pool.volumes.has(handle));
      await board.undelete(name);
      await whole(() => back(name));
      await isWhole(name, handle);
      await leave(name, handle);
      return ended;
    },
    async undelete(after) {
      const { name, handle } = await inBin();
      await board.undelete(name);
      const ended = await run(after, () => back(name));
      await isWhole(name, handle);
      await leave(name, handle);
      return ended;
    },
    async refused(after) {
      const { name, handle } = await inBin();
      await board.admin(`POST ${QUOTA}`, {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'none' },
        spec: { hard: { 'count/virtualmachines.kubevirt.io': '0' } },
      });
      await board.settled(`${QUOTA}/none`, ({ status }) => status?.hard !== undefined);
      const { spec } = await board.undelete(name);
      const ended = await run(after, async () => {
        await board.settled(RECORDS, ({ items }) => items[0]?.status?.failedRequest === spec.undelete.id);
        await kept(name);
      });
      for (const path of [`${CLAIMS}/${name}-disk`, `${SECRETS}/${name}-login`, `${VOLUMES}/pvc-${handle}`])
        assert.equal((await board.ask(`GET ${path}`, { as: ['admin', 'system:masters'] })).status, 404, path);
      assert.ok(board.pool.volumes.has(handle));
      await board.admin(`DELETE ${QUOTA}/none`);
      await board.undelete(name);
      await whole(() => back(name));
      await isWhole(name, handle);
      await leave(name, handle);
      return ended;
    },
    async empty(after, when) {
      const { name, handle } = await inBin();
      const { metadata } = await board.record(name);
      if (when === 'kept') {
        await board.admin(`DELETE ${RECORDS}/${metadata.name}`);
        const ended = await run(after, () => board.emptied());
        assert.equal(board.pool.volumes.has(handle), false);
        return ended;
      }
      await board.undelete(name);
      const first = start(after);
      let isKilled = false;
      void first.crashed.then(() => (isKilled = true));
      // It may never be back: then it is emptied before.
      await board.settled(CONTENTS, ({ items }) => isKilled || items?.length === 0);
      const ended = !isKilled;
      await first.stop();
      await board.ask(`DELETE ${RECORDS}/${metadata.name}`, { as: ['admin', 'system:masters'] });
      await whole(() => board.emptied());
      const vm = await board.ask(`GET ${VMS}/${name}`, { as: ['admin', 'system:masters'] });
      if (vm.status === 404) {
        assert.equal(board.pool.volumes.has(handle), false);
        assert.equal((await board.admin(`GET ${VOLUMES}`)).items.length, 0);
      } else {
        await isWhole(name, handle);
        await leave(name, handle);
      }
      return ended;
    },
    stop: () => board.stop(),
  };
}
