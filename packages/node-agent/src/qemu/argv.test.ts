import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { VirtualMachineInstance } from '../../../kubevirt/src/kinds/kinds.ts';
import type { NodeFacts } from '../../../kubevirt/src/rules/machine/machine-plan.ts';
import { machinePlan } from '../../../kubevirt/src/rules/machine/plan.ts';
import { type DiskFile, qemuArgv } from './argv.ts';
import { createPciSlots } from './pci-slots.ts';

const FACTS: NodeFacts = {
  architecture: 'amd64',
  qemuVersion: '7.2.22',
  accelerator: 'tcg',
  machineTypes: ['pc-q35-7.2', 'pc-i440fx-7.2'],
  machineAliases: { q35: 'pc-q35-7.2', pc: 'pc-i440fx-7.2' },
  cpuModels: ['max'],
  cpuFeatures: [],
  devices: ['virtio-net-pci', 'virtio-vga', 'virtio-mem-pci'],
  sandbox: true,
};
const UUID = '11111111-2222-4333-8444-555555555555';

/** Option text as QEMU reads it back. */
function parseOptionText(text: string): [string, string][] {
  const fields: [string, string][] = [];
  let at = 0;
  while (at < text.length) {
    const equals = text.indexOf('=', at);
    const name = text.slice(at, equals);
    let value = '';
    at = equals + 1;
    while (at < text.length) {
      if (text[at] === ',') {
        if (text[at + 1] !== ',') break;
        at++;
      }
      value += text[at++];
    }
    at++;
    fields.push([name, value]);
  }
  return fields;
}

function argvOf(
  domain: Record<string, unknown>,
  spec: Record<string, unknown> = {},
  disks: [string, DiskFile][] = [],
): string[] {
  const vmi = {
    metadata: { name: 'vm', namespace: 'ns', uid: UUID },
    spec: {
      domain: {
        devices: {},
        memory: { guest: '128Mi' },
        ...domain,
        firmware: { uuid: UUID, ...(domain['firmware'] as object) },
      },
      ...spec,
    },
  } as unknown as VirtualMachineInstance;
  return qemuArgv(machinePlan(vmi, FACTS), {
    binary: 'qemu',
    pidFile: '/vms/u/qemu.pid',
    disks: new Map(disks),
    kernel: 'kernel',
    initrd: 'initrd',
    tpmSocket: 'tpm/x.sock',
  });
}
const values = (argv: readonly string[], option: string): string[] => argv.filter((_, i) => argv[i - 1] === option);
const json = (argv: readonly string[], option: string): Record<string, unknown>[] =>
  values(argv, option)
    .filter((text) => text.startsWith('{'))
    .map((text) => JSON.parse(text) as Record<string, unknown>);

test('room for processors and memory: the topology counts what there could be, the device takes no other slot', () => {
  const domain = { cpu: { sockets: 2, cores: 2, maxSockets: 8 }, memory: { guest: '1Gi', maxGuest: '4Gi' } };
  const plain = argvOf({ ...domain, cpu: { sockets: 2, cores: 2 }, memory: { guest: '1Gi' } });
  assert.deepEqual(
    [values(plain, '-smp'), values(plain, '-m')],
    [['4,sockets=2,cores=2,threads=1'], ['size=1048448K']],
  );
  const hot = argvOf(domain, { architecture: 'amd64' });
  assert.deepEqual(values(hot, '-smp'), ['4,maxcpus=16,sockets=8,cores=2,threads=1']);
  assert.deepEqual(values(hot, '-m'), ['size=1048448K,slots=1,maxmem=4096M']);
  const [device] = json(hot, '-device').filter(({ driver }) => driver === 'virtio-mem-pci');
  assert.deepEqual(device, {
    driver: 'virtio-mem-pci',
    id: 'hot-memory0',
    memdev: 'hot-memory0-pages',
    bus: 'pcie.0',
    addr: '0x1.0x0',
  });
  const others = (argv: readonly string[]): unknown[] =>
    json(argv, '-device').filter(({ driver }) => driver !== 'virtio-mem-pci');
  assert.deepEqual(others(hot), others(plain));
});

