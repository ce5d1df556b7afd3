// test:full: three guests, one that moves, and cards that come to them and go
/** Networks beside that of Pods: guests on one definition reach each other by their second cards, and nobody else does. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { NETWORK_ATTACHMENT_DEFINITIONS } from '../../packages/kubevirt/src/kinds/kinds.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VirtualMachineInstanceMigration,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually as waitFor } from '../testkit/eventually.ts';
import { partly } from '../testkit/partly.ts';
import { kernelSpec, NAMESPACE } from './board.ts';
import { type MigrationBoard, startMigrationBoard } from './migration-board.ts';
import { type Shell, shell } from './shell.ts';

const WAIT_MS = 60_000;
const eventually = <T>(what: string, read: () => Promise<T>): Promise<NonNullable<T>> =>
  waitFor(what, read, WAIT_MS) as Promise<NonNullable<T>>;

let board: MigrationBoard;
before(async () => {
  board = await startMigrationBoard({ controller: true, addresses: { one: '127.0.0.1', two: '127.0.0.2' } });
  for (const [name, vlan] of [
    ['blue', 100],
    ['red', 200],
  ] as const)
    await define(name, JSON.stringify({ type: 'bridge', bridge: 'br1', vlan, macspoofchk: name === 'red' }));
});
after(() => board?.close());

const define = (name: string, config: string) =>
  board.client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name, namespace: NAMESPACE },
    spec: { config },
  });

const cards = (networks: readonly string[], state: Readonly<Record<string, string>> = {}) => ({
  interfaces: [
    { name: 'default', masquerade: {} },
    ...networks.map((name) => ({ name, bridge: {}, ...(state[name] && { state: state[name] }) })),
  ],
  networks: [{ name: 'default', pod: {} }, ...networks.map((name) => ({ name, multus: { networkName: name } }))],
});

/** A machine on these networks, whose guest runs, and its shell. */
async function run(name: string, node: string, networks: readonly string[]): Promise<Shell> {
  await create(name, node, networks);
  await board.until(name, 'running', ({ status }) => status?.phase === 'Running');
  return open(name, true);
}
async function create(name: string, node: string, networks: readonly string[]): Promise<void> {
  const spec = kernelSpec({ terminationGracePeriodSeconds: 0, evictionStrategy: 'LiveMigrate' });
  const { interfaces, networks: list } = cards(networks);
  spec.domain.devices.interfaces = interfaces;
  const selector = node !== '' && { nodeSelector: { 'kubernetes.io/hostname': node } };
  await board.client.create(
    VIRTUAL_MACHINES,
    partly<VirtualMachine>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: NAMESPACE },
      spec: { runStrategy: 'Always', template: { spec: { ...spec, networks: list, ...selector } } },
    }),
  );
}
const open = (name: string, isNew: boolean): Promise<Shell> =>
  shell({ connect: async () => board.console(await board.vmi(name)) } as never, name, isNew);

const address = (sh: Shell, ip: string, card = 'eth1') =>
  sh.run(`ip addr flush dev ${card}; ip addr add ${ip}/24 dev ${card}; ip link set ${card} up`);
const pings = async (sh: Shell, to: string): Promise<boolean> =>
  / 0% packet loss/.test(await sh.run(`ping -c 1 -W 2 ${to}`));
const reaches = (what: string, sh: Shell, to: string) => eventually(what, () => pings(sh, to));
const nicOf = ({ status }: VirtualMachineInstance, name: string) =>
  status?.interfaces?.find((nic) => nic.name === name);

// S-1360: Guests that name the same NetworkAttachmentDefinition are on one segment of the second layer, on one node and
//   across two; they reach nobody on another, and the network of Pods stays as it is.
// S-1361: The launcher Pod and the status of the instance say which networks the guest is on, as with Multus.
test('guests on one definition reach each other by their second cards, across nodes; others do not', async () => {
  const [one = '', two = ''] = board.nodes;
  const a = await run('a', one, ['blue']);
  const b = await run('b', one, ['blue']);
  const c = await run('c', two, ['blue']);
  const d = await run('d', one, ['red']);
  for (const [n, sh] of [a, b, c, d].entries()) await address(sh, `192.168.77.${n + 1}`);
  await reaches('a to b', a, '192.168.77.2');
  await reaches('a to c', a, '192.168.77.3');
  await reaches('c to b', c, '192.168.77.2');
  assert.equal(await pings(d, '192.168.77.1'), false, 'another segment');
  assert.equal(await pings(a, '192.168.77.4'), false, 'another segment');
  // More than a ping: a page of the size of many frames.
  await b.run('tail -f /dev/null | nc -l -p 9000 > /run/much &');
  await a.run('head -c 3000000 /dev/zero | timeout 60 nc 192.168.77.2 9000 > /dev/null 2>&1 &');
  await eventually('all of it', async () => /^3000000$/m.test(await b.run('wc -c < /run/much')));

  const vmi = await board.vmi('a');
  const nic = nicOf(vmi, 'blue');
  assert.deepEqual(
    [nic?.podInterfaceName, nic?.infoSource?.includes('multus-status'), nic?.mac === nicOf(vmi, 'default')?.mac],
    ['pod16477688c0e', true, false],
  );
  assert.equal(nicOf(vmi, 'default')?.podInterfaceName, 'eth0');
  const [pod] = (await board.client.list(PODS, { namespace: NAMESPACE })).items.filter(
    ({ metadata }) => metadata.annotations?.['kubevirt.io/domain'] === 'a',
  );
  const read = (key: string) => JSON.parse(pod?.metadata.annotations?.[`k8s.v1.cni.cncf.io/${key}`] ?? 'null');
  assert.deepEqual(read('networks'), [{ name: 'blue', namespace: NAMESPACE, interface: 'pod16477688c0e' }]);
  assert.deepEqual(
    read('network-status').map((one: { name: string; interface: string; default?: boolean }) => [
      one.name,
      one.interface,
      one.default,
    ]),
    [
      ['coracle', 'eth0', true],
      [`${NAMESPACE}/blue`, 'pod16477688c0e', undefined],
    ],
  );
});

