import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeVirt, VirtualMachineInstance, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { clusterConfigOf } from './cluster-config.ts';
import { brokenHypervDependencies } from './feature-defaults.ts';
import { DefaultsError } from './implicit-devices.ts';
import { setInstanceDefaults, setInstanceSpecDefaults } from './instance-defaults.ts';

type Configuration = NonNullable<KubeVirt['spec']['configuration']>;

const configOf = (configuration: Configuration = {}) =>
  clusterConfigOf({ apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: {}, spec: { configuration } });

type Domain = Partial<VirtualMachineInstanceSpec['domain']>;

function defaulted(
  domain: Domain = {},
  { configuration, ...spec }: Partial<VirtualMachineInstanceSpec> & { configuration?: Configuration } = {},
  ownerReferences: NonNullable<VirtualMachineInstance['metadata']['ownerReferences']> = [],
): VirtualMachineInstance {
  const vmi: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'b', ownerReferences },
    spec: { ...spec, domain: { devices: {}, ...domain } },
  };
  setInstanceDefaults(vmi, configOf(configuration));
  return vmi;
}

// S-437
describe('processor topology', () => {
  type Topology = [sockets: number | undefined, cores: number | undefined, threads: number | undefined];
  const cases: [name: string, domain: Domain, expected: Topology][] = [
    ['nothing', {}, [1, 1, 1]],
    ['a limit becomes sockets', { resources: { limits: { cpu: 3 } } }, [3, 1, 1]],
    ['a request is rounded up', { resources: { requests: { cpu: '2500m' } } }, [3, 1, 1]],
    ['the limit wins over the request', { resources: { limits: { cpu: 4 }, requests: { cpu: 2 } } }, [4, 1, 1]],
    ['missing axes stay open', { cpu: { cores: 4 } }, [undefined, 4, undefined]],
    ['more processors than the field holds', { resources: { limits: { cpu: '1Ei' } } }, [2147483647, 1, 1]],
    ['a written topology stays', { cpu: { sockets: 2, cores: 3, threads: 2 } }, [2, 3, 2]],
  ];
  for (const [name, domain, [sockets, cores, threads]] of cases) {
    it(name, () => {
      const vmi = defaulted(domain);
      const cpu = vmi.spec.domain.cpu!;
      assert.deepEqual([cpu.sockets, cpu.cores, cpu.threads], [sockets, cores, threads]);
      const written = Object.entries({ sockets, cores, threads }).filter(([, value]) => value !== undefined);
      assert.deepEqual(vmi.status?.currentCPUTopology, Object.fromEntries(written));
    });
  }
  it('of the instance of a virtual machine has every axis: it may be given sockets later', () => {
    const vmi = defaulted({ cpu: { cores: 4 } }, {}, [
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'a', uid: 'u', controller: true },
    ]);
    const { cores, sockets, threads, maxSockets } = vmi.spec.domain.cpu!;
    assert.deepEqual({ cores, sockets, threads, maxSockets }, { cores: 4, sockets: 1, threads: 1, maxSockets: 4 });
  });
});

describe('setInstanceSpecDefaults(), as templates are validated and expanded', () => {
  const cases: [name: string, domain: Domain, expected: object][] = [
    ['fills a topology that nobody wrote', {}, { sockets: 1, cores: 1, threads: 1 }],
    ['takes it from the limit', { resources: { limits: { cpu: '2500m' } } }, { sockets: 3, cores: 1, threads: 1 }],
    ['leaves one written in part as it is', { cpu: { cores: 4 } }, { cores: 4 }],
    ['even beside an amount', { cpu: { threads: 2 }, resources: { limits: { cpu: 4 } } }, { threads: 2 }],
  ];
  for (const [name, domain, expected] of cases) {
    it(name, () => {
      const spec = { domain: { devices: {}, ...domain } };
      setInstanceSpecDefaults(spec, configOf());
      assert.deepEqual(spec.domain.cpu, expected);
    });
  }
  it('leaves the pull policy of a kernel to the instance', () => {
    const firmware = { kernelBoot: { container: { image: 'k', kernelPath: '/k' } } };
    const spec = { domain: { devices: {}, firmware: structuredClone(firmware) } };
    setInstanceSpecDefaults(spec, configOf());
    assert.deepEqual(spec.domain.firmware, firmware);
    assert.equal(defaulted({ firmware }).spec.domain.firmware?.kernelBoot?.container?.imagePullPolicy, 'Always');
  });
});

