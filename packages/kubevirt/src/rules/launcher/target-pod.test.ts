import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachineInstance, VirtualMachineInstanceMigration } from '../../kinds/kubevirt.ts';
import { launcherPod } from './launcher-pod.ts';
import { currentPod, isLauncherReady } from './launcher-pods.ts';
import { pinnedImage, targetPod } from './target-pod.ts';

const OPTIONS = { idLabel: 'a', cpuAllocationRatio: 10, useEmulation: true, launcherImage: 'launcher:2' };
const vmi = (spec: object = {}, status: object = {}): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...spec },
    status,
  }) as unknown as VirtualMachineInstance;
const migration = (spec: object = {}, annotations?: object): VirtualMachineInstanceMigration =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'm', namespace: 'ns', uid: 'mu', ...(annotations && { annotations }) },
    spec: { vmiName: 'a', ...spec },
  }) as unknown as VirtualMachineInstanceMigration;
const source = (over: { statuses?: object[]; nodeSelector?: object } = {}): Pod =>
  ({
    metadata: { name: 's' },
    spec: { nodeSelector: over.nodeSelector ?? {}, containers: [] },
    status: { phase: 'Running', containerStatuses: over.statuses ?? [] },
  }) as unknown as Pod;
const make = (
  over: {
    vmi?: VirtualMachineInstance;
    migration?: VirtualMachineInstanceMigration;
    source?: Pod;
    labels?: Record<string, string>;
    hooks?: boolean;
  } = {},
): Pod =>
  targetPod({
    vmi: over.vmi ?? vmi(),
    migration: over.migration ?? migration(),
    source: over.source ?? source(),
    options: { ...OPTIONS, functionalTestHooks: over.hooks === true },
    sourceNodeLabels: over.labels ?? {},
  });

test('targetPod() is the launcher Pod, named for its migration, away from every other of the instance', () => {
  const own = vmi();
  const target = make({ vmi: own });
  const plain = launcherPod(own, OPTIONS);
  assert.deepEqual(target.spec.containers, plain.spec.containers);
  assert.equal(target.metadata.labels?.['kubevirt.io/migrationJobUID'], 'mu');
  assert.equal(target.metadata.annotations?.['kubevirt.io/migrationJobName'], 'm');
  assert.deepEqual(target.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution, [
    { labelSelector: { matchLabels: { 'kubevirt.io/created-by': 'u' } }, topologyKey: 'kubernetes.io/hostname' },
  ]);
});

test("targetPod() keeps the instance's own rules of placement and adds to them", () => {
  const rule = { labelSelector: { matchLabels: { app: 'x' } }, topologyKey: 'zone' };
  const target = make({
    vmi: vmi({
      nodeSelector: { disk: 'fast' },
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [rule] }, nodeAffinity: {} },
    }),
    migration: migration({ addedNodeSelector: { disk: 'slow', rack: '7' } }),
  });
  assert.equal(target.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.length, 2);
  assert.deepEqual(target.spec.affinity?.nodeAffinity, {});
  assert.equal(target.spec.nodeSelector?.['disk'], 'fast', 'what the instance asks for wins');
  assert.equal(target.spec.nodeSelector?.['rack'], '7');
});

test('targetPod() takes the images the source runs, but a launcher of its own', () => {
  const digest = `sha256:${'b'.repeat(64)}`;
  const target = make({
    vmi: vmi({ volumes: [{ name: 'root', containerDisk: { image: 'reg:5000/disk:v1' } }] }),
    source: source({
      statuses: [
        { name: 'compute', imageID: `launcher@sha256:${'c'.repeat(64)}` },
        { name: 'volumeroot', imageID: `docker-pullable://reg:5000/disk@${digest}` },
      ],
    }),
  });
  assert.deepEqual(
    target.spec.containers.map(({ image }) => image),
    ['launcher:2', `reg:5000/disk@${digest}`],
  );
  const override = { 'kubevirt.io/func-test-migration-target-image-override': 'broken' };
  assert.equal(make({ migration: migration({}, override) }).spec.containers[0]?.image, 'launcher:2');
  const hooked = make({ migration: migration({}, override), hooks: true });
  assert.equal(hooked.spec.containers[0]?.image, 'broken');
  assert.equal(hooked.metadata.annotations?.['kubevirt.io/func-test-migration-target-image-override'], 'broken');
});

