import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { VirtualMachineInstance } from '../../kinds/kinds.ts';
import { diskLetters } from './disks.ts';
import { guestNetwork, podCard } from './interfaces.ts';
import type { MachinePlan, NodeFacts } from './machine-plan.ts';
import { machinePlan } from './plan.ts';

const FACTS: NodeFacts = {
  architecture: 'amd64',
  qemuVersion: '7.2.22',
  accelerator: 'tcg',
  machineTypes: ['pc-i440fx-7.2', 'pc-q35-6.2', 'pc-q35-7.2'],
  machineAliases: { q35: 'pc-q35-7.2', pc: 'pc-i440fx-7.2' },
  cpuModels: ['Haswell', 'max', 'qemu64'],
  cpuFeatures: ['avx', 'apic', 'vmx'],
  devices: ['virtio-net-pci', 'e1000', 'e1000e', 'virtio-vga'],
  sandbox: true,
};
const KVM: NodeFacts = { ...FACTS, accelerator: 'kvm' };
const UUID = '11111111-2222-4333-8444-555555555555';

type Domain = Record<string, unknown>;
function instance(domain: Domain = {}, spec: Record<string, unknown> = {}): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'ns', uid: '99999999-2222-4333-8444-555555555555' },
    spec: { domain: { devices: {}, memory: { guest: '128Mi' }, firmware: { uuid: UUID }, ...domain }, ...spec },
  } as unknown as VirtualMachineInstance;
}
const plan = (domain?: Domain, spec?: Record<string, unknown>, facts = FACTS): MachinePlan =>
  machinePlan(instance(domain, spec), facts);

test('the plan of a small VMI, whole', () => {
  assert.deepEqual(
    plan(
      { devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }], rng: {} } },
      {
        volumes: [
          { name: 'root', containerDisk: { image: 'x' } },
          { name: 'seed', cloudInitNoCloud: {} },
        ],
      },
    ),
    {
      name: 'ns_vm',
      uuid: UUID,
      accelerator: 'tcg',
      sandbox: true,
      machine: { type: 'pc-q35-7.2', options: {} },
      cpu: { model: 'max', features: [], sockets: 1, cores: 1, threads: 1 },
      memoryBytes: 134217728,
      heldBackBytes: 131072,
      smbios: [
        {
          type: 1,
          fields: [
            ['manufacturer', 'KubeVirt'],
            ['product', 'None'],
            ['uuid', UUID],
            ['family', 'KubeVirt'],
          ],
        },
      ],
      firmware: { kind: 'bios' },
      rtc: { base: 'utc' },
      globals: [],
      disks: [
        {
          name: 'root',
          id: 'ua-root',
          kind: 'disk',
          bus: 'virtio',
          target: 'vda',
          hasVolume: true,
          readOnly: false,
          bootIndex: 1,
          cache: 'writeback',
          io: 'threads',
          errorPolicy: 'stop',
          shareable: false,
          queues: 1,
        },
        {
          name: 'seed',
          id: 'ua-seed',
          kind: 'disk',
          bus: 'sata',
          target: 'sda',
          hasVolume: true,
          readOnly: false,
          bootIndex: 2,
          cache: 'writeback',
          io: 'threads',
          errorPolicy: 'stop',
          shareable: false,
        },
      ],
      interfaces: [
        {
          name: 'default',
          id: 'ua-default',
          driver: 'virtio-net-pci',
          mac: '02:7a:e1:f3:25:f2',
          linkUp: true,
          network: { cidr: '10.0.2.0/24', gateway: '10.0.2.1', guest: '10.0.2.2' },
          ports: [
            { protocol: 'tcp', port: 22, declared: false },
            { protocol: 'tcp', port: 80, declared: false },
          ],
          dhcp: { searches: ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local'] },
        },
      ],
      ioThreads: [],
      devices: [
        { driver: 'virtio-serial-pci', id: 'virtio-serial0' },
        { driver: 'virtio-balloon-pci', id: 'balloon0' },
        { driver: 'VGA', id: 'video0' },
      ],
      graphics: true,
      rng: true,
      sound: false,
      rebootPolicy: 'reboot',
      startPaused: false,
      hostname: 'vm',
      unsupported: [],
      serial: { log: true },
    },
  );
});

