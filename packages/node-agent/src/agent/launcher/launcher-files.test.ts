import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { VIRTUAL_MACHINE_INSTANCES } from '../../../../kubevirt/src/kinds/kinds.ts';
import { PlanError } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { createDeferred } from '../../../../runtime/src/signal/deferred.ts';
import type { AgentEnvironment } from '../environment.ts';
import { Launcher } from './launcher.ts';
import { type VmRecord, writeRecord } from './vm-record.ts';

const VMI_UID = '00000000-0000-4000-8000-000000000001';
const EARLIER_UID = '00000000-0000-4000-8000-000000000002';
const NEXT_UID = '00000000-0000-4000-8000-000000000003';

// S-254
test('the next launcher of a VM begins with its files once the earlier one, whose Pod has ended, has removed its own', {
  timeout: 20_000,
}, async (t) => {
  const vmsDirectory = await mkdtemp(join(tmpdir(), 'coracle-launcher-'));
  const stop = new AbortController();
  t.after(async () => {
    stop.abort();
    await rm(vmsDirectory, { recursive: true, force: true });
  });
  const directory = join(vmsDirectory, VMI_UID);
  const owner = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name: 'vm',
    uid: VMI_UID,
    controller: true,
  };
  const podOf = (name: string, uid: string) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'ns', uid, resourceVersion: '1', ownerReferences: [owner] },
      spec: { containers: [{ name: 'compute', image: 'l' }] },
      status: { phase: 'Pending' },
    }) as unknown as ReadonlyPod;
  const vmi = {
    metadata: { name: 'vm', namespace: 'ns', uid: VMI_UID, resourceVersion: '1' },
    spec: {},
    status: { phase: 'Scheduled', nodeName: 'n' },
  };
  const clearing = createDeferred();
  const waiting = createDeferred();
  /** What the next one found when it began to prepare. */
  const found: boolean[] = [];
  const environment = {
    signal: stop.signal,
    clock: systemClock,
    log: silentLogger,
    events: { event: () => {} },
    hostIP: '127.0.0.1',
    pool: { releaseAll: () => {} },
    nodeName: 'n',
    bootId: 'b',
    vmsDirectory,
    addressesDirectory: vmsDirectory,
    get facts() {
      found.push(existsSync(directory));
      throw new PlanError('as far as this test goes');
    },
    tombstones: {
      has: async () => undefined,
      add: (uid: string) => (uid === EARLIER_UID ? clearing.promise : undefined),
    },
    decideResize: async () => ({ type: 'fits' }),
    client: {
      list: async () => ({ items: [] }),
      get: async (type: unknown) => (type === VIRTUAL_MACHINE_INSTANCES ? vmi : undefined),
      patch: async (_: unknown, key: { name: string }, { body }: { body: { status: object } }) => {
        if (key.name === 'next') waiting.resolve();
        return { ...podOf(key.name, key.name === 'next' ? NEXT_UID : EARLIER_UID), status: body.status };
      },
    },
  } as unknown as AgentEnvironment;
  const record = {
    version: 1,
    node: 'n',
    vmiUid: VMI_UID,
    podUid: EARLIER_UID,
    namespace: 'ns',
    name: 'vm',
    podName: 'earlier',
    address: '127.0.0.2',
    bootId: 'b',
    startedAt: 0,
    plan: { uuid: VMI_UID },
    imageIds: {},
    portProblems: [],
    result: { phase: 'Failed', reason: 'MigrationFailed', message: 'it did not come', exitCode: 1 },
  } as unknown as VmRecord;
  await mkdir(directory);
  await writeRecord(vmsDirectory, record);

  const launchers: Launcher[] = [];
  const others = () => launchers;
  launchers.push(new Launcher(environment, { record, others }));
  launchers.push(new Launcher(environment, { pod: podOf('next', NEXT_UID), others }));
  for (const launcher of launchers) void launcher.run().catch(() => {});
  await waiting.promise;
  assert.deepEqual(found, []);
  clearing.resolve();
  while (found.length === 0) await new Promise((next) => setTimeout(next, 10));
  assert.deepEqual(found, [false]);
});
