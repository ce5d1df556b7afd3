import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { AgentEnvironment } from '../environment.ts';
import { Launcher } from './launcher.ts';
import { finishGuest } from './launcher-finish.ts';
import { LauncherState } from './launcher-state.ts';

/** What every launcher's environment holds; the tests add whom it talks to. */
const HOST = {
  signal: new AbortController().signal,
  clock: systemClock,
  log: silentLogger,
  hostIP: '127.0.0.1',
  pool: { releaseAll: () => {} },
  nodeName: 'n',
  vmsDirectory: '/nowhere',
};

// S-253: A Pod whose agent is restarted while its guest ends says how the guest ended.
test('finishGuest() tells a Pod that an agent just started sees only while it clears up', {
  timeout: 10_000,
}, async () => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid: '00000000-0000-4000-8000-000000000000', resourceVersion: '1' },
    spec: { containers: [{ name: 'compute', image: 'l' }] },
    status: { phase: 'Running' },
  } as unknown as Pod;
  const phases: (string | undefined)[] = [];
  const environment = {
    ...HOST,
    tombstones: {
      has: async () => undefined,
      add: async () => {
        launcher.pod = pod;
        launcher.changed();
      },
    },
    client: {
      patch: async (_type: unknown, _key: unknown, patch: { body: { status: Pod['status'] } }) => {
        phases.push(patch.body.status?.phase);
        // Reported: now it may go.
        queueMicrotask(() => {
          launcher.podGone = true;
          launcher.changed();
        });
        return { ...pod, metadata: { ...pod.metadata, resourceVersion: '2' }, status: patch.body.status };
      },
    },
  } as unknown as AgentEnvironment;
  const launcher = new LauncherState(environment, { pod: undefined, record: undefined, hasPredecessor: () => false });
  const stuck = setTimeout(() => {
    launcher.podGone = true;
    launcher.changed();
  }, 2000);
  await finishGuest(launcher, { phase: 'Succeeded', reason: 'Completed', message: 'it moved', exitCode: 0 });
  clearTimeout(stuck);
  assert.deepEqual(phases, ['Succeeded']);
});

// S-254: An agent that is started anew ends no instance for an older launcher Pod of it; the next launcher of a machine
//   begins with its files once the earlier one has removed its own.
test('an agent that is started anew ends no instance for a Pod whose end an earlier one reported', {
  timeout: 10_000,
}, async () => {
  // The instance moved away, and came back under another Pod while the object of the first one was still there.
  const owner = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name: 'vm',
    uid: 'u',
    controller: true,
  };
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'old', namespace: 'ns', uid: 'old', resourceVersion: '1', ownerReferences: [owner] },
    spec: { containers: [{ name: 'compute', image: 'l' }] },
    status: { phase: 'Succeeded' },
  } as unknown as Pod;
  const vmi = partly<VirtualMachineInstance>({
    metadata: { name: 'vm', namespace: 'ns', uid: 'u', resourceVersion: '1' },
    status: { phase: 'Running', nodeName: 'n', activePods: { old: 'n' } },
  });
  const written: string[] = [];
  const environment = {
    ...HOST,
    tombstones: {
      has: async () => ({ phase: 'Succeeded', reason: 'Completed', message: 'it moved', exitCode: 0 }),
      add: async () => launcher.observePod(undefined),
    },
    client: {
      get: async () => vmi,
      patch: async (type: { resource: string }, _key: unknown, { body }: { body: object }) => {
        written.push(type.resource);
        return { ...pod, ...body, metadata: pod.metadata };
      },
    },
  } as unknown as AgentEnvironment;
  const launcher = new Launcher(environment, { pod, others: () => [] });
  launcher.observeVmi(vmi);
  await launcher.run();
  assert.ok(!written.includes('virtualmachineinstances'), written.join());
});

// S-296: An agent starts no guest for a Pod that has ended and of which it has nothing.
test('an agent that has nothing of a Pod but its end starts no guest for it, also where it was the target of a migration', {
  timeout: 10_000,
}, async () => {
  const uid = '00000000-0000-4000-8000-000000000001';
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'old',
      namespace: 'ns',
      uid,
      resourceVersion: '1',
      labels: { 'kubevirt.io/migrationJobUID': 'job' },
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm', uid, controller: true },
      ],
    },
    spec: { containers: [{ name: 'compute', image: 'l' }] },
    status: { phase: 'Succeeded' },
  } as unknown as Pod;
  const asked: string[] = [];
  const phases: (string | undefined)[] = [];
  const environment = {
    ...HOST,
    peer: {},
    events: { event: () => {} },
    tombstones: { has: async () => undefined, add: async () => launcher.observePod(undefined) },
    client: {
      get: async (type: { resource: string }) => {
        asked.push(type.resource);
        throw new Error('nobody should look for the instance');
      },
      patch: async (_type: unknown, _key: unknown, { body }: { body: { status: Pod['status'] } }) => {
        phases.push(body.status?.phase);
        return { ...pod, ...body, metadata: pod.metadata };
      },
    },
  } as unknown as AgentEnvironment;
  const launcher = new Launcher(environment, { pod, others: () => [] });
  setTimeout(() => launcher.observePod(undefined), 1000).unref();
  await launcher.run();
  assert.deepEqual(asked, []);
  assert.ok(
    phases.every((phase) => phase === 'Succeeded'),
    phases.join(),
  );
});