describe('guest memory', () => {
  const cases: [name: string, domain: Domain, expected: unknown][] = [
    ['written', { memory: { guest: '1Gi' }, resources: { requests: { memory: '2Gi' } } }, '1Gi'],
    ['from the request', { resources: { requests: { memory: '2Gi' }, limits: { memory: '3Gi' } } }, '2Gi'],
    ['from the limit', { resources: { limits: { memory: '3Gi' } } }, '3Gi'],
    ['from the page size', { memory: { hugepages: { pageSize: '2Mi' } } }, '2Mi'],
    ['nowhere', {}, undefined],
  ];
  for (const [name, domain, expected] of cases) {
    it(name, () => {
      const { spec, status } = defaulted(domain);
      assert.equal(spec.domain.memory?.guest, expected);
      assert.equal(status?.memory?.guestAtBoot, expected);
    });
  }
});

// S-437: A VirtualMachineInstance keeps the axes that it leaves open; what may be plugged follows from what is written,
//   memory from 1 GiB on.
describe('hot-plug limits', () => {
  const cases: [name: string, domain: Domain, configuration: Configuration, maxSockets: unknown, maxGuest: unknown][] =
    [
      ['four times', { cpu: { sockets: 2 }, memory: { guest: '1Gi' } }, {}, 8, '4Gi'],
      ['a number of bytes', { memory: { guest: 1073741824 } }, {}, 4, '4Gi'],
      ['no memory below 1 GiB', { memory: { guest: '1022Mi' } }, {}, 4, undefined],
      ['no sockets where none are written', { cpu: { cores: 2 }, memory: { guest: '1Gi' } }, {}, undefined, '4Gi'],
      [
        'but the maximum of the cluster',
        { cpu: { threads: 2 }, memory: { guest: '1Gi' } },
        { liveUpdateConfiguration: { maxCpuSockets: 6 } },
        6,
        '4Gi',
      ],
      [
        'by the ratio of the cluster',
        { memory: { guest: '1Gi' } },
        { liveUpdateConfiguration: { maxHotplugRatio: 2 } },
        2,
        '2Gi',
      ],
      [
        'by the maxima of the cluster',
        { memory: { guest: '1Gi' } },
        { liveUpdateConfiguration: { maxCpuSockets: 6, maxGuest: '8Gi' } },
        6,
        '8Gi',
      ],
      [
        'never below what the guest has',
        { cpu: { sockets: 9 }, memory: { guest: '1Gi' } },
        { liveUpdateConfiguration: { maxCpuSockets: 6 } },
        9,
        '4Gi',
      ],
      ['at most 512 processors', { cpu: { sockets: 16, cores: 16 }, memory: { guest: '1Gi' } }, {}, 32, '4Gi'],
      ['written limits stay', { cpu: { maxSockets: 3 }, memory: { guest: '1Gi', maxGuest: '2Gi' } }, {}, 3, '2Gi'],
      ['memory that is not aligned is not plugged', { memory: { guest: '1023M' } }, {}, 4, undefined],
      [
        'not when changes are staged',
        { memory: { guest: '1Gi' } },
        { vmRolloutStrategy: 'Stage' },
        undefined,
        undefined,
      ],
    ];
  for (const [name, domain, configuration, maxSockets, maxGuest] of cases) {
    it(name, () => {
      const { cpu, memory } = defaulted(domain, { configuration }).spec.domain;
      assert.equal(cpu?.maxSockets, maxSockets);
      assert.equal(memory?.maxGuest, maxGuest);
    });
  }
});