test('the argument vector of a small VMI, whole', () => {
  const argv = argvOf(
    {
      devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }], autoattachGraphicsDevice: false, rng: {} },
      cpu: { cores: 2 },
    },
    { volumes: [{ name: 'root', containerDisk: { image: 'x' } }] },
    [['root', { file: 'disk-0.qcow2', format: 'qcow2', backing: { file: 'disk-0.base', format: 'raw' } }]],
  );
  const mac = json(argv, '-device').find((device) => device['netdev'] === 'net-0')?.['mac'];
  assert.deepEqual(argv, [
    'qemu',
    ...['-name', 'guest=ns_vm,debug-threads=on', '-no-user-config', '-nodefaults', '-S', '-pidfile', '/vms/u/qemu.pid'],
    ...['-uuid', UUID, '-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'],
    ...['-machine', 'pc-q35-7.2,dump-guest-core=off,usb=off,vmport=off', '-accel', 'tcg,thread=multi', '-cpu', 'max'],
    ...['-smp', '2,sockets=1,cores=2,threads=1', '-m', 'size=130944K'],
    ...['-smbios', `type=1,manufacturer=KubeVirt,product=None,uuid=${UUID},family=KubeVirt`],
    ...['-rtc', 'base=utc', '-boot', 'strict=on', '-action', 'reboot=reset,shutdown=pause,panic=pause'],
    ...['-chardev', 'socket,id=qmp,path=qmp.sock,server=on,wait=off', '-mon', 'chardev=qmp,mode=control'],
    ...['-chardev', 'socket,id=serial0,path=serial.sock,server=on,wait=off,logfile=serial.log,logappend=on'],
    ...['-device', '{"driver":"isa-serial","id":"console0","chardev":"serial0","index":0}', '-display', 'none'],
    ...['-device', '{"driver":"virtio-serial-pci","id":"virtio-serial0","bus":"pcie.0","addr":"0x2.0x0"}'],
    ...['-device', '{"driver":"virtio-balloon-pci","id":"balloon0","bus":"pcie.0","addr":"0x3.0x0"}'],
    ...['-chardev', 'socket,id=agent0,path=agent.sock,server=on,wait=off'],
    ...[
      '-device',
      '{"driver":"virtserialport","id":"agent-port0","bus":"virtio-serial0.0","chardev":"agent0","name":"org.qemu.guest_agent.0"}',
    ],
    ...['-object', '{"qom-type":"rng-random","id":"rng0-source","filename":"/dev/urandom"}'],
    ...['-device', '{"driver":"virtio-rng-pci","id":"rng0","rng":"rng0-source","bus":"pcie.0","addr":"0x4.0x0"}'],
    ...[
      '-blockdev',
      '{"node-name":"disk-0","driver":"qcow2","read-only":false,"cache":{"direct":false,"no-flush":false},"discard":"unmap",' +
        '"file":{"driver":"file","filename":"disk-0.qcow2","read-only":false,"cache":{"direct":false,"no-flush":false},"discard":"unmap","aio":"threads"},' +
        '"backing":{"driver":"raw","read-only":true,"file":{"driver":"file","filename":"disk-0.base","read-only":true}}}',
    ],
    ...[
      '-device',
      '{"driver":"virtio-blk-pci","id":"ua-root","drive":"disk-0","bus":"pcie.0","addr":"0x5.0x0","bootindex":1,"write-cache":"on","werror":"stop","rerror":"stop","num-queues":2}',
    ],
    ...[
      '-netdev',
      '{"type":"user","id":"net-0","ipv6":false,"net":"10.0.2.0/24","host":"10.0.2.1","dhcpstart":"10.0.2.2","dns":"10.0.2.3","hostname":"vm","dnssearch":[{"str":"ns.svc.cluster.local"},{"str":"svc.cluster.local"},{"str":"cluster.local"}]}',
    ],
    ...[
      '-device',
      `{"driver":"virtio-net-pci","id":"ua-default","netdev":"net-0","mac":"${String(mac)}","romfile":"","bus":"pcie.0","addr":"0x6.0x0"}`,
    ],
    ...['-msg', 'timestamp=on'],
  ]);
});

// S-1360
test('a card on a network beside that of Pods waits at a socket, in a port of its own; others keep their slots', () => {
  const interfaces = [
    { name: 'blue', bridge: {} },
    { name: 'default', masquerade: {} },
  ];
  const networks = [
    { name: 'blue', multus: { networkName: 'wire' } },
    { name: 'default', pod: {} },
  ];
  const argv = argvOf({ devices: { interfaces } }, { networks });
  const ids = json(argv, '-netdev').map(({ type, id, server, addr }) => [type, id, server, addr]);
  assert.deepEqual(ids, [
    ['stream', 'net-pod16477688c0e', true, { type: 'unix', path: 'net-pod16477688c0e.sock' }],
    ['user', 'net-0', undefined, undefined],
  ]);
  const [blue] = json(argv, '-device').filter(({ netdev }) => netdev === 'net-pod16477688c0e');
  assert.deepEqual([blue?.['driver'], blue?.['id']], ['virtio-net-pci', 'ua-blue']);
});