const template = (name: string, spec: object) =>
  board.client.patch(
    VIRTUAL_MACHINES,
    { namespace: NAMESPACE, name },
    { type: 'merge', body: { spec: { template: { spec } } } },
  );
const setCards = (name: string, networks: readonly string[], state: Readonly<Record<string, string>> = {}) => {
  const { interfaces, networks: list } = cards(networks, state);
  return template(name, { domain: { devices: { interfaces } }, networks: list });
};

async function move(name: string): Promise<void> {
  const from = (await board.vmi(name)).status?.nodeName;
  const made = await board.client.create(
    VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
    partly<VirtualMachineInstanceMigration>({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { generateName: 'move-', namespace: NAMESPACE },
      spec: { vmiName: name },
    }),
  );
  const key = { namespace: NAMESPACE, name: made.metadata.name ?? '' };
  await eventually('the migration is over', async () => {
    const { status } = await board.client.get(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key);
    if (status?.phase === 'Failed') throw new Error(JSON.stringify(status));
    return status?.phase === 'Succeeded';
  });
  assert.notEqual((await board.vmi(name)).status?.nodeName, from);
}

// S-1650
// S-1364: A card that is plugged into a running guest works at once, goes along when the guest moves to another node, lets its
//   cable be pulled, and leaves the guest when it is unplugged; then the guest may have it again.
test('a card is plugged, moves with its guest, loses its cable, and is unplugged', async () => {
  const [one = ''] = board.nodes;
  const still = await run('still', one, ['red']);
  let sh = await run('mover', '', []);
  await address(still, '192.168.78.1');
  assert.doesNotMatch(await sh.run('ls /sys/class/net'), /eth1/);
  await setCards('mover', ['red']);
  await board.until('mover', 'has it', (vmi) => nicOf(vmi, 'red') !== undefined);
  await eventually('the guest sees it', async () => /eth1/.test(await sh.run('ls /sys/class/net')));
  await address(sh, '192.168.78.2');
  await reaches('the other', sh, '192.168.78.1');

  await move('mover');
  sh = await open('mover', false);
  await reaches('the other from there', sh, '192.168.78.1');
  await reaches('the mover', still, '192.168.78.2');
  assert.ok(nicOf(await board.vmi('mover'), 'red'));

  await setCards('mover', ['red'], { red: 'down' });
  await board.until('mover', 'has no cable', (vmi) => nicOf(vmi, 'red')?.linkState === 'down');
  assert.equal(await pings(sh, '192.168.78.1'), false);
  await setCards('mover', ['red']);
  await board.until('mover', 'has one', (vmi) => nicOf(vmi, 'red')?.linkState === 'up');
  await reaches('the other again', sh, '192.168.78.1');

  await setCards('mover', ['red'], { red: 'absent' });
  await board.until('mover', 'has it no more', ({ spec }) => spec.networks?.length === 1);
  assert.doesNotMatch(await sh.run('ls /sys/class/net'), /eth1/);
  await setCards('mover', ['red']);
  await board.until('mover', 'has it again', (vmi) => nicOf(vmi, 'red') !== undefined);
  await eventually('the guest sees it again', async () => /eth1/.test(await sh.run('ls /sys/class/net')));
  await address(sh, '192.168.78.2');
  await reaches('the other at last', sh, '192.168.78.1');
  await sh.run('ip link set eth1 down; ip link set eth1 address 02:aa:aa:aa:aa:aa');
  await address(sh, '192.168.78.2');
  assert.equal(await pings(sh, '192.168.78.1'), false, "macspoofchk: an address that is not the card's");
});

// S-1362: A machine on a network whose definition is missing, or of a type that is not served, waits and says why; it starts
//   once there is one that is.
test('a machine waits for the definition of its network, and says so', async () => {
  const [one = ''] = board.nodes;
  await create('waits', one, ['green']);
  const says = (text: RegExp) =>
    eventually(`it says ${text}`, async () => {
      const { status } = await board.client.get(VIRTUAL_MACHINES, { namespace: NAMESPACE, name: 'waits' });
      return status?.conditions?.some(({ message }) => text.test(message ?? ''));
    });
  await says(/cannot find a network-attachment-definition \(green\) in namespace \(default\)/);
  await define('green', JSON.stringify({ type: 'macvlan' }));
  await says(/type "macvlan": only networks of type bridge and cnv-bridge are served/);
  const config = JSON.stringify({ plugins: [{ type: 'cnv-bridge' }, { type: 'tuning' }] });
  await board.client.patch(
    NETWORK_ATTACHMENT_DEFINITIONS,
    { namespace: NAMESPACE, name: 'green' },
    { type: 'merge', body: { spec: { config } } },
  );
  await board.until('waits', 'running', ({ status }) => status?.phase === 'Running');
});