// S-1223: A guest has the display adapter that its VMI names; of those that name none, one that boots by UEFI has bochs, any
//   other vga, as upstream; a QEMU without it gives vga, and says so where it was asked for.
test('the display adapter', () => {
  const all = { ...FACTS, devices: [...FACTS.devices, 'bochs-display', 'cirrus-vga', 'ramfb'] };
  const efi = { firmware: { uuid: UUID, bootloader: { efi: { secureBoot: false } } } };
  const withEfi = { ...all, efi: { code: '/c', vars: '/v' } };
  const cases: [domain: Domain, facts: NodeFacts, driver: string | undefined, unsupported: number][] = [
    [{}, all, 'VGA', 0],
    [efi, withEfi, 'bochs-display', 0],
    [efi, { ...withEfi, devices: [] }, 'VGA', 0],
    [{ ...efi, devices: { video: { type: 'vga' } } }, withEfi, 'VGA', 0],
    [{ devices: { video: { type: 'bochs' } } }, all, 'bochs-display', 0],
    [{ devices: { video: { type: 'cirrus' } } }, all, 'cirrus-vga', 0],
    [{ devices: { video: { type: 'ramfb' } } }, all, 'ramfb', 0],
    [{ devices: { video: { type: 'virtio' } } }, all, 'virtio-vga', 0],
    [{ devices: { video: { type: 'cirrus' } } }, FACTS, 'VGA', 1],
    [{ devices: { autoattachGraphicsDevice: false } }, all, undefined, 0],
  ];
  for (const [domain, facts, driver, unsupported] of cases) {
    const made = plan(domain, {}, facts);
    const video = made.devices.find(({ id }) => id === 'video0');
    assert.deepEqual([video?.driver, made.graphics], [driver, driver !== undefined], JSON.stringify(domain));
    assert.equal(made.unsupported.length, unsupported, made.unsupported.join());
  }
});

// S-1347: A network card without an address of its own keeps the one it has from start to start; guests of cloud images know no other.
test('the address of a card is that of the running guest, else made of the firmware UUID', () => {
  const macOf = (change: (vmi: VirtualMachineInstance) => void): string | undefined => {
    const vmi = instance();
    change(vmi);
    return machinePlan(vmi, FACTS).interfaces[0]?.mac;
  };
  const first = macOf(() => {});
  assert.match(first ?? '', /^02(:[0-9a-f]{2}){5}$/);
  const cases: [string, (vmi: VirtualMachineInstance) => void, string | undefined][] = [
    ['another instance of the machine', (vmi) => Object.assign(vmi.metadata, { uid: UUID }), first],
    [
      'a guest that runs with another one',
      (vmi) => Object.assign(vmi, { status: reported('02:00:00:00:00:07') }),
      '02:00:00:00:00:07',
    ],
    ['a report that is none', (vmi) => Object.assign(vmi, { status: reported('?') }), first],
  ];
  for (const [what, change, expected] of cases) assert.equal(macOf(change), expected, what);
  const other = macOf((vmi) => Object.assign(vmi.spec.domain, { firmware: { uuid: vmi.metadata.uid } }));
  assert.notEqual(other, first);
});
const reported = (mac: string) => ({ interfaces: [{ name: 'default', mac }] });

