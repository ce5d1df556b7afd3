import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolumeClaim, Pod } from '@coracle/apimachinery/types/types';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { KubeVirt, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { attachmentPod } from '../launcher/attachment-pod.ts';
import { pluggedVolumes } from './plugged-volumes.ts';

const launcher = partly<Pod>({
  metadata: { name: 'virt-launcher-a', namespace: 'n', uid: 'launcher-uid' },
  spec: { nodeName: 'node', containers: [{ name: 'compute', image: 'launcher' }] },
  status: { phase: 'Running' },
});
type Entry = { readonly name?: string; readonly phase?: string; readonly hotplugVolume?: object };
const vmiOf = (names: readonly string[], entries: readonly Entry[] = [], status: object = {}) =>
  partly<VirtualMachineInstance>({
    metadata: { name: 'a', namespace: 'n', uid: 'vmi-uid' },
    spec: { volumes: names.map((name) => ({ name, persistentVolumeClaim: { claimName: name, hotpluggable: true } })) },
    status: {
      phase: 'Running',
      volumeStatus: entries.map((entry) => ({ name: 'data', target: '', hotplugVolume: {}, ...entry })),
      ...status,
    },
  });
const volume = (name: string) => ({ name, claimName: name, isBlock: false });
const pod = (change: object = {}): Pod => ({
  ...attachmentPod(vmiOf([]), launcher, [volume('data')]),
  ...change,
});
const running = pod({ status: { phase: 'Running' } });
const bound = partly<PersistentVolumeClaim>({ metadata: {}, spec: {}, status: { phase: 'Bound' } });
const decide = (
  vmi: VirtualMachineInstance,
  attachments: readonly Pod[] = [],
  claim: PersistentVolumeClaim | 'none' = bound,
  current: Pod = launcher,
) => {
  const { volumeStatus, attach, detach } = pluggedVolumes({
    vmi,
    launcher: current,
    launchers: [launcher, current],
    attachments,
    claimOf: () => (claim === 'none' ? undefined : claim),
  });
  const [entry] = volumeStatus;
  return [entry && [entry.phase, entry.hotplugVolume?.attachPodUID !== undefined], attach.length, detach.length];
};

test('a volume that comes: its claim, its Pod, and then the agent', () => {
  const vmi = vmiOf(['data']);
  assert.deepEqual(decide(vmi, [], 'none'), [['Pending', false], 0, 0]);
  assert.deepEqual(decide(vmi), [['Bound', false], 1, 0]);
  assert.deepEqual(decide(vmi, [pod()]), [['Bound', false], 0, 0]);
  const { metadata } = running;
  const held = pod({ metadata: { ...metadata, uid: 'pod-uid' }, status: { phase: 'Running' } });
  assert.deepEqual(decide(vmi, [held]), [['AttachedToNode', true], 0, 0]);
  // What the agent says of it stays.
  assert.deepEqual(decide(vmiOf(['data'], [{ phase: 'Ready' }]), [held]), [['Ready', true], 0, 0]);
  // Not while it starts, or moves; a Pod that has ended holds nothing.
  assert.deepEqual(decide(vmiOf(['data'], [], { phase: 'Scheduled' })), [['Bound', false], 0, 0]);
  assert.deepEqual(decide(vmiOf(['data'], [], { migrationState: {} })), [['Bound', false], 0, 0]);
  assert.deepEqual(decide(vmi, [pod({ status: { phase: 'Failed' } })]), [['Bound', false], 1, 1]);
});

test('a volume that the launcher holds needs no Pod, and one of an earlier launcher goes', () => {
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
  const target: Pod = {
    ...launcher,
    metadata: { ...launcher.metadata, uid: 'target' },
    spec: { ...launcher.spec, volumes },
  };
  assert.deepEqual(decide(vmiOf(['data']), [running], bound, target), [[undefined, true], 0, 1]);
});

test('a volume that goes: the guest first, then its Pod, then its entry', () => {
  assert.deepEqual(decide(vmiOf([], [{ phase: 'Ready' }]), [running]), [['Detaching', false], 0, 0]);
  assert.deepEqual(decide(vmiOf([], [{ phase: 'Detaching' }]), [running]), [['Detaching', false], 0, 0]);
  assert.deepEqual(decide(vmiOf([], [{ phase: 'UnMountedFromPod' }]), [running]), [['UnMountedFromPod', false], 0, 1]);
  assert.deepEqual(decide(vmiOf([], [{ phase: 'UnMountedFromPod' }])), [undefined, 0, 0]);
  // Nobody has begun with it.
  assert.deepEqual(decide(vmiOf([], [{ phase: 'Pending' }])), [undefined, 0, 0]);
});

test('a Pod that only says it is ours is left alone', () => {
  const foreign = pod({ metadata: { ...running.metadata, ownerReferences: [] } });
  assert.deepEqual(decide(vmiOf([], [{ phase: 'UnMountedFromPod' }]), [foreign]), [undefined, 0, 0]);
});

test('one Pod holds what is bound, and goes when the next one runs; a claim that waits has one of its own', () => {
  const claimOf = (name: string) =>
    partly<PersistentVolumeClaim>({ metadata: {}, spec: {}, status: { phase: name === 'late' ? 'Pending' : 'Bound' } });
  const made = (names: readonly string[], phase: 'Pending' | 'Running'): Pod => {
    const one = attachmentPod(vmiOf([]), launcher, names.map(volume));
    return { ...one, metadata: { ...one.metadata, uid: names.join('-') }, status: { phase } };
  };
  const plan = (names: readonly string[], attachments: readonly Pod[], entries: readonly Entry[] = []) => {
    const { volumeStatus, attach, detach } = pluggedVolumes({
      vmi: vmiOf(names, entries),
      launcher,
      launchers: [launcher],
      attachments,
      claimOf,
    });
    return [
      attach.map((volumes) => volumes.map(({ name }) => name).join()),
      detach.map(({ metadata }) => metadata.uid),
      volumeStatus.map(({ name, hotplugVolume }) => `${name} ${hotplugVolume?.attachPodUID}`),
    ];
  };
  const none = 'late undefined';
  assert.deepEqual(plan(['a', 'b', 'late'], []), [['a,b', 'late'], [], ['a undefined', 'b undefined', none]]);
  const late = made(['late'], 'Pending');
  const one = made(['a'], 'Running');
  const has = [{ name: 'a', phase: 'Ready' }];
  // The guest has `a`, and `b` comes.
  assert.deepEqual(plan(['a', 'b', 'late'], [one, late], has), [['a,b'], [], ['a a', 'b undefined', none]]);
  const starting = [one, late, made(['a', 'b'], 'Pending')];
  assert.deepEqual(plan(['a', 'b', 'late'], starting, has), [[], [], ['a a', 'b undefined', none]]);
  const both = made(['a', 'b'], 'Running');
  assert.deepEqual(plan(['a', 'b', 'late'], [one, late, both], has), [[], ['a'], ['a a-b', 'b a-b', none]]);
  // `a` goes: it is held until the guest has let go of it, and `b` all the time.
  const going = (phase: string) => [
    { name: 'a', phase },
    { name: 'b', phase: 'Ready' },
  ];
  assert.deepEqual(plan(['b'], [both], going('Detaching')), [[], [], ['a undefined', 'b a-b']]);
  assert.deepEqual(plan(['b'], [both], going('UnMountedFromPod')), [['b'], [], ['a undefined', 'b a-b']]);
  const left = [both, made(['b'], 'Running')];
  assert.deepEqual(plan(['b'], left, going('UnMountedFromPod')), [[], ['a-b'], ['a undefined', 'b b']]);
});

// S-1505: The KubeVirt object says by `supportContainerResources` of `hotplug-disk` what the Pod of plugged volumes asks for,
//   as a LimitRange may demand.
test('the amounts of the Pod are those of the KubeVirt object, and the usual ones where it names none', () => {
  const resources = { limits: { cpu: '200m' }, requests: { cpu: '20m', memory: '8M' } };
  const supportContainerResources = [{ type: 'hotplug-disk', resources }];
  const kubeVirt = partly<KubeVirt>({ spec: { configuration: { supportContainerResources } } });
  const { spec } = attachmentPod(vmiOf([]), launcher, [volume('data')], kubeVirt);
  assert.deepEqual(spec.containers[0]?.resources, {
    limits: { cpu: '200m', memory: '80M' },
    requests: { cpu: '20m', memory: '8M' },
  });
});
