import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VirtualMachineInstance } from '../../api/kinds/kubevirt/kubevirt.ts';
import { silentLogger } from '../../base/log/log.ts';
import { launcherPod } from '../../domain/launcher/launcher-pod.ts';
import type { AgentEnvironment } from './environment.ts';
import { LauncherState } from './launcher-state.ts';

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
