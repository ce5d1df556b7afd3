import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { ValueFamily } from '../../../../runtime/src/metrics/metric-family.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { objectLabels } from './sample.ts';
import { type MetricSource, type VmLookups, vmMetrics } from './vm-metrics.ts';
import { vmiMetrics } from './vmi-metrics.ts';
import { createVmiPhaseTimes } from './vmi-phase-times.ts';

const T = (second: number): string => `2030-01-01T00:00:${String(second).padStart(2, '0')}Z`;
const START = Date.parse(T(0)) / 1000;
const known = (name: string, vendor?: string): MetricSource => ({
  metadata: { name, ...(vendor && { labels: { 'instancetype.kubevirt.io/vendor': vendor } }) },
  spec: { cpu: { guest: 2 }, memory: { guest: '2Gi' } },
});
const NOTHING: VmLookups = { source: () => undefined, claim: () => undefined };
const samplesOf = (families: readonly ValueFamily[], name: string) =>
  families.find((family) => family.name === `kubevirt_${name}`)?.samples ?? [];

const vm = (part: Parameters<typeof partly<VirtualMachine>>[0]): VirtualMachine => partly<VirtualMachine>(part);
const web = vm({
  metadata: { name: 'web', namespace: 'shop', creationTimestamp: T(1), labels: { 'app.io/tier-1': 'front' } },
  spec: {
    instancetype: { name: 'u1.small' },
    preference: { name: 'mine', kind: 'VirtualMachinePreference' },
    template: {
      metadata: { annotations: { 'vm.kubevirt.io/os': 'debian13' } },
      spec: {
        domain: {
          devices: {
            interfaces: [
              { name: 'default', masquerade: {} },
              { name: 'lost', bridge: {} },
            ],
          },
        },
        networks: [{ name: 'default', pod: {} }],
        volumes: [
          { name: 'root', dataVolume: { name: 'web-root' } },
          { name: 'data', persistentVolumeClaim: { claimName: 'web-data' } },
        ],
      },
    },
    dataVolumeTemplates: [
      { metadata: { name: 'web-root' }, spec: { storage: { resources: { requests: { storage: '1Gi' } } } } },
    ],
  },
  status: {
    printableStatus: 'Paused',
    conditions: [
      { type: 'Ready', status: 'False', lastTransitionTime: T(5) },
      { type: 'Paused', status: 'True', lastTransitionTime: T(7) },
      { type: 'AgentConnected', status: 'True', lastTransitionTime: T(9) },
    ],
  },
});