const D = `sha256:${'1'.repeat(64)}`;
for (const [image, id, expected] of [
  ['disk', `disk@${D}`, `disk@${D}`],
  ['disk:v1', D, `disk@${D}`],
  ['host:5000/disk', D, `host:5000/disk@${D}`],
  ['host:5000/disk:v1', D, `host:5000/disk@${D}`],
  [`disk:v1@sha256:${'2'.repeat(64)}`, D, `disk@${D}`],
  ['disk:v1', '', 'disk:v1'],
  ['disk:v1', 'local-id', 'disk:v1'],
] as const)
  test(`pinnedImage(${image}, ${id.slice(0, 12)})`, () => assert.equal(pinnedImage(image, id), expected));

test("targetPod() of a guest with the host's CPU asks for that model, and later for the same again", () => {
  const hostModel = vmi({ domain: { devices: {}, cpu: { model: 'host-model' } } });
  const labels = {
    'host-model-cpu.node.kubevirt.io/Skylake': 'true',
    'host-model-required-features.node.kubevirt.io/aes': 'true',
    'cpu-feature.node.kubevirt.io/other': 'true',
  };
  const wanted = { 'cpu-model-migration.node.kubevirt.io/Skylake': 'true', 'cpu-feature.node.kubevirt.io/aes': 'true' };
  const { nodeSelector } = make({ vmi: hostModel, labels }).spec;
  for (const [key, value] of Object.entries(wanted)) assert.equal(nodeSelector?.[key], value);
  const again = make({
    vmi: hostModel,
    source: source({ nodeSelector: wanted }),
    labels: { 'host-model-cpu.node.kubevirt.io/Icelake': 'true' },
  });
  assert.equal(again.spec.nodeSelector?.['cpu-model-migration.node.kubevirt.io/Skylake'], 'true');
  assert.equal(again.spec.nodeSelector?.['cpu-model-migration.node.kubevirt.io/Icelake'], undefined);
  assert.deepEqual(make({ vmi: hostModel }).spec.nodeSelector, make().spec.nodeSelector, 'a node that does not tell');
});

const pod = (name: string, node: string | undefined, second: number, phase = 'Running', labels = {}): Pod =>
  ({
    metadata: { name, uid: name, labels, creationTimestamp: `2030-01-01T00:00:0${second}Z` },
    spec: { nodeName: node, containers: [] },
    status: { phase },
  }) as unknown as Pod;
const JOB = { 'kubevirt.io/migrationJobUID': 'm' };
const CURRENT: readonly [what: string, nodeName: string | undefined, pods: Pod[], name: string | undefined][] = [
  ['none', undefined, [], undefined],
  ['before there is a node', undefined, [pod('a', undefined, 1), pod('t', 'n2', 2, 'Running', JOB)], 'a'],
  ['on its node', 'n1', [pod('a', 'n1', 1), pod('t', 'n2', 2, 'Running', JOB)], 'a'],
  ['after the move', 'n2', [pod('a', 'n1', 1, 'Succeeded'), pod('t', 'n2', 2, 'Running', JOB)], 't'],
  ['back again', 'n1', [pod('a', 'n1', 1, 'Succeeded'), pod('t', 'n2', 2), pod('u', 'n1', 3, 'Running', JOB)], 'u'],
  ['back within a second', 'n1', [pod('z', 'n1', 1, 'Succeeded'), pod('a', 'n1', 1)], 'a'],
  ['one that has ended is better than none', 'n1', [pod('a', 'n1', 1, 'Failed')], 'a'],
  ['none on its node', 'n3', [pod('a', 'n1', 1)], undefined],
];
for (const [what, nodeName, pods, name] of CURRENT) {
  test(`currentPod(): ${what}`, () => {
    const own = vmi({}, nodeName ? { nodeName } : {});
    assert.equal(currentPod(own, pods)?.metadata.name, name);
    assert.equal(currentPod(own, [...pods].reverse())?.metadata.name, name);
  });
}

test('isLauncherReady(): every container but the guest itself must be ready', () => {
  const ready = (statuses: object[], more: object = {}): boolean =>
    isLauncherReady({
      metadata: {},
      spec: { containers: [] },
      status: { phase: 'Running', containerStatuses: statuses },
      ...more,
    } as unknown as Pod);
  const compute = { name: 'compute', ready: false, state: { running: {} } };
  assert.equal(ready([compute]), true);
  assert.equal(ready([{ ...compute, state: { waiting: {} } }]), false);
  assert.equal(ready([compute, { name: 'volumeroot', ready: false, state: { running: {} } }]), false);
  assert.equal(ready([compute, { name: 'istio-proxy', ready: false }]), true);
  assert.equal(ready([]), false);
  assert.equal(ready([compute], { metadata: { deletionTimestamp: 't' } }), false);
});
