/** A virtual machine of the common instance types, booted for real: the guest has what the API says. */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import {
  VIRTUAL_MACHINE_CLUSTER_PREFERENCES,
  VIRTUAL_MACHINES,
  type VirtualMachine,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
  const { client } = board;
  await eventually('the common preferences', async () => {
    const { items } = await client.list(VIRTUAL_MACHINE_CLUSTER_PREFERENCES as ResourceType<KubeObject>);
    return items.some(({ metadata }) => metadata.name === 'fedora');
  });
});
after(() => board.close());

/** The tiny guest without any amount of its own. */
function template(): Record<string, unknown> {
  const spec = kernelSpec();
  const { memory: _, ...domain } = spec['domain'] as { memory: unknown };
  return { ...spec, domain };
}

interface Machine {
  readonly instancetype: string;
  readonly preference: string;
  readonly firmware?: object;
}

async function boot(name: string, { instancetype, preference, firmware = {} }: Machine) {
  const spec = template();
  const domain = spec['domain'] as { firmware: object };
  domain.firmware = { ...domain.firmware, ...firmware };
  await board.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      runStrategy: 'Always',
      instancetype: { name: instancetype },
      preference: { name: preference },
      template: { metadata: {}, spec },
    },
  } as unknown as VirtualMachine);
  return board.until(name, 'running', (found) => found.status?.phase === 'Running');
}

/** What the guest says after its prompt. */
async function ask(name: string, command: string, answer: RegExp): Promise<string> {
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  await seen.has('login: ');
  const type = (text: string): void => void socket.send(new TextEncoder().encode(text));
  type('root\n');
  await seen.has('root@');
  type(`${command}\n`);
  await seen.has(answer);
  socket.close();
  return answer.exec(seen.text())![0];
}

/** Memory as the guest's kernel counts it; fails when there is not one processor. */
async function kilobytesOf(name: string): Promise<number> {
  const said = await ask(
    name,
    'echo "has $(nproc) cpu and $(sed -n "s/MemTotal: *//p" /proc/meminfo)"',
    /has 1 cpu and \d+ kB/,
  );
  return Number(/(\d+) kB/.exec(said)![1]);
}

// S-182: A guest has the processors and the memory of its instance type.
test('u1.nano and the fedora preference boot; u1.nano is too small for ubuntu, and the refusal says so', async () => {
  // The preference wants EFI with secure boot; the tiny guest is started by its kernel, and says BIOS itself.
  const vmi = await boot('fedora', {
    instancetype: 'u1.nano',
    preference: 'fedora',
    firmware: { bootloader: { bios: {} } },
  });
  const { cpu, memory, features } = vmi.spec.domain;
  assert.deepEqual([cpu?.sockets, cpu?.cores, cpu?.threads, memory?.guest], [1, 1, 1, '512Mi']);
  assert.equal(vmi.status?.memory?.guestCurrent, '512Mi');
  assert.ok(features?.smm !== undefined);
  const kilobytes = await kilobytesOf('fedora');
  // The kernel keeps some for itself: never more than 512 MiB, and not much less.
  assert.ok(kilobytes <= 512 * 1024 && kilobytes > 440 * 1024, `${kilobytes}`);
  await assert.rejects(
    boot('too-small', { instancetype: 'u1.nano', preference: 'ubuntu' }),
    /insufficient Memory resources of 512Mi provided by instance type, preference requires 2Gi/,
  );
});

test('u1.small and the alpine preference: the guest has 2Gi', async () => {
  const vmi = await boot('small', { instancetype: 'u1.small', preference: 'alpine' });
  assert.equal(vmi.metadata.annotations?.['kubevirt.io/cluster-instancetype-name'], 'u1.small');
  assert.equal(vmi.metadata.annotations?.['kubevirt.io/cluster-preference-name'], 'alpine');
  assert.equal(vmi.metadata.annotations?.['vm.kubevirt.io/os'], 'linux');
  const { cpu, memory, devices } = vmi.spec.domain;
  assert.deepEqual([cpu?.sockets, cpu?.cores, cpu?.threads, memory?.guest], [1, 1, 1, '2Gi']);
  assert.equal(devices.interfaces?.[0]?.model, 'virtio');
  assert.deepEqual(devices.rng, {});
  const kilobytes = await kilobytesOf('small');
  // Linux sets 64 MiB aside where memory can be plugged.
  assert.ok(kilobytes <= 2048 * 1024 && kilobytes > 1840 * 1024, `${kilobytes}`);
});
