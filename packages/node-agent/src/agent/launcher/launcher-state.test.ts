import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, PodStatus } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance } from '../../../../kubevirt/src/kinds/kubevirt.ts';
import { launcherPod } from '../../../../kubevirt/src/rules/launcher/launcher-pod.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import type { AgentEnvironment } from '../environment.ts';
import { LauncherState } from './launcher-state.ts';

// S-297: A guest has its own grace period also where its agent has just started.
test('a guest has its own grace period also while only its Pod is known', () => {
  const vmi = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { terminationGracePeriodSeconds: 600, domain: { devices: {}, memory: { guest: '64Mi' } } },
  } as unknown as VirtualMachineInstance;
  const options = { launcherImage: 'l', cpuAllocationRatio: 10, useEmulation: true };
  const pod = launcherPod(vmi, options as unknown as Parameters<typeof launcherPod>[1]);
  const environment = { signal: new AbortController().signal, log: silentLogger } as AgentEnvironment;
  const state = new LauncherState(environment, { pod, record: undefined, hasPredecessor: () => false });
  assert.equal(state.graceSeconds, 600);
  state.vmi = { ...vmi, spec: { ...vmi.spec, terminationGracePeriodSeconds: 5 } };
  assert.equal(state.graceSeconds, 5);
});

// S-322: What a server drops from a Pod's status is not sent again.
test('what a server drops from a status is not sent again and again, and what somebody else takes away is', async () => {
  const sent: PodStatus[] = [];
  let stored = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', uid: 'u', resourceVersion: '1' },
    spec: { containers: [{ name: 'compute', image: 'l', resources: { requests: { cpu: '1' } } }] },
    status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
  } as unknown as Pod;
  /** One that knows nothing of `hostIPs` and resized containers (Kubernetes 1.27). */
  const patch = async (_type: unknown, _key: unknown, { body }: { body: { status: PodStatus } }): Promise<Pod> => {
    sent.push(body.status);
    const { hostIPs: _, ...status } = structuredClone(body.status);
    for (const container of status.containerStatuses ?? []) delete container.allocatedResources;
    stored = { ...stored, metadata: { ...stored.metadata, resourceVersion: `${sent.length + 1}` }, status };
    return stored;
  };
  const environment = {
    client: { patch },
    clock: { now: () => 0, monotonic: () => 0 },
    hostIP: '127.0.0.1',
    signal: new AbortController().signal,
    log: silentLogger,
  } as unknown as AgentEnvironment;
  const state = new LauncherState(environment, { pod: stored, record: undefined, hasPredecessor: () => false });
  const view = { state: 'running', startedAt: 0, address: '127.64.0.1', imageIds: {} } as const;
  for (let pass = 0; pass < 3; pass++) assert.equal(await state.report(view), true);
  assert.equal(sent.length, 1, 'the server had nothing new to hear');

  stored = { ...stored, status: { ...stored.status!, phase: 'Pending' } };
  state.pod = stored;
  await state.report(view);
  await state.report(view);
  assert.equal(sent.length, 2);
  assert.equal(stored.status?.phase, 'Running');

  await state.report({ ...view, address: '127.64.0.2' });
  assert.equal(sent.at(-1)?.podIP, '100.64.0.2');
});