describe('machine and architecture', () => {
  // S-049: Admission: upstream's defaults and rules for the fields served here, each with a row of a table.
  it('is q35 on amd64', () => {
    const { spec } = defaulted();
    assert.equal(spec.architecture, 'amd64');
    assert.equal(spec.domain.machine?.type, 'q35');
    assert.equal(spec.domain.cpu?.model, 'host-model');
  });
  it('is virt with UEFI and virtio on arm64', () => {
    const { spec } = defaulted(
      { devices: { disks: [{ name: 'a' }, { name: 'b', cdrom: {} }] } },
      { architecture: 'arm64' },
    );
    assert.equal(spec.domain.machine?.type, 'virt');
    assert.deepEqual(spec.domain.firmware?.bootloader, { efi: { secureBoot: false } });
    assert.equal(spec.domain.devices.disks?.[0]?.disk?.bus, 'virtio');
    assert.equal(spec.domain.devices.disks?.[1]?.cdrom?.bus, 'scsi');
    assert.equal(spec.domain.cpu?.maxSockets, undefined);
  });
  it("has the host's processor on arm64, whatever the cluster says, and boots without signatures", () => {
    const { spec } = defaulted(
      { firmware: { bootloader: { efi: { persistent: true } } } },
      { architecture: 'arm64', configuration: { cpuModel: 'Haswell' } },
    );
    assert.equal(spec.domain.cpu?.model, 'host-passthrough');
    assert.deepEqual(spec.domain.firmware?.bootloader, { efi: { persistent: true, secureBoot: false } });
  });
  it('has no ACPI on s390x unless it is asked for', () => {
    assert.deepEqual(defaulted({}, { architecture: 's390x' }).spec.domain.features?.acpi, { enabled: false });
    const asked = defaulted({ features: { acpi: { enabled: true } } }, { architecture: 's390x' });
    assert.deepEqual(asked.spec.domain.features?.acpi, { enabled: true });
  });
  it('follows the settings of the cluster', () => {
    const { spec } = defaulted(
      {},
      {
        configuration: {
          cpuModel: 'Haswell',
          evictionStrategy: 'LiveMigrate',
          architectureConfiguration: { amd64: { machineType: 'pc-q35-9.0' } },
        },
      },
    );
    assert.deepEqual(
      [spec.domain.cpu?.model, spec.evictionStrategy, spec.domain.machine?.type],
      ['Haswell', 'LiveMigrate', 'pc-q35-9.0'],
    );
  });
  it('never leaves the eviction strategy open', () => assert.equal(defaulted().spec.evictionStrategy, 'None'));
});

describe('cpu request', () => {
  const cases: [name: string, domain: Domain, configuration: Configuration, expected: unknown][] = [
    ['the default of 100m is not written', {}, {}, undefined],
    ['another default is', {}, { cpuRequest: '250m' }, '250m'],
    ['not for dedicated processors', { cpu: { dedicatedCpuPlacement: true } }, { cpuRequest: '250m' }, undefined],
    ['a limit becomes the request', { resources: { limits: { cpu: 2 } } }, { cpuRequest: '250m' }, 2],
  ];
  for (const [name, domain, configuration, expected] of cases) {
    it(name, () =>
      assert.equal(defaulted(domain, { configuration }).spec.domain.resources?.requests?.['cpu'], expected),
    );
  }
});

describe('devices', () => {
  it('gives every volume a disk but a memory dump', () => {
    const { spec } = defaulted(
      { devices: { disks: [{ name: 'a', disk: { bus: 'virtio' } }], filesystems: [{ name: 'f', virtiofs: {} }] } },
      {
        volumes: [
          { name: 'a', emptyDisk: { capacity: '1Gi' } },
          { name: 'b', containerDisk: { image: 'x:1' } },
          { name: 'f', configMap: { name: 'c' } },
          { name: 'm', memoryDump: { claimName: 'c' } },
        ],
      },
    );
    assert.deepEqual(spec.domain.devices.disks, [
      { name: 'a', disk: { bus: 'virtio' } },
      { name: 'b', disk: { bus: 'sata' } },
    ]);
  });
  it('closes CD-ROM drives and makes them read-only', () => {
    const { spec } = defaulted({ devices: { disks: [{ name: 'a', cdrom: {} }] } });
    assert.deepEqual(spec.domain.devices.disks, [
      { name: 'a', cdrom: { bus: 'sata', readonly: true, tray: 'closed' } },
    ]);
  });
  it('pulls what may change', () => {
    const images = ['x', 'x:latest', 'x:1', 'host:5000/x:1', 'x@sha256:0'];
    const { spec } = defaulted(
      {},
      { volumes: images.map((image, i) => ({ name: `v${i}`, containerDisk: { image } })) },
    );
    assert.deepEqual(
      spec.volumes?.map(({ containerDisk }) => containerDisk?.imagePullPolicy),
      ['Always', 'Always', 'IfNotPresent', 'IfNotPresent', 'IfNotPresent'],
    );
  });
});

