import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PreferenceSpec, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { applyInstancetype } from './expand.ts';

type Domain = Partial<VirtualMachineInstanceSpec['domain']>;
type Devices = VirtualMachineInstanceSpec['domain']['devices'];

const spec = (domain: Domain, more: Partial<VirtualMachineInstanceSpec> = {}): VirtualMachineInstanceSpec => ({
  ...more,
  domain: { devices: {}, ...domain },
});
const apply = (preference: PreferenceSpec, own: VirtualMachineInstanceSpec, annotations?: Record<string, string>) => {
  const result = applyInstancetype({ preference, spec: own, metadata: annotations ? { annotations } : {} });
  assert.ok(result.ok);
  return result;
};

describe('a preference', () => {
  const devices: [name: string, preferred: NonNullable<PreferenceSpec['devices']>, own: Devices, expected: Devices][] =
    [
      [
        'fills the autoattach switches that are open',
        {
          preferredAutoattachGraphicsDevice: false,
          preferredAutoattachMemBalloon: false,
          preferredAutoattachPodInterface: true,
          preferredAutoattachSerialConsole: true,
          preferredAutoattachInputDevice: true,
        },
        { autoattachGraphicsDevice: true, autoattachPodInterface: false },
        {
          autoattachGraphicsDevice: true,
          autoattachMemBalloon: false,
          autoattachPodInterface: false,
          autoattachSerialConsole: true,
          autoattachInputDevice: true,
        },
      ],
      ['overrides disableHotplug', { preferredDisableHotplug: false }, { disableHotplug: true }, {}],
      ['switches hotplug off', { preferredDisableHotplug: true }, {}, { disableHotplug: true }],
      [
        'fills switches of virtio',
        {
          preferredUseVirtioTransitional: true,
          preferredBlockMultiQueue: true,
          preferredNetworkInterfaceMultiQueue: true,
        },
        { blockMultiQueue: false },
        { blockMultiQueue: false, useVirtioTransitional: true, networkInterfaceMultiqueue: true },
      ],
      ['adds no sound card', { preferredSoundModel: 'ac97' }, {}, {}],
      [
        'gives a sound card its model',
        { preferredSoundModel: 'ac97' },
        { sound: { name: 's' } },
        { sound: { name: 's', model: 'ac97' } },
      ],
      [
        'keeps the model of a sound card',
        { preferredSoundModel: 'ac97' },
        { sound: { name: 's', model: 'ich9' } },
        { sound: { name: 's', model: 'ich9' } },
      ],
      [
        'adds rng and tpm',
        { preferredRng: {}, preferredTPM: { persistent: true } },
        {},
        { rng: {}, tpm: { persistent: true } },
      ],
      [
        'leaves a tpm alone',
        { preferredTPM: { persistent: true } },
        { tpm: { enabled: false } },
        { tpm: { enabled: false } },
      ],
      ['adds a display adapter', { preferredVideoType: 'virtio' }, {}, { video: { type: 'virtio' } }],
      ['fills a display adapter', { preferredVideoType: 'virtio' }, { video: {} }, { video: { type: 'virtio' } }],
      [
        'keeps a display adapter',
        { preferredVideoType: 'virtio' },
        { video: { type: 'vga' } },
        { video: { type: 'vga' } },
      ],
      ['adds a panic device', { preferredPanicDeviceModel: 'hyperv' }, {}, { panicDevices: [{ model: 'hyperv' }] }],
      [
        'fills panic devices',
        { preferredPanicDeviceModel: 'hyperv' },
        { panicDevices: [{}, { model: 'isa' }] },
        { panicDevices: [{ model: 'hyperv' }, { model: 'isa' }] },
      ],
      [
        'fills inputs',
        { preferredInputBus: 'virtio', preferredInputType: 'keyboard' },
        {
          inputs: [
            { name: 'a', type: '' },
            { name: 'b', type: 'tablet', bus: 'usb' },
          ],
        },
        {
          inputs: [
            { name: 'a', type: 'keyboard', bus: 'virtio' },
            { name: 'b', type: 'tablet', bus: 'usb' },
          ],
        },
      ],
      [
        'fills plain disks, and the I/O thread of virtio ones only',
        {
          preferredDiskBus: 'virtio',
          preferredCdromBus: 'scsi',
          preferredLunBus: 'scsi',
          preferredDiskCache: 'none',
          preferredDiskIO: 'native',
          preferredDiskBlockSize: { matchVolume: {} },
          preferredDiskDedicatedIoThread: true,
        },
        {
          disks: [
            { name: 'bare' },
            {
              name: 'own',
              disk: { bus: 'sata' },
              cache: 'writeback',
              io: 'threads',
              blockSize: { matchVolume: { enabled: false } },
            },
            { name: 'cd', cdrom: {} },
            { name: 'lun', lun: {} },
            { name: 'threadless', disk: {}, dedicatedIOThread: false },
          ],
        },
        {
          disks: [
            {
              name: 'bare',
              disk: { bus: 'virtio' },
              blockSize: { matchVolume: {} },
              cache: 'none',
              io: 'native',
              dedicatedIOThread: true,
            },
            {
              name: 'own',
              disk: { bus: 'sata' },
              cache: 'writeback',
              io: 'threads',
              blockSize: { matchVolume: { enabled: false } },
            },
            { name: 'cd', cdrom: { bus: 'scsi' } },
            { name: 'lun', lun: { bus: 'scsi' } },
            {
              name: 'threadless',
              disk: { bus: 'virtio' },
              dedicatedIOThread: false,
              blockSize: { matchVolume: {} },
              cache: 'none',
              io: 'native',
            },
          ],
        },
      ],
      [
        'makes bare disks plain ones even without a bus',
        {},
        { disks: [{ name: 'a' }] },
        { disks: [{ name: 'a', disk: {} }] },
      ],
    ];
  for (const [name, preferred, own, expected] of devices)
    it(name, () =>
      assert.deepEqual(apply({ devices: preferred }, spec({ devices: own })).spec.domain.devices, expected),
    );

  it('without devices leaves disks alone', () => {
    const own = spec({ devices: { disks: [{ name: 'a' }] } });
    assert.deepEqual(apply({ machine: {} }, own).spec.domain.devices, { disks: [{ name: 'a' }] });
  });
  it('binds what is unbound on the pod network by masquerade, and fills models', () => {
    const own = spec(
      {
        devices: {
          interfaces: [
            { name: 'pod' },
            { name: 'bridged', bridge: {} },
            { name: 'plugged', binding: { name: 'x' } },
            { name: 'multus', model: 'e1000' },
            { name: 'nowhere' },
          ],
        },
      },
      {
        networks: [
          { name: 'pod', pod: {} },
          { name: 'bridged', pod: {} },
          { name: 'plugged', pod: {} },
          { name: 'multus', multus: { networkName: 'n' } },
        ],
      },
    );
    const preference = { devices: { preferredInterfaceMasquerade: {}, preferredInterfaceModel: 'virtio' } };
    assert.deepEqual(apply(preference, own).spec.domain.devices.interfaces, [
      { name: 'pod', model: 'virtio', masquerade: {} },
      { name: 'bridged', bridge: {}, model: 'virtio' },
      { name: 'plugged', binding: { name: 'x' }, model: 'virtio' },
      { name: 'multus', model: 'e1000' },
      { name: 'nowhere', model: 'virtio' },
    ]);
  });

  const domains: [name: string, preference: PreferenceSpec, own: Domain, expected: Domain][] = [
    [
      'adds processor features whose name is new',
      { cpu: { preferredCPUFeatures: [{ name: 'a', policy: 'require' }, { name: 'b' }] } },
      { cpu: { features: [{ name: 'a', policy: 'disable' }] } },
      { cpu: { features: [{ name: 'a', policy: 'disable' }, { name: 'b' }] } },
    ],
    [
      'adds processor features where no processors are given',
      { cpu: { preferredCPUFeatures: [{ name: 'a' }] } },
      {},
      { cpu: { features: [{ name: 'a' }] } },
    ],
    ['makes acpi appear with any feature', { features: {} }, {}, { features: { acpi: {} } }],
    [
      'overrides acpi and keeps the other features',
      {
        features: {
          preferredAcpi: { enabled: false },
          preferredApic: { enabled: true },
          preferredKvm: { hidden: true },
          preferredPvspinlock: { enabled: true },
          preferredSmm: {},
        },
      },
      { features: { acpi: { enabled: true }, apic: { endOfInterrupt: true }, smm: { enabled: false } } },
      {
        features: {
          acpi: { enabled: false },
          apic: { endOfInterrupt: true },
          smm: { enabled: false },
          kvm: { hidden: true },
          pvspinlock: { enabled: true },
        },
      },
    ],
    [
      'fills Hyper-V member by member',
      { features: { preferredHyperv: { relaxed: {}, spinlocks: { spinlocks: 8191 }, synictimer: { direct: {} } } } },
      { features: { hyperv: { spinlocks: { spinlocks: 4096 } } } },
      {
        features: {
          acpi: {},
          hyperv: { relaxed: {}, spinlocks: { spinlocks: 4096 }, synictimer: { direct: {} } },
        },
      },
    ],
    [
      'keeps Hyper-V away from a guest that passes all of it through',
      { features: { preferredHyperv: { relaxed: {} } } },
      { features: { hypervPassthrough: { enabled: true } } },
      { features: { hypervPassthrough: { enabled: true }, acpi: {} } },
    ],
    ['makes an empty boot loader', { firmware: {} }, {}, { firmware: { bootloader: {} } }],
    [
      'boots by BIOS with its serial console',
      { firmware: { preferredUseBios: true, preferredUseBiosSerial: true, preferredEfi: {} } },
      {},
      { firmware: { bootloader: { bios: { useSerial: true } } } },
    ],
    [
      'gives an own BIOS the serial console',
      { firmware: { preferredUseBiosSerial: false } },
      { firmware: { bootloader: { bios: {} } } },
      { firmware: { bootloader: { bios: { useSerial: false } } } },
    ],
    [
      'takes preferredEfi before the deprecated pair',
      { firmware: { preferredEfi: { persistent: true }, preferredUseEfi: true, preferredUseSecureBoot: true } },
      { firmware: { uuid: 'u' } },
      { firmware: { uuid: 'u', bootloader: { efi: { persistent: true } } } },
    ],
    [
      'still reads the deprecated pair',
      { firmware: { preferredUseEfi: true, preferredUseSecureBoot: false } },
      {},
      { firmware: { bootloader: { efi: { secureBoot: false } } } },
    ],
    [
      'gives an own UEFI the deprecated secure boot',
      { firmware: { preferredEfi: { persistent: true }, preferredUseSecureBoot: true } },
      { firmware: { bootloader: { efi: {} } } },
      { firmware: { bootloader: { efi: { secureBoot: true } } } },
    ],
    [
      'fills the machine type',
      { machine: { preferredMachineType: 'q35' } },
      { machine: { type: '' } },
      { machine: { type: 'q35' } },
    ],
    [
      'keeps the machine type',
      { machine: { preferredMachineType: 'q35' } },
      { machine: { type: 'pc' } },
      { machine: { type: 'pc' } },
    ],
    ['makes an empty clock', { clock: {} }, {}, { clock: {} }],
    [
      'fills offset and timers',
      { clock: { preferredClockOffset: { utc: {} }, preferredTimer: { hpet: { present: false } } } },
      {},
      { clock: { utc: {}, timer: { hpet: { present: false } } } },
    ],
    [
      'keeps an own zone and own timers',
      { clock: { preferredClockOffset: { utc: {} }, preferredTimer: { hpet: { present: false } } } },
      { clock: { timezone: 'Europe/Brno', timer: { kvm: {} } } },
      { clock: { timezone: 'Europe/Brno', timer: { kvm: {} } } },
    ],
    ['fills launchSecurity', { preferredLaunchSecurity: { tdx: {} } }, {}, { launchSecurity: { tdx: {} } }],
    [
      'keeps launchSecurity',
      { preferredLaunchSecurity: { tdx: {} } },
      { launchSecurity: { sev: {} } },
      { launchSecurity: { sev: {} } },
    ],
  ];
  for (const [name, preference, own, expected] of domains)
    it(name, () => {
      const { devices: _, resources: __, ...domain } = apply(preference, spec(own)).spec.domain;
      assert.deepEqual(domain, expected);
    });

  it('fills subdomain, grace period, architecture and annotations', () => {
    const preference: PreferenceSpec = {
      preferredSubdomain: 'sub',
      preferredTerminationGracePeriodSeconds: 0,
      preferredArchitecture: 'arm64',
      annotations: { a: 'theirs', b: 'theirs' },
    };
    const open = apply(preference, spec({}), { a: 'own' });
    assert.equal(open.spec.subdomain, 'sub');
    assert.equal(open.spec.terminationGracePeriodSeconds, 0);
    assert.equal(open.spec.architecture, 'arm64');
    assert.deepEqual(open.metadata.annotations, { a: 'own', b: 'theirs' });
    const own = { subdomain: 'own', terminationGracePeriodSeconds: 5, architecture: 'amd64' };
    const { domain: _, ...kept } = apply(preference, spec({}, own)).spec;
    assert.deepEqual(kept, own);
  });
  it('shares nothing with what it is applied to', () => {
    const preference: PreferenceSpec = {
      devices: { preferredTPM: {} },
      clock: { preferredTimer: { hpet: {} } },
      features: { preferredHyperv: { spinlocks: {} } },
    };
    const { domain } = apply(preference, spec({})).spec;
    domain.devices.tpm!.persistent = true;
    domain.clock!.timer!.hpet!.present = false;
    domain.features!.hyperv!.spinlocks!.spinlocks = 1;
    assert.deepEqual(preference, {
      devices: { preferredTPM: {} },
      clock: { preferredTimer: { hpet: {} } },
      features: { preferredHyperv: { spinlocks: {} } },
    });
  });
});
