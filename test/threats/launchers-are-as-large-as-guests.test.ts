/** A launcher Pod that asks for next to nothing starts no large guest: what scheduling, quotas and limits count is what a guest gets. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { ReadonlyPod } from '../../packages/apimachinery/src/types/types.ts';
import { KUBEVIRTS } from '../../packages/kubevirt/src/kinds/kinds.ts';
import type { VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { launcherPod } from '../../packages/kubevirt/src/rules/launcher/launcher-pod.ts';
import type { AgentEnvironment } from '../../packages/node-agent/src/agent/environment.ts';
import { Launcher } from '../../packages/node-agent/src/agent/launcher/launcher.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';

const VMI_UID = '00000000-0000-4000-8000-000000000001';
const POD_UID = '00000000-0000-4000-8000-000000000002';
const vmi = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'vm', namespace: 'tenant', uid: VMI_UID, resourceVersion: '1' },
  spec: { domain: { devices: {}, memory: { guest: '64Gi' }, cpu: { sockets: 16, cores: 1, threads: 1 } } },
  status: { phase: 'Scheduled', nodeName: 'n' },
} as unknown as VirtualMachineInstance;

let directory: string;
let binary: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'coracle-large-'));
  // In QEMU's place, to see whether it would be started.
  binary = join(directory, 'qemu');
  await writeFile(binary, '#!/bin/sh\nexit 1\n');
  await chmod(binary, 0o700);
});
after(() => rm(directory, { recursive: true, force: true }));

/** What the controllers make of the instance, with other resources where they are given. */
const podWith = (resources?: object, ratio = 10): ReadonlyPod => {
  const pod = launcherPod(vmi, {
    idLabel: 'vm',
    cpuAllocationRatio: ratio,
    useEmulation: true,
    launcherImage: 'l',
  } as Parameters<typeof launcherPod>[1]);
  const [compute, ...more] = pod.spec.containers;
  return {
    ...pod,
    metadata: { ...pod.metadata, name: 'launcher', uid: POD_UID, resourceVersion: '1' },
    spec: {
      ...pod.spec,
      nodeName: 'n',
      containers: [{ ...compute!, ...(resources && { resources }) }, ...more],
    },
  } as ReadonlyPod;
};

/** The agent meets the Pod: whether it starts QEMU, and what it tells of it. */
async function meet(pod: ReadonlyPod, ratio?: number): Promise<{ started: boolean; reported: string[] }> {
  const vmsDirectory = await mkdtemp(join(directory, 'vms-'));
  const stop = new AbortController();
  const reported: string[] = [];
  const configuration = ratio && { developerConfiguration: { cpuAllocationRatio: ratio } };
  const environment = {
    signal: stop.signal,
    clock: systemClock,
    log: silentLogger,
    events: { event: (_: unknown, ...words: string[]) => void reported.push(words.join(' ')) },
    hostIP: '127.0.0.1',
    pool: { releaseAll: () => {}, users: () => [] },
    nodeName: 'n',
    bootId: 'b',
    binary,
    facts: {
      architecture: 'amd64',
      qemuVersion: '7.2.22',
      accelerator: 'tcg',
      machineTypes: ['pc-q35-7.2'],
      machineAliases: { q35: 'pc-q35-7.2' },
      cpuModels: ['max'],
      cpuFeatures: [],
      devices: [],
      sandbox: true,
    },
    vmsDirectory,
    addressesDirectory: vmsDirectory,
    tombstones: { has: async () => undefined, add: async () => {} },
    validateResize: async () => ({ type: 'fits' }),
    client: {
      list: async (type: unknown) => ({
        items: type === KUBEVIRTS && configuration ? [{ spec: { configuration } }] : [],
      }),
      get: async () => vmi,
      patch: async (_: unknown, __: unknown, { body }: { body: { status: object } }) => ({
        ...pod,
        status: body.status,
      }),
      delete: async () => {},
    },
  } as unknown as AgentEnvironment;
  const launcher = new Launcher(environment, { pod, others: () => [] });
  launcher.observeVmi(vmi);
  const running = launcher.run();
  // Either is reported in an event: that QEMU did not start, or that it was not tried.
  await eventually('an event', () => reported.length > 0);
  // What stands in QEMU's place ends at once, which is reported as well.
  const outcome = { started: reported.some((one) => one.startsWith('Warning StartFailed')), reported };
  launcher.observePod(undefined);
  await running.catch(() => {});
  stop.abort();
  return outcome;
}

// S-820: A guest is started for a Pod only that asks for what the instance is to get (memory, processors, disk), and
//   whose limit of memory its machine fits: what scheduling, quotas and limit ranges count is what runs.
for (const [what, resources, says] of [
  ['memory', { requests: { memory: '1Mi', cpu: '2' } }, /too small for it: it asks for \d+ bytes of memory/],
  ['no resources at all', {}, /too small for it: it asks for \d+ bytes of memory/],
  ['processors', { requests: { memory: '80Gi', cpu: '1m' } }, /it asks for \dm of a processor/],
  ['a limit of memory', { requests: { memory: '80Gi', cpu: '2' }, limits: { memory: '1Gi' } }, /limited to 1Gi/],
] as const)
  test(`a launcher with too little, by ${what}, starts no guest and says why`, async () => {
    const { started, reported } = await meet(podWith(resources));
    assert.equal(started, false);
    assert.match(reported.join('\n'), says);
  });

// S-820
test('the one that the controllers make starts it, also where more processors share a core', async () => {
  assert.equal((await meet(podWith())).started, true);
  assert.equal((await meet(podWith(undefined, 100), 100)).started, true);
  assert.equal((await meet(podWith(undefined, 100))).started, false);
});