describe('default network', () => {
  const nic = (domain: Domain, spec: Parameters<typeof defaulted>[1] = {}) => {
    const vmi = defaulted(domain, spec);
    return [vmi.spec.domain.devices.interfaces, vmi.spec.networks];
  };
  const pod = [{ name: 'default', pod: {} }];
  it('is bridge unless the cluster says masquerade', () => {
    assert.deepEqual(nic({}), [[{ name: 'default', bridge: {} }], pod]);
    assert.deepEqual(nic({}, { configuration: { network: { defaultNetworkInterface: 'masquerade' } } }), [
      [{ name: 'default', masquerade: {} }],
      pod,
    ]);
  });
  it('is not added where something is listed, or unwanted', () => {
    assert.deepEqual(nic({ devices: { autoattachPodInterface: false } }), [undefined, undefined]);
    assert.deepEqual(nic({}, { networks: [{ name: 'x', pod: {} }] }), [undefined, [{ name: 'x', pod: {} }]]);
  });
  it('contradicts a cluster that forbids bridges', () => {
    assert.throws(
      () => nic({}, { configuration: { network: { permitBridgeInterfaceOnPodNetwork: false } } }),
      DefaultsError,
    );
  });
});

describe('switches', () => {
  it('are on when they are written without a value', () => {
    const { domain } = defaulted({
      features: {
        smm: {},
        apic: { enabled: false },
        hyperv: { relaxed: {}, spinlocks: {}, synictimer: { direct: {} } },
      },
      clock: { timer: { hpet: {}, pit: { present: false } } },
    }).spec;
    assert.deepEqual(domain.features, {
      acpi: { enabled: true },
      smm: { enabled: true },
      apic: { enabled: false },
      hyperv: {
        relaxed: { enabled: true },
        spinlocks: { enabled: true, spinlocks: 4096 },
        synictimer: { enabled: true, direct: { enabled: true } },
        synic: { enabled: true },
        vpindex: { enabled: true },
      },
    });
    assert.deepEqual(domain.clock?.timer, { hpet: { present: true }, pit: { present: false } });
  });
  it('adds what nested Hyper-V needs', () => {
    const { domain } = defaulted({ features: { hyperv: { evmcs: {} } } }).spec;
    assert.deepEqual(domain.features?.hyperv?.vapic, { enabled: true });
    assert.deepEqual(domain.cpu?.features, [{ name: 'vmx', policy: 'require' }]);
  });
  it('adds nothing for features that need nothing', () => {
    const { domain } = defaulted({ features: { hyperv: { relaxed: {}, runtime: {}, reset: {} } } }).spec;
    assert.deepEqual(Object.keys(domain.features?.hyperv ?? {}), ['relaxed', 'runtime', 'reset']);
  });
  it('takes vmx for nested Hyper-V even from a guest that was not to have it', () => {
    const cpu = { features: [{ name: 'monitor' }, { name: 'vmx', policy: 'disable' }] };
    const { domain } = defaulted({ cpu, features: { hyperv: { evmcs: {} } } }).spec;
    assert.deepEqual(domain.cpu?.features, [{ name: 'monitor' }, { name: 'vmx', policy: 'require' }]);
  });
  it('adds what it may of a chain that was cut', () => {
    const hyperv = { vpindex: { enabled: false }, synictimer: {}, evmcs: {} };
    const { domain } = defaulted({ features: { hyperv } }).spec;
    const on = Object.entries(domain.features?.hyperv ?? {}).filter(([, feature]) => feature.enabled);
    assert.deepEqual(on.map(([name]) => name).sort(), ['evmcs', 'synic', 'synictimer', 'vapic']);
    assert.deepEqual(brokenHypervDependencies(domain.features?.hyperv), [['synic', 'vpindex']]);
  });
  it('reports a need that was switched off', () => {
    const { domain } = defaulted({ features: { hyperv: { tlbflush: {}, vpindex: { enabled: false } } } }).spec;
    assert.deepEqual(brokenHypervDependencies(domain.features?.hyperv), [['tlbflush', 'vpindex']]);
  });
  it('fills probes', () => {
    const { readinessProbe } = defaulted({}, { readinessProbe: { tcpSocket: { port: 1 }, periodSeconds: 3 } }).spec;
    assert.deepEqual(readinessProbe, {
      tcpSocket: { port: 1 },
      periodSeconds: 3,
      timeoutSeconds: 1,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });
});
