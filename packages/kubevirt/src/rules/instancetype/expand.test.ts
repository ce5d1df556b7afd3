import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  InstancetypeSpec,
  PreferenceSpec,
  VirtualMachine,
  VirtualMachineInstanceSpec,
} from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../machine-defaults/cluster-config.ts';
import { conflictCauses, conflictsMessage, startConflictsMessage } from './conflicts.ts';
import {
  type ApplyInput,
  applyAtStart,
  applyInstancetype,
  expandVirtualMachine,
  keepPreferenceInVirtualMachine,
} from './expand.ts';

type Spec = Partial<Omit<VirtualMachineInstanceSpec, 'domain'>> & {
  domain?: Partial<VirtualMachineInstanceSpec['domain']> | undefined;
};
const config = clusterConfigOf(undefined);
const small: InstancetypeSpec = { cpu: { guest: 2 }, memory: { guest: '4Gi' } };
const type = (more: Partial<InstancetypeSpec> = {}): InstancetypeSpec => ({ ...small, ...more });

const apply = (input: Omit<ApplyInput, 'spec'> & { spec?: Spec }) =>
  applyInstancetype({ ...input, spec: (input.spec ?? {}) as VirtualMachineInstanceSpec });
const applied = (input: Parameters<typeof apply>[0]) => {
  const result = apply(input);
  assert.ok(result.ok, result.ok ? '' : conflictsMessage(result.conflicts));
  return result;
};
const conflicts = (input: Parameters<typeof apply>[0]): string[] => {
  const result = apply(input);
  return result.ok ? [] : result.conflicts.map(({ path }) => path);
};

describe('an instance type without a preference', () => {
  it('gives processors as sockets and memory, and makes domain and devices', () => {
    const { spec, metadata } = applied({ instancetype: type() });
    assert.deepEqual(spec, {
      domain: {
        cpu: { cores: 1, sockets: 2, threads: 1 },
        memory: { guest: '4Gi' },
        devices: {},
        resources: {},
      },
    });
    assert.deepEqual(metadata, {});
  });

  const fields: [string, Partial<InstancetypeSpec>, (spec: VirtualMachineInstanceSpec) => unknown, unknown][] = [
    ['model', { cpu: { guest: 1, model: 'host-model' } }, (s) => s.domain.cpu?.model, 'host-model'],
    ['dedicated', { cpu: { guest: 1, dedicatedCPUPlacement: true } }, (s) => s.domain.cpu?.dedicatedCpuPlacement, true],
    [
      'dedicated false is nothing',
      { cpu: { guest: 1, dedicatedCPUPlacement: false } },
      (s) => Object.hasOwn(s.domain.cpu!, 'dedicatedCpuPlacement'),
      false,
    ],
    [
      'isolateEmulatorThread',
      { cpu: { guest: 1, isolateEmulatorThread: true } },
      (s) => s.domain.cpu?.isolateEmulatorThread,
      true,
    ],
    [
      'numa',
      { cpu: { guest: 1, numa: { guestMappingPassthrough: {} } } },
      (s) => s.domain.cpu?.numa,
      { guestMappingPassthrough: {} },
    ],
    ['realtime', { cpu: { guest: 1, realtime: { mask: '0-1' } } }, (s) => s.domain.cpu?.realtime, { mask: '0-1' }],
    ['maxSockets', { cpu: { guest: 1, maxSockets: 6 } }, (s) => s.domain.cpu?.maxSockets, 6],
    ['canonical memory', { memory: { guest: '1.5Gi' } }, (s) => s.domain.memory?.guest, '1536Mi'],
    ['memory as a number', { memory: { guest: 1073741824 } }, (s) => s.domain.memory?.guest, '1073741824'],
    [
      'hugepages',
      { memory: { guest: '1Gi', hugepages: { pageSize: '2Mi' } } },
      (s) => s.domain.memory?.hugepages,
      { pageSize: '2Mi' },
    ],
    ['maxGuest', { memory: { guest: '1Gi', maxGuest: '2048Mi' } }, (s) => s.domain.memory?.maxGuest, '2Gi'],
    [
      'overcommit of 50 %',
      { memory: { guest: '512Mi', overcommitPercent: 50 } },
      (s) => s.domain.resources?.requests,
      { memory: '256Mi' },
    ],
    // In single precision: 1 - 0.8 is 0.199999988 there, and exact arithmetic would give 107374182.
    [
      'overcommit of 15 %',
      { memory: { guest: '512Mi', overcommitPercent: 15 } },
      (s) => s.domain.resources?.requests,
      { memory: '456340288' },
    ],
    [
      'overcommit of 80 %',
      { memory: { guest: '512Mi', overcommitPercent: 80 } },
      (s) => s.domain.resources?.requests,
      { memory: '107374176' },
    ],
    ['nodeSelector', { nodeSelector: { a: 'b' } }, (s) => s.nodeSelector, { a: 'b' }],
    ['schedulerName', { schedulerName: 'mine' }, (s) => s.schedulerName, 'mine'],
    ['ioThreadsPolicy', { ioThreadsPolicy: 'auto' }, (s) => s.domain.ioThreadsPolicy, 'auto'],
    [
      'ioThreads',
      { ioThreads: { supplementalPoolThreadCount: 4 } },
      (s) => s.domain.ioThreads,
      { supplementalPoolThreadCount: 4 },
    ],
    ['launchSecurity', { launchSecurity: { sev: {} } }, (s) => s.domain.launchSecurity, { sev: {} }],
    [
      'gpus',
      { gpus: [{ name: 'g', deviceName: 'v/g' }] },
      (s) => s.domain.devices.gpus,
      [{ name: 'g', deviceName: 'v/g' }],
    ],
    [
      'hostDevices',
      { hostDevices: [{ name: 'd', deviceName: 'v/d' }] },
      (s) => s.domain.devices.hostDevices,
      [{ name: 'd', deviceName: 'v/d' }],
    ],
  ];
  for (const [name, more, read, expected] of fields)
    it(name, () => assert.deepEqual(read(applied({ instancetype: type(more) }).spec), expected));

  it('adds annotations and leaves equal ones alone', () => {
    const { metadata } = applied({
      instancetype: type({ annotations: { a: '1', b: '2' } }),
      metadata: { annotations: { a: '1', c: '3' } },
    });
    assert.deepEqual(metadata.annotations, { a: '1', c: '3', b: '2' });
  });
});