// S-112: Text of users never splits a QEMU option, and reaches the guest unchanged.
test('every text of a user arrives as one value, whatever it holds', () => {
  const nasty = fc.string({
    unit: fc.constantFrom(',', '=', '\n', '-', '"', '{', '}', '\\', 'a', 'é', ' ', "'"),
    maxLength: 20,
  });
  fc.assert(
    fc.property(nasty, nasty, nasty, (serial, sku, args) => {
      const argv = argvOf(
        {
          firmware: { serial, kernelBoot: { kernelArgs: args, container: { image: 'x', kernelPath: '/k' } } },
          chassis: { sku: `s${sku}`, asset: serial },
          devices: { disks: [{ name: 'root', disk: { bus: 'scsi' }, serial }] },
        },
        { volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] },
        [['root', { file: 'disk-0.qcow2', format: 'qcow2' }]],
      );
      const [system, chassis] = values(argv, '-smbios').map((text) => new Map(parseOptionText(text)));
      assert.equal(system?.get('serial') ?? '', serial);
      assert.equal(system?.get('uuid'), UUID);
      assert.equal(chassis?.get('sku'), `s${sku}`);
      assert.deepEqual(values(argv, '-append'), [args]);
      const disk = json(argv, '-device').find((device) => device['id'] === 'ua-root');
      assert.equal(disk?.['serial'], serial);
      assert.equal(disk?.['driver'], 'scsi-hd');
      assert.equal(
        values(argv, '-device').length,
        values(
          argvOf(
            { devices: { disks: [{ name: 'root', disk: { bus: 'scsi' } }] } },
            { volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] },
          ),
          '-device',
        ).length,
      );
    }),
  );
});

test('disks find a place on their bus: seven on SATA need a second controller, an empty drive has no medium', () => {
  const disks = Array.from({ length: 8 }, (_, i) => ({ name: `d${i}`, disk: { bus: 'sata' } }));
  const files = disks.map(({ name }): [string, DiskFile] => [name, { file: name, format: 'raw' }]);
  const volumes = disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Gi' } }));
  const onQ35 = json(argvOf({ devices: { disks } }, { volumes }, files), '-device');
  assert.deepEqual(
    onQ35.filter((device) => device['driver'] === 'ide-hd').map((device) => device['bus']),
    ['ide.0', 'ide.1', 'ide.2', 'ide.3', 'ide.4', 'ide.5', 'ahci0.0', 'ahci0.1'],
  );
  const onPc = json(argvOf({ devices: { disks }, machine: { type: 'pc' } }, { volumes }, files), '-device');
  assert.deepEqual(
    onPc.filter((device) => device['driver'] === 'ide-hd').map((device) => device['bus']),
    ['ahci0.0', 'ahci0.1', 'ahci0.2', 'ahci0.3', 'ahci0.4', 'ahci0.5', 'ahci1.0', 'ahci1.1'],
  );
  const [drive] = json(argvOf({ devices: { disks: [{ name: 'e', cdrom: {} }] } }), '-device').filter(
    (device) => device['driver'] === 'ide-cd',
  );
  assert.deepEqual([drive?.['id'], drive?.['drive']], ['ua-e', undefined]);
});

test('PCI places never repeat and end with an error, not a clash', () => {
  for (const count of [1, 27, 28, 216]) {
    const slots = createPciSlots('pcie.0', count);
    const given = new Set(Array.from({ length: count }, () => slots().addr));
    assert.equal(given.size, count);
  }
  const full = createPciSlots('pcie.0', 217);
  for (let i = 0; i < 216; i++) full();
  assert.throws(() => full(), /more PCI devices than slots/);
});

// S-1656
test('the clock of a guest that is not in UTC is the local time of its QEMU', () => {
  assert.ok(argvOf({ devices: {}, clock: { timezone: 'Asia/Kolkata' } }).includes('base=localtime'));
});

test('a TPM is spoken to over its socket, and is there only where the machine has one', () => {
  assert.deepEqual(values(argvOf({}), '-tpmdev'), []);
  for (const [tpm, model] of [
    [{}, 'tpm-tis'],
    [{ persistent: true }, 'tpm-crb'],
  ] as const) {
    const argv = argvOf({ devices: { tpm } });
    assert.deepEqual(values(argv, '-tpmdev'), ['emulator,id=tpm0,chardev=tpm0-control']);
    assert.ok(values(argv, '-chardev').includes('socket,id=tpm0-control,path=tpm/x.sock'));
    assert.deepEqual(
      json(argv, '-device').filter(({ driver }) => String(driver).startsWith('tpm')),
      [{ driver: model, id: 'tpm0-device', tpmdev: 'tpm0' }],
    );
  }
});