test('vmMetrics() has upstream names and labels', () => {
  const families = vmMetrics([web], {
    source: (_vm, field) =>
      known(field === 'instancetype' ? 'u1.small' : 'mine', field === 'instancetype' ? 'kubevirt.io' : undefined),
    claim: (_namespace, name) =>
      name === 'web-data'
        ? partly<PersistentVolumeClaim>({ spec: { volumeMode: 'Block', resources: { requests: { storage: '2Gi' } } } })
        : undefined,
  });
  const of = { name: 'web', namespace: 'shop' };
  assert.deepEqual(samplesOf(families, 'vm_info'), [
    {
      labels: {
        ...of,
        ...{ os: 'debian13', workload: '<none>', flavor: '<none>', machine_type: '<none>' },
        ...{ instance_type: 'u1.small', preference: '<other>', status: 'paused', status_group: 'non_running' },
      },
      value: 1,
    },
  ]);
  const transition = (group: string) => samplesOf(families, `vm_${group}_status_last_transition_timestamp_seconds`);
  assert.deepEqual(transition('non_running'), [{ labels: of, value: START + 7 }]);
  assert.deepEqual(transition('running'), [{ labels: of, value: 0 }]);
  assert.deepEqual(samplesOf(families, 'vm_create_date_timestamp_seconds'), [{ labels: of, value: START + 1 }]);
  assert.deepEqual(samplesOf(families, 'vm_labels'), [{ labels: { ...of, label_app_io_tier_1: 'front' }, value: 1 }]);
  const requests = samplesOf(families, 'vm_resource_requests');
  const ofType = { resource: 'memory', unit: 'bytes', source: 'guest' };
  assert.deepEqual(
    requests.find(({ labels }) => labels['resource'] === 'memory'),
    { labels: { ...of, ...ofType }, value: 2 ** 31 },
    'what the instance type gives',
  );
  assert.deepEqual(
    requests.filter(({ labels }) => labels['resource'] === 'cpu').map(({ value }) => value),
    [1, 1, 2],
    'cores, threads, sockets',
  );
  assert.deepEqual(
    samplesOf(families, 'vm_disk_allocated_size_bytes').map(({ labels, value }) => [
      ...[labels['persistentvolumeclaim'], labels['volume_mode'], labels['device'], value],
    ]),
    [
      ['web-root', 'Filesystem', 'root', 2 ** 30],
      ['web-data', 'Block', 'data', 2 ** 31],
    ],
  );
  assert.deepEqual(samplesOf(families, 'vm_vnic_info'), [
    {
      labels: {
        ...of,
        ...{ vnic_name: 'default', binding_type: 'core', network: 'pod networking', binding_name: 'masquerade' },
      },
      value: 1,
    },
  ]);
});

test('vmMetrics(): limits and requests as they are written, the default processor, states that nobody knows', () => {
  const small = vm({
    metadata: { name: 'a', namespace: 'n' },
    spec: {
      template: {
        spec: {
          domain: {
            devices: {},
            resources: { requests: { memory: '64Mi', cpu: '500m' }, limits: { cpu: '1', memory: '128Mi' } },
          },
        },
      },
    },
    status: { printableStatus: 'Dancing' },
  });
  const families = vmMetrics(
    [small, vm({ metadata: { name: 'b' }, spec: { template: { spec: { domain: { devices: {} } } } } })],
    NOTHING,
  );
  const rows = (name: string) =>
    samplesOf(families, name).map(({ labels, value }) => [...Object.values(labels), value]);
  assert.deepEqual(rows('vm_resource_requests'), [
    ['a', 'n', 'memory', 'bytes', 'domain', 64 * 2 ** 20],
    ['a', 'n', 'cpu', 'cores', 'requests', 0.5],
    ['b', '', 'cpu', 'cores', 'default', 1],
    ['b', '', 'cpu', 'threads', 'default', 1],
    ['b', '', 'cpu', 'sockets', 'default', 1],
  ]);
  assert.deepEqual(rows('vm_resource_limits'), [
    ['a', 'n', 'memory', 'bytes', 128 * 2 ** 20],
    ['a', 'n', 'cpu', 'cores', 1],
  ]);
  assert.equal(samplesOf(families, 'vm_info')[0]?.labels['status_group'], '<unknown>');
});

test('objectLabels() makes names that Prometheus takes, at most 32 of them', () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`l${at}`, 'x']));
  assert.equal(Object.keys(objectLabels('p_', many)).length, 32);
  assert.deepEqual(objectLabels('p_', { 'a.b/c-d': '1', 'a-b/c-d': '2' }), { p_a_b_c_d: '2' });
  assert.deepEqual(objectLabels('p_', undefined), {});
});