describe('conflicts', () => {
  const full: InstancetypeSpec = {
    cpu: {
      guest: 2,
      model: 'm',
      dedicatedCPUPlacement: false,
      isolateEmulatorThread: false,
      numa: {},
      realtime: {},
    },
    memory: { guest: '1Gi', hugepages: { pageSize: '2Mi' }, maxGuest: '2Gi' },
    nodeSelector: { a: 'b' },
    schedulerName: 's',
    gpus: [{ name: 'g' }],
    hostDevices: [{ name: 'd' }],
    ioThreads: { supplementalPoolThreadCount: 1 },
    ioThreadsPolicy: 'auto',
    launchSecurity: {},
    annotations: { k: '1', 'a.b/c': '1' },
  };
  // S-175
  it('are all reported, in the order of the steps; of memory only the first', () => {
    const spec: Spec = {
      nodeSelector: {},
      schedulerName: 'x',
      domain: {
        cpu: {
          cores: 1,
          sockets: 1,
          threads: 1,
          model: 'n',
          dedicatedCpuPlacement: true,
          isolateEmulatorThread: true,
          numa: {},
          realtime: {},
        },
        memory: { guest: '1Gi', hugepages: {}, maxGuest: '1Gi' },
        resources: { requests: { cpu: 1, memory: '1Gi' }, limits: { cpu: 1, memory: '1Gi' } },
        ioThreads: { supplementalPoolThreadCount: 0 },
        ioThreadsPolicy: 'shared',
        launchSecurity: {},
        devices: { gpus: [{ name: 'a' }], hostDevices: [{ name: 'a' }] },
      },
    };
    const base = 'spec.template.spec';
    assert.deepEqual(conflicts({ instancetype: full, spec, metadata: { annotations: { k: '2', 'a.b/c': '2' } } }), [
      `${base}.nodeSelector`,
      `${base}.schedulerName`,
      `${base}.domain.resources.requests.cpu`,
      `${base}.domain.resources.limits.cpu`,
      `${base}.domain.cpu.sockets`,
      `${base}.domain.cpu.cores`,
      `${base}.domain.cpu.threads`,
      `${base}.domain.cpu.model`,
      `${base}.domain.cpu.dedicatedCPUPlacement`,
      `${base}.domain.cpu.isolateEmulatorThread`,
      `${base}.domain.cpu.numa`,
      `${base}.domain.cpu.realtime`,
      `${base}.domain.memory.guest`,
      `${base}.domain.ioThreads.supplementalPoolThreadCount`,
      `${base}.domain.ioThreadsPolicy`,
      `${base}.domain.launchSecurity`,
      `${base}.domain.devices.gpus`,
      `${base}.domain.devices.hostDevices`,
      'annotations.a.b/c',
      'annotations.k',
    ]);
  });

  const memory: [string, Spec['domain'], string][] = [
    ['guest', { memory: { guest: '1Gi', hugepages: {} } }, 'memory.guest'],
    ['hugepages', { memory: { hugepages: {}, maxGuest: '1Gi' } }, 'memory.hugepages'],
    ['maxGuest', { memory: { maxGuest: '1Gi' }, resources: { requests: { memory: 1 } } }, 'memory.maxGuest'],
    ['requests', { resources: { requests: { memory: 1 }, limits: { memory: 1 } } }, 'resources.requests.memory'],
    ['limits', { resources: { limits: { memory: 1 } } }, 'resources.limits.memory'],
  ];
  for (const [name, domain, path] of memory)
    it(`memory ${name}`, () =>
      assert.deepEqual(conflicts({ instancetype: full, spec: { domain } }), [`spec.template.spec.domain.${path}`]));

  const fine: [string, Partial<InstancetypeSpec>, Spec][] = [
    ['zero and empty values say nothing', {}, { domain: { cpu: { cores: 0, sockets: 0, threads: 0, model: '' } } }],
    ['a model that the type leaves open', {}, { domain: { cpu: { model: 'EPYC' } } }],
    ['dedicated placement that the type leaves open', {}, { domain: { cpu: { dedicatedCpuPlacement: true } } }],
    ['maxSockets, silently overwritten', { cpu: { guest: 1, maxSockets: 3 } }, { domain: { cpu: { maxSockets: 9 } } }],
    ['hugepages that the type leaves open', {}, { domain: { memory: { hugepages: { pageSize: '2Mi' } } } }],
    ['a selector beside a type without entries', { nodeSelector: {} }, { nodeSelector: { a: 'b' } }],
    ['empty lists of devices', { gpus: [{ name: 'a' }] }, { domain: { devices: { gpus: [] } } }],
  ];
  for (const [name, more, spec] of fine)
    it(`none: ${name}`, () => assert.deepEqual(conflicts({ instancetype: type(more), spec }), []));

  it('have the texts of upstream', () => {
    const found = [{ path: 'spec.template.spec.domain.memory.guest' }, { path: 'annotations.k' }];
    assert.equal(
      conflictsMessage(found),
      'VM field(s) spec.template.spec.domain.memory.guest, annotations.k conflicts with selected instance type',
    );
    assert.equal(
      startConflictsMessage([{ path: 'spec.domain.memory.guest' }]),
      'VMI conflicts with instancetype spec in fields: [spec.domain.memory.guest]',
    );
    assert.deepEqual(conflictCauses(found)[1], {
      type: 'FieldValueInvalid',
      field: 'annotations.k',
      detail: 'VM field(s) annotations.k conflicts with selected instance type',
    });
  });
  it('keep the preference away', () => {
    const result = apply({
      instancetype: type(),
      preference: { machine: { preferredMachineType: 'q35' } },
      spec: { domain: { memory: { guest: '1Gi' } } },
    });
    assert.equal(result.ok, false);
  });
});