test('machine, processor and memory', () => {
  const cases: [string, Domain, NodeFacts, (made: MachinePlan) => unknown, unknown][] = [
    ['q35', {}, FACTS, (p) => p.machine.type, 'pc-q35-7.2'],
    ['older q35', { machine: { type: 'pc-q35-6.2' } }, FACTS, (p) => p.machine.type, 'pc-q35-6.2'],
    ['unknown q35', { machine: { type: 'pc-q35-rhel9.6.0' } }, FACTS, (p) => p.machine.type, 'pc-q35-7.2'],
    ['unknown q35 is reported', { machine: { type: 'pc-q35-9.9' } }, FACTS, (p) => p.unsupported.length, 1],
    ['pc', { machine: { type: 'pc' } }, FACTS, (p) => p.machine.type, 'pc-i440fx-7.2'],
    ['host-model on TCG', { cpu: { model: 'host-model' } }, FACTS, (p) => p.cpu.model, 'max'],
    ['host-passthrough on KVM', { cpu: { model: 'host-passthrough' } }, KVM, (p) => p.cpu.model, 'host'],
    ['named model', { cpu: { model: 'Haswell' } }, FACTS, (p) => p.cpu.model, 'Haswell'],
    ['unknown model', { cpu: { model: 'Z80' } }, FACTS, (p) => [p.cpu.model, p.unsupported.length], ['max', 1]],
    [
      'topology',
      { cpu: { cores: 2, threads: 2 } },
      FACTS,
      (p) => [p.cpu.sockets, p.cpu.cores, p.cpu.threads],
      [1, 2, 2],
    ],
    ['cpu amount', { resources: { requests: { cpu: '1500m' } } }, FACTS, (p) => p.cpu.sockets, 2],
    ['cpu limit wins', { resources: { requests: { cpu: 1 }, limits: { cpu: 3 } } }, FACTS, (p) => p.cpu.sockets, 3],
    [
      'features',
      {
        cpu: {
          features: [
            { name: 'avx' },
            { name: 'vmx', policy: 'forbid' },
            { name: 'x,y' },
            { name: 'no', policy: 'optional' },
          ],
        },
      },
      FACTS,
      (p) => [p.cpu.features, p.unsupported.length],
      [
        [
          { name: 'avx', value: 'on' },
          { name: 'vmx', value: 'off' },
        ],
        1,
      ],
    ],
    ['memory is rounded up', { memory: { guest: '1024M' } }, FACTS, (p) => p.memoryBytes, 977 * 1024 * 1024],
    [
      'memory by request',
      { memory: {}, resources: { requests: { memory: '64Mi' } } },
      FACTS,
      (p) => p.memoryBytes,
      67108864,
    ],
    ['all of it where it is not emulated', {}, { ...FACTS, accelerator: 'kvm' }, (p) => p.heldBackBytes, undefined],
    ['hyperv needs KVM', { features: { hyperv: { relaxed: {} } } }, FACTS, (p) => p.unsupported.length, 1],
    [
      'hyperv on KVM',
      { features: { hyperv: { relaxed: {}, vapic: { enabled: false } } } },
      KVM,
      (p) => p.cpu.features,
      [{ name: 'hv-relaxed', value: 'on' }],
    ],
    [
      'ends of interrupts by KVM',
      { features: { apic: { enabled: true, endOfInterrupt: false } } },
      KVM,
      (p) => p.cpu.features,
      [{ name: 'kvm-pv-eoi', value: 'off' }],
    ],
    [
      'a clock in a zone',
      { clock: { timezone: 'Asia/Kolkata', timer: {} } },
      FACTS,
      (p) => [p.clock, p.unsupported],
      [{ timezone: 'Asia/Kolkata' }, []],
    ],
    ['a clock ahead', { clock: { utc: { offsetSeconds: 90 } } }, FACTS, (p) => p.clock, { offsetSeconds: 90 }],
    [
      'a clock in no zone',
      { clock: { timezone: 'Mars/Olympus' } },
      FACTS,
      (p) => [p.clock, p.unsupported.length],
      [undefined, 1],
    ],
    ['no ACPI', { features: { acpi: { enabled: false } } }, FACTS, (p) => p.machine.options, { acpi: 'off' }],
    [
      'watchdog',
      { devices: { watchdog: { name: 'w', i6300esb: { action: 'poweroff' } } } },
      FACTS,
      (p) => p.watchdogAction,
      'poweroff',
    ],
    [
      'efi without firmware is reported',
      { firmware: { uuid: UUID, bootloader: { efi: {} } } },
      FACTS,
      (p) => [p.firmware.kind, p.unsupported.length],
      ['bios', 1],
    ],
    ['a tpm', { devices: { tpm: {} } }, FACTS, (p) => p.tpm, { model: 'tpm-tis', persistent: false }],
    [
      'a tpm whose state lasts is of the newer model, as upstream',
      { devices: { tpm: { persistent: true } } },
      FACTS,
      (p) => p.tpm,
      { model: 'tpm-crb', persistent: true },
    ],
    ['a disabled tpm is none', { devices: { tpm: { enabled: false } } }, FACTS, (p) => p.tpm, undefined],
  ];
  for (const [name, domain, facts, read, wanted] of cases)
    assert.deepEqual(read(plan(domain, {}, facts)), wanted, name);
  for (const broken of [{ memory: {} }, { memory: { guest: '1Ki' } }, { firmware: { uuid: 'x,y' } }])
    assert.throws(() => plan(broken), { name: 'PlanError' });
});