test('vmiMetrics() has upstream names and labels', () => {
  const vmi = partly<VirtualMachineInstance>({
    metadata: {
      ...{ name: 'web', namespace: 'shop' },
      annotations: { 'kubevirt.io/cluster-instancetype-name': 'u1.small' },
      labels: { 'kubevirt.io/outdatedLauncherImage': '' },
    },
    spec: { evictionStrategy: 'LiveMigrate', domain: { devices: {} } },
    status: {
      ...{ phase: 'Running', nodeName: 'n1', machine: { type: 'pc-q35-7.2' }, memory: { memoryOverhead: '100Mi' } },
      guestOSInfo: { name: 'Debian', kernelRelease: '6.1', machine: 'x86_64', versionId: '13' },
      interfaces: [{ name: 'default', interfaceName: 'eth0', ipAddress: '100.64.0.1' }, { interfaceName: 'br0' }, {}],
    },
  });
  const asked: string[] = [];
  const families = vmiMetrics([vmi], {
    source: (_vmi, { field, scope }) => {
      asked.push(`${scope} ${field}`);
      return known('u1.small', 'redhat.com');
    },
    podName: () => 'virt-launcher-web',
    evictionStrategy: undefined,
  });
  assert.deepEqual(asked, ['cluster instancetype']);
  const of = { node: 'n1', namespace: 'shop', name: 'web' };
  assert.deepEqual(samplesOf(families, 'vmi_info')[0]?.labels, {
    ...of,
    ...{ phase: 'running', os: '<none>', workload: '<none>', flavor: '<none>' },
    ...{ instance_type: 'u1.small', preference: '<none>', guest_os_kernel_release: '6.1' },
    ...{ guest_os_machine: 'pc-q35-7.2', guest_os_arch: 'x86_64', guest_os_name: 'Debian', guest_os_version_id: '13' },
    ...{ outdated: 'true', vmi_pod: 'virt-launcher-web', evictable: 'false' },
  });
  assert.deepEqual(samplesOf(families, 'vmi_non_evictable'), [{ labels: of, value: 1 }]);
  assert.deepEqual(samplesOf(families, 'vmi_number_of_outdated'), [{ labels: {}, value: 1 }]);
  assert.deepEqual(
    samplesOf(families, 'vmi_status_addresses').map(({ labels }) => [
      labels['interface_name'],
      labels['address'],
      labels['type'],
    ]),
    [
      ['eth0', '100.64.0.1', 'ExternalInterface'],
      ['br0', '', 'SystemInterface'],
    ],
  );
  assert.equal(samplesOf(families, 'vmi_launcher_memory_overhead_bytes')[0]?.value, 100 * 2 ** 20);
});

test('createVmiPhaseTimes() counts each change of phase once, from the last phase, the creation and the deletion', () => {
  const times = createVmiPhaseTimes();
  const stamps: { phase: string; phaseTransitionTimestamp: string }[] = [];
  const at = (phase: string, second: number, deletionTimestamp?: string) => {
    stamps.push({ phase, phaseTransitionTimestamp: T(second) });
    return partly<VirtualMachineInstance>({
      metadata: { name: 'a', creationTimestamp: T(0), ...(deletionTimestamp && { deletionTimestamp }) },
      status: { phase: phase as 'Running', phaseTransitionTimestamps: [...stamps] as [] },
    });
  };
  const fresh = partly<VirtualMachineInstance>({ metadata: { name: 'a', creationTimestamp: T(0) }, status: {} });
  const walk = [fresh, at('Pending', 1), at('Running', 4), at('Running', 4), at('Succeeded', 20, T(18))];
  times.observe(undefined, walk[2]!);
  for (const [index, one] of walk.entries()) if (index > 0) times.observe(walk[index - 1], one);
  const seen = times
    .families()
    .map(({ name, samples }) => [
      name.replace('kubevirt_vmi_phase_transition_time_', ''),
      ...samples.map(
        ({ labels, durations }) => `${Object.values(labels).join('<')} ${durations.count} ${durations.sum}`,
      ),
    ]);
  assert.deepEqual(seen, [
    ['seconds', 'Pending< 1 1', 'Running<Pending 1 3', 'Succeeded<Running 1 16'],
    ['from_creation_seconds', 'Pending 1 1', 'Running 1 4', 'Succeeded 1 20'],
    ['from_deletion_seconds', 'Succeeded 1 2'],
  ]);
});