const machine = (spec: Spec, more: Partial<VirtualMachine['spec']> = {}): VirtualMachine => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default' },
  spec: {
    runStrategy: 'Halted',
    instancetype: { name: 'small' },
    preference: { name: 'linux', kind: 'VirtualMachinePreference' },
    ...more,
    template: { spec: spec as VirtualMachineInstanceSpec },
  },
});

describe('expandVirtualMachine()', () => {
  const virtio: PreferenceSpec = {
    devices: { preferredDiskBus: 'virtio', preferredInterfaceModel: 'virtio', preferredAutoattachInputDevice: true },
    features: { preferredSmm: {} },
    requirements: { cpu: { guest: 1 } },
  };
  it('adds disks and the default network before the layers, defaults after, and drops the matchers', () => {
    const vm = machine({
      volumes: [
        { name: 'root', containerDisk: { image: 'x:1' } },
        { name: 'init', cloudInitNoCloud: { userData: '#' } },
      ],
      domain: { devices: { disks: [{ name: 'init', cdrom: {} }] } },
    });
    vm.status = { instancetypeRef: { name: 'small' }, preferenceRef: { name: 'linux' }, created: true };
    const result = expandVirtualMachine(vm, { instancetype: small, preference: virtio }, config);
    assert.ok(result.ok);
    assert.deepEqual(result.vm.spec, {
      runStrategy: 'Halted',
      template: {
        metadata: {},
        spec: {
          architecture: 'amd64',
          evictionStrategy: 'None',
          domain: {
            cpu: { cores: 1, sockets: 2, threads: 1 },
            memory: { guest: '4Gi' },
            machine: { type: 'q35' },
            features: { acpi: {}, smm: {} },
            resources: {},
            devices: {
              autoattachInputDevice: true,
              disks: [
                { name: 'init', cdrom: {} },
                { name: 'root', disk: { bus: 'virtio' } },
              ],
              interfaces: [{ name: 'default', bridge: {}, model: 'virtio' }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: [
            { name: 'root', containerDisk: { image: 'x:1', imagePullPolicy: 'IfNotPresent' } },
            { name: 'init', cloudInitNoCloud: { userData: '#' } },
          ],
        },
      },
    });
    assert.deepEqual(result.vm.status, { created: true });
  });
  it('leaves its argument and a machine without matchers alone', () => {
    const vm = Object.freeze(machine({ domain: { devices: {} } }));
    const before = structuredClone(vm);
    expandVirtualMachine(vm, { instancetype: small }, config);
    assert.deepEqual(vm, before);
    const { instancetype: _i, preference: _p, ...spec } = vm.spec;
    const plain = expandVirtualMachine({ ...vm, spec }, {}, config);
    assert.ok(plain.ok);
    assert.deepEqual(plain.vm.spec.template.spec, { domain: { devices: {}, resources: {} } });
  });
  it('tells the conflicts', () => {
    const vm = machine({ domain: { cpu: { cores: 2, sockets: 1 }, devices: {} } });
    const result = expandVirtualMachine(vm, { instancetype: small }, config);
    assert.ok(!result.ok);
    assert.equal(
      conflictsMessage(result.conflicts),
      'VM field(s) spec.template.spec.domain.cpu.sockets, spec.template.spec.domain.cpu.cores conflicts with selected instance type',
    );
  });
  // S-241
  it('leaves a topology written in part, and the pull policy of a kernel, as they are', () => {
    const firmware = { kernelBoot: { container: { image: 'k', kernelPath: '/k' } } };
    const vm = machine({ domain: { devices: {}, cpu: { cores: 2 }, firmware } });
    const result = expandVirtualMachine(vm, { preference: {} }, config);
    assert.ok(result.ok);
    const { domain } = result.vm.spec.template.spec!;
    assert.deepEqual(domain.cpu, { cores: 2 });
    assert.deepEqual(domain.firmware, firmware);
  });
  // S-241
  it('writes metadata, status and claims as typed objects are written', () => {
    const vm = machine({ domain: { devices: {} } });
    const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2048Mi' } } };
    Object.assign(vm.metadata, { labels: {}, annotations: { a: 'b' }, creationTimestamp: null });
    vm.status = {
      created: false,
      ready: false,
      observedGeneration: 0,
      desiredGeneration: 2,
      printableStatus: 'Stopped',
    };
    vm.spec.dataVolumeTemplates = [
      { metadata: { name: 'a', annotations: {} }, spec: { storage: { storageClassName: 'x' }, source: { blank: {} } } },
      { metadata: { name: 'b' }, spec: { pvc: claim } },
    ] as NonNullable<typeof vm.spec.dataVolumeTemplates>;
    const result = expandVirtualMachine(vm, { preference: {} }, config);
    assert.ok(result.ok);
    assert.deepEqual(result.vm.metadata, { name: 'vm', namespace: 'default', annotations: { a: 'b' } });
    assert.deepEqual(result.vm.status, { desiredGeneration: 2, printableStatus: 'Stopped' });
    assert.deepEqual(result.vm.spec.dataVolumeTemplates, [
      { metadata: { name: 'a' }, spec: { storage: { storageClassName: 'x', resources: {} }, source: { blank: {} } } },
      { metadata: { name: 'b' }, spec: { pvc: { ...claim, resources: { requests: { storage: '2Gi' } } } } },
    ]);
  });
  it('drops what is null or an empty list beside the template', () => {
    const open = { instancetype: null, preference: null, dataVolumeTemplates: [], running: null };
    const vm = machine({ domain: { devices: {} } }, open as unknown as Partial<VirtualMachine['spec']>);
    const result = expandVirtualMachine(vm, {}, config);
    assert.ok(result.ok);
    assert.deepEqual(Object.keys(result.vm.spec), ['runStrategy', 'template']);
  });
  it('drops zero values and writes quantities canonically', () => {
    const vm = machine(
      {
        schedulerName: '',
        nodeSelector: {},
        volumes: [{ name: 'e', emptyDisk: { capacity: '2048Mi' } }],
        domain: {
          cpu: { cores: 0, model: '', dedicatedCpuPlacement: false },
          devices: { disks: [], disableHotplug: false, autoattachMemBalloon: false },
          resources: { requests: {} },
          features: {},
        },
      },
      {},
    );
    const result = expandVirtualMachine(vm, { preference: {} }, config);
    assert.ok(result.ok);
    const spec = result.vm.spec.template.spec!;
    assert.deepEqual(spec.domain.cpu, { cores: 1, sockets: 1, threads: 1 });
    assert.deepEqual(spec.domain.devices.disks, [{ name: 'e' }]);
    assert.equal(spec.domain.devices.autoattachMemBalloon, false);
    assert.deepEqual(spec.domain.features, { acpi: {} });
    assert.equal(spec.volumes?.[0]?.emptyDisk?.capacity, '2Gi');
    for (const gone of ['schedulerName', 'nodeSelector']) assert.ok(!Object.hasOwn(spec, gone), gone);
    assert.ok(!Object.hasOwn(spec.domain.devices, 'disableHotplug'));
  });
});

describe('applyAtStart()', () => {
  const start = (vm: VirtualMachine, layers: { instancetype?: InstancetypeSpec; preference?: PreferenceSpec }) => {
    const spec = structuredClone(vm.spec.template.spec!);
    const metadata: { annotations?: Record<string, string> } = {};
    return { found: applyAtStart({ vm, spec, metadata, config, ...layers }), spec, metadata };
  };
  // S-175
  // Compat KubeVirt's API, P1, yes: order of preferences and autoattach at start
  it('applies the autoattach preferences before the input device and the network follow from them', () => {
    const preference: PreferenceSpec = {
      devices: {
        preferredAutoattachInputDevice: true,
        preferredAutoattachPodInterface: false,
        preferredInputBus: 'virtio',
        preferredInputType: 'keyboard',
      },
    };
    const { spec, found } = start(machine({ domain: { devices: {} } }), { preference });
    assert.deepEqual(found, []);
    assert.deepEqual(spec.domain.devices, {
      autoattachPodInterface: false,
      autoattachInputDevice: true,
      inputs: [{ name: 'default-0', type: 'keyboard', bus: 'virtio' }],
    });
    assert.equal(spec.networks, undefined);
  });
  it('lets the machine keep its own word on autoattach', () => {
    const { spec } = start(machine({ domain: { devices: { autoattachInputDevice: false } } }), {
      preference: { devices: { preferredAutoattachInputDevice: true } },
    });
    assert.equal(spec.domain.devices.inputs, undefined);
  });
  it('says where the instance comes from', () => {
    const { metadata } = start(machine({}), { instancetype: small, preference: {} });
    assert.deepEqual(metadata.annotations, {
      'kubevirt.io/cluster-instancetype-name': 'small',
      'kubevirt.io/preference-name': 'linux',
    });
  });
  it('tells conflicts below spec', () => {
    const { found } = start(machine({ domain: { memory: { guest: '1Gi' }, devices: {} } }), { instancetype: small });
    assert.deepEqual(found, [{ path: 'spec.domain.memory.guest' }]);
  });
});

it('keepPreferenceInVirtualMachine() writes architecture, machine type and storage class where they are open', () => {
  const vm = machine({}, {
    dataVolumeTemplates: [
      { metadata: { name: 'a' }, spec: { pvc: {} } },
      { metadata: { name: 'b' }, spec: { storage: { storageClassName: 'own' } } },
    ],
  } as unknown as Partial<VirtualMachine['spec']>);
  keepPreferenceInVirtualMachine(vm, {
    preferredArchitecture: 'arm64',
    machine: { preferredMachineType: 'virt-1' },
    volumes: { preferredStorageClassName: 'fast' },
  });
  assert.equal(vm.spec.template.spec?.architecture, 'arm64');
  assert.equal(vm.spec.template.spec?.domain.machine?.type, 'virt-1');
  assert.deepEqual(
    vm.spec.dataVolumeTemplates?.map(({ spec }) => spec),
    [{ pvc: { storageClassName: 'fast' } }, { storage: { storageClassName: 'own' } }],
  );
});