test('disks: order, targets, kinds', () => {
  const disks = [
    { name: 'a', disk: { bus: 'virtio' } },
    { name: 'b', cdrom: {} },
    {
      name: 'c',
      disk: { bus: 'virtio' },
      bootOrder: 1,
      errorPolicy: 'report',
      cache: 'none',
      io: 'native',
      serial: 's,1=2',
    },
    { name: 'd', disk: { bus: 'scsi' }, io: 'native' },
    { name: 'empty', cdrom: { bus: 'scsi' } },
    { name: 'lost', disk: {} },
  ];
  const volumes = ['a', 'b', 'c', 'd'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const made = plan({ devices: { disks } }, { volumes });
  assert.deepEqual(
    made.disks.map((d) => [d.name, d.target, d.kind, d.bus, d.bootIndex, d.readOnly, d.hasVolume, d.cache, d.io]),
    [
      ['a', 'vda', 'disk', 'virtio', undefined, false, true, 'writethrough', 'threads'],
      ['b', 'sda', 'cdrom', 'sata', undefined, true, true, 'writethrough', 'threads'],
      ['c', 'vdb', 'disk', 'virtio', 1, false, true, 'none', 'native'],
      ['d', 'sdb', 'disk', 'scsi', undefined, false, true, 'writethrough', 'threads'],
      ['empty', 'sdc', 'cdrom', 'scsi', undefined, true, false, 'writethrough', 'threads'],
    ],
  );
  assert.equal(made.unsupported.length, 2);
  assert.equal(made.disks[2]?.errorPolicy, 'report');

  const vmi = instance({ devices: { disks: disks.slice(0, 3) } }, { volumes });
  vmi.status = { volumeStatus: [{ name: 'c', target: 'vda' }] };
  assert.deepEqual(
    machinePlan(vmi, FACTS)
      .disks.map((d) => d.target)
      .slice(0, 3),
    ['vdb', 'sda', 'vda'],
  );
  assert.deepEqual([0, 25, 26, 701, 702].map(diskLetters), ['a', 'z', 'aa', 'zz', 'aaa']);
});

// S-1327: Guests look for short names in the domains of their namespace and, before those, of their subdomain; `dnsPolicy` and
//   `dnsConfig.searches` are followed, and what of `dnsConfig` is not is said in an event.
// S-1453
test('domains of short names: of the cluster, of the subdomain, and of the spec', () => {
  const of = (spec: Record<string, unknown>) => {
    const made = plan({ devices: {} }, spec);
    return {
      searches: made.interfaces[0]?.dhcp.searches,
      resolvers: made.interfaces[0]?.resolvers,
      unsupported: made.unsupported.join(),
    };
  };
  const cluster = ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local'];
  assert.deepEqual(of({}).searches, cluster);
  assert.deepEqual(of({ subdomain: 'all' }).searches, ['all.ns.svc.cluster.local', ...cluster]);
  const dnsConfig = { searches: ['example.com.', 'cluster.local'] };
  assert.deepEqual(of({ dnsConfig }).searches, [...cluster, 'example.com']);
  assert.deepEqual(of({ dnsConfig, dnsPolicy: 'Default' }).searches, ['example.com', 'cluster.local']);
  assert.equal(of({ dnsPolicy: 'Default' }).searches, undefined);
  const none = of({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'], options: [{ name: 'ndots' }] } });
  assert.match(none.unsupported, /^dnsConfig\.options/);
  const servers = ['192.0.2.1'];
  assert.deepEqual(none.resolvers, { cluster: false, host: false, servers });
  assert.deepEqual(of({ dnsPolicy: 'Default' }).resolvers, { cluster: false, host: true, servers: [] });
  assert.deepEqual(of({ dnsConfig: { nameservers: servers } }).resolvers, { cluster: true, host: true, servers });
  assert.equal(of({ dnsPolicy: 'ClusterFirst' }).resolvers, undefined);
  const long = of({ subdomain: 'x'.repeat(200) });
  assert.deepEqual(long.searches, cluster);
  assert.match(long.unsupported, /does not fit/);
});

// S-112
test('what QEMU would choke on is refused by the name of its field', () => {
  const volumes = [{ name: 'c', persistentVolumeClaim: { claimName: 'c', readOnly: true } }];
  const networks = [{ name: 'pod', pod: {} }];
  const kernel = (kernelArgs: string) => ({
    firmware: { kernelBoot: { kernelArgs, container: { image: 'i', kernelPath: '/k' } } },
  });
  const dhcp = (dhcpOptions: object) => ({
    devices: {
      disks: [{ name: 'c', disk: { bus: 'virtio' } }],
      interfaces: [{ name: 'pod', masquerade: {}, dhcpOptions }],
    },
  });
  const cases: readonly [domain: object, message: RegExp][] = [
    [{ devices: { disks: [{ name: 'c', disk: { bus: 'sata' } }] } }, /disk c: a SATA hard disk cannot be read-only/],
    [kernel('a\0b'), /firmware\.kernelBoot\.kernelArgs holds a NUL/],
    [kernel('é'.repeat(40_000)), /kernelArgs is longer than 65536 bytes/],
    [{ chassis: { asset: '\0' } }, /chassis\.asset holds a NUL/],
    [{ chassis: { serial: 'x'.repeat(9000) } }, /chassis\.serial is longer/],
    [dhcp({ bootFileName: 'x'.repeat(128) }), /interface pod: bootFileName is longer than 127 bytes/],
    [dhcp({ tftpServerName: 'x'.repeat(256) }), /interface pod: tftpServerName is longer than 255 bytes/],
    [
      dhcp({ ntpServers: Array(64).fill('192.0.2.1') }),
      /interface pod: ntpServers and privateOptions have more than 252/,
    ],
    [
      dhcp({ privateOptions: [{ option: 224, value: 'x'.repeat(256) }] }),
      /private option 224 is longer than 255 bytes/,
    ],
    [dhcp({ tftpServerName: 'a\0' }), /tftpServerName holds a NUL/],
  ];
  for (const [domain, message] of cases)
    assert.throws(
      () => plan({ devices: { disks: [{ name: 'c', disk: { bus: 'virtio' } }] }, ...domain }, { volumes, networks }),
      (error: Error) => error.name === 'PlanError' && message.test(error.message),
      String(message),
    );
  const read = plan({ devices: { disks: [{ name: 'c', cdrom: { bus: 'sata' } }] } }, { volumes, networks });
  assert.equal(read.disks[0]?.readOnly, true);
});

test('interfaces: refusals, states, addresses', () => {
  const interfaces = [
    {
      name: 'pod',
      masquerade: {},
      macAddress: 'DE-AD-00-00-BE-EF',
      ports: [{ port: 80 }, { port: 53, protocol: 'UDP' }, { port: 80 }],
      state: 'down',
    },
    { name: 'second', bridge: {} },
    { name: 'gone', masquerade: {}, state: 'absent' },
  ];
  const networks = [
    { name: 'pod', pod: { vmNetworkCIDR: '192.168.7.9/24' } },
    { name: 'second', multus: { networkName: 'x' } },
    { name: 'gone', pod: {} },
  ];
  const made = plan({ devices: { interfaces } }, { networks });
  assert.deepEqual(made.interfaces, [
    {
      name: 'pod',
      id: 'ua-pod',
      driver: 'virtio-net-pci',
      mac: 'de:ad:00:00:be:ef',
      linkUp: false,
      network: { cidr: '192.168.7.0/24', gateway: '192.168.7.1', guest: '192.168.7.2' },
      ports: [
        { protocol: 'tcp', port: 80, declared: true },
        { protocol: 'udp', port: 53, declared: true },
      ],
      dhcp: { searches: ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local'] },
    },
    {
      name: 'second',
      id: 'ua-second',
      driver: 'virtio-net-pci',
      mac: made.interfaces[1]?.mac,
      linkUp: true,
      segment: { definition: 'ns/x', podInterface: 'pod16367aacb67' },
      ports: [],
      dhcp: {},
    },
  ]);
  assert.deepEqual([made.unsupported, podCard(made)?.name], [[], 'pod']);
  const igb = plan({ devices: { interfaces: [{ name: 'pod', masquerade: {}, model: 'igb' }] } }, { networks });
  assert.deepEqual([igb.interfaces[0]?.driver, igb.unsupported.length], ['e1000e', 1]);
  assert.deepEqual(plan({ devices: { autoattachPodInterface: false } }).interfaces, []);
  assert.equal(plan().interfaces[0]?.mac, plan().interfaces[0]?.mac);
  for (const bad of ['1.2.3.4', '1.2.3.4/31', '300.1.1.1/24', 'x', '1.2.3.4/24,net=x'])
    assert.throws(() => guestNetwork(bad), { name: 'PlanError' }, bad);
  assert.deepEqual(guestNetwork('172.31.255.250/29'), {
    cidr: '172.31.255.248/29',
    gateway: '172.31.255.249',
    guest: '172.31.255.250',
  });
});

test('machinePlan() gives the same plan for the same VMI and never holds an inherited key', () => {
  fc.assert(
    fc.property(fc.constantFrom('__proto__', 'constructor', 'toString', 'q35', 'virtio'), fc.string(), (key, text) => {
      const make = (): MachinePlan =>
        plan(
          {
            machine: { type: key },
            cpu: { model: key, features: [{ name: key }] },
            devices: {
              interfaces: [{ name: 'default', masquerade: {}, model: key }],
              disks: [{ name: 'd', disk: { bus: key }, serial: text }],
            },
          },
          { networks: [{ name: 'default', pod: {} }], volumes: [{ name: 'd', emptyDisk: { capacity: '1Gi' } }] },
        );
      assert.deepEqual(make(), make());
      const made = make();
      assert.equal(typeof made.machine.type, 'string');
      assert.ok(['pc-q35-7.2'].includes(made.machine.type));
      assert.equal(typeof made.interfaces[0]?.driver, 'string');
      assert.equal(made.disks[0]?.serial, text);
    }),
  );
});
