/**
 * Any sequence of what users do with machines, on the real controllers and a node that only pretends: no machine's UUID
 * changes after its first boot, and no two share one, unless a user asked for it.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { ResourceType } from '../../packages/apimachinery/src/meta/gvk.ts';
import type { KubeObject, UnstructuredObject } from '../../packages/apimachinery/src/meta/object.ts';
import { NODES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { isNotFound } from '../../packages/client/src/api-failure.ts';
import { POOL_LABEL } from '../../packages/cluster-rules/src/storage/pool-names.ts';
import {
  VIRTUAL_MACHINE_CLONES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_RESTORES,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINES,
  type VirtualMachine,
  type VirtualMachineClone,
  type VirtualMachineRestore,
  type VirtualMachineSnapshot,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { canonicalUuid, legacyFirmwareUuid } from '../../packages/kubevirt/src/rules/identity/firmware-identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { playMemory } from '../testkit/play-memory.ts';
import { playStorage, type StoragePlayer } from '../testkit/storage-player.ts';

let cluster: FakeCluster;
let storage: StoragePlayer;
before(async () => {
  cluster = await startFakeCluster({
    nodes: ['node-1', 'node-2'],
    components: 'vm,vmi,migration,scheduler,snapshot,clone,garbage-collector-controller',
    memory: playMemory().askAgent,
  });
  // Both have what is saved.
  for (const name of ['node-1', 'node-2'])
    await cluster.client.patch(
      NODES,
      { namespace: '', name },
      { type: 'merge', body: { metadata: { labels: { [POOL_LABEL]: 'pool' } } } },
    );
  storage = playStorage(cluster.client);
});
after(async () => {
  await storage.stop();
  await cluster.stop();
});

const key = (name: string) => ({ namespace: 'default', name });
const machineNamed = (name: string): Promise<VirtualMachine> => cluster.client.get(VIRTUAL_MACHINES, key(name));
const until = <T extends KubeObject>(type: ResourceType<T>, name: string, holds: (object: T) => boolean): Promise<T> =>
  eventually(`${type.kind} ${name}`, async () => {
    const found = await cluster.client.get(type, key(name));
    return holds(found) && found;
  });

/** UUIDs that users give: two, so that they give one twice. */
const GIVEN = ['5d307ca9-b3ef-428c-8861-06e72d69f223', 'A1307CA9-B3EF-428C-8861-06E72D69F223'] as const;

type Step =
  | { readonly do: 'create'; readonly vm: number; readonly given?: number | undefined }
  | { readonly do: 'createOld'; readonly vm: number }
  | { readonly do: 'start' | 'stop' | 'restart' | 'migrate' | 'replace' | 'delete'; readonly vm: number }
  | { readonly do: 'give'; readonly vm: number; readonly given: number }
  | { readonly do: 'snapshot'; readonly vm: number; readonly isOld: boolean }
  | { readonly do: 'restore'; readonly snapshot: number; readonly to: number }
  | { readonly do: 'clone' | 'fork'; readonly vm: number; readonly to: number }
  | { readonly do: 'crash' };

const vm = fc.nat({ max: 2 });
const creation = (at: fc.Arbitrary<number>): fc.Arbitrary<Step> =>
  fc.oneof(
    fc.record({ do: fc.constant('create' as const), vm: at, given: fc.option(fc.nat({ max: 1 }), { nil: undefined }) }),
    fc.record({ do: fc.constant('createOld' as const), vm: at }),
  );
const step: fc.Arbitrary<Step> = fc.oneof(
  creation(vm),
  fc.record({ do: fc.constantFrom('start', 'stop', 'restart', 'migrate', 'replace', 'delete'), vm }),
  fc.record({ do: fc.constant('give' as const), vm, given: fc.nat({ max: 1 }) }),
  fc.record({ do: fc.constant('snapshot' as const), vm, isOld: fc.boolean() }),
  fc.record({ do: fc.constant('restore' as const), snapshot: fc.nat({ max: 3 }), to: vm }),
  fc.record({ do: fc.constantFrom('clone', 'fork'), vm, to: vm }),
  fc.constant({ do: 'crash' as const }),
);

interface Known {
  /** UUID of the object. */
  readonly uid: string;
  /** What the next guest has to see; '' until it is known. */
  uuid: string;
  /** What the guest that runs has seen at its start; undefined without a guest. */
  guest: string | undefined;
}
interface Saved {
  readonly name: string;
  readonly of: string;
  readonly uid: string;
  readonly uuid: string;
}

const uuidOf = (machine: VirtualMachine): string =>
  canonicalUuid(machine.spec.template.spec?.domain.firmware?.uuid ?? '');

/** Takes an identity out of what is stored, as an older server left it. */
async function strip(prefix: string, name: string, template: (object: UnstructuredObject) => unknown): Promise<void> {
  await cluster.board.plane.store.write({ prefix, namespace: 'default', name }, (current) => {
    const object = structuredClone(current!.object) as UnstructuredObject;
    const { spec } = template(object) as VirtualMachine['spec']['template'];
    delete (spec!.domain as { firmware?: unknown }).firmware;
    return { type: 'put', object };
  });
}

class World {
  readonly machines = new Map<string, Known>();
  readonly snapshots: Saved[] = [];
  readonly #prefix: string;
  /** Every UUID that was ever made: a new identity must be none of them. */
  readonly #seen = new Set<string>();
  #made = 0;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  name(at: number): string {
    return `${this.#prefix}-${at}`;
  }

  async take(step: Step): Promise<void> {
    if (step.do === 'crash') return cluster.restart();
    if (step.do === 'restore') return this.#restore(step);
    const name = this.name(step.vm);
    const known = this.machines.get(name);
    if (step.do === 'create' || step.do === 'createOld') return known ? undefined : this.#create(name, step);
    if (!known) return;
    switch (step.do) {
      case 'start':
        return known.guest === undefined ? this.#start(name, known) : undefined;
      case 'stop':
        return this.#stop(name, known);
      case 'restart':
        if (known.guest === undefined) return;
        await this.#stop(name, known);
        return this.#start(name, known);
      case 'migrate':
        if (known.guest !== undefined) await cluster.untilPhase(await cluster.migrate(name), 'Succeeded');
        return;
      case 'fork':
        return this.#fork(name, known, this.name(step.to));
      case 'replace':
        return this.#replace(name);
      case 'give':
        await cluster.client.patch(VIRTUAL_MACHINES, key(name), {
          type: 'merge',
          body: { spec: { template: { spec: { domain: { firmware: { uuid: GIVEN[step.given] } } } } } },
        });
        known.uuid = canonicalUuid(GIVEN[step.given]!);
        return;
      case 'snapshot':
        return this.#snapshot(name, { known, isOld: step.isOld });
      case 'clone':
        return this.#clone(name, this.name(step.to));
      case 'delete':
        await cluster.client.delete(VIRTUAL_MACHINES, key(name));
        await gone(name);
        this.machines.delete(name);
        return;
      default:
        return step satisfies never;
    }
  }

  /** What must hold between any two steps. */
  async check(): Promise<void> {
    const { items } = await cluster.client.list(VIRTUAL_MACHINES, { namespace: 'default' });
    const own = items.filter(({ metadata }) => metadata.name?.startsWith(`${this.#prefix}-`));
    assert.deepEqual(own.map(({ metadata }) => metadata.name).sort(), [...this.machines.keys()].sort());
    const owners = new Map<string, string>();
    for (const machine of own) {
      const { name = '' } = machine.metadata;
      const known = this.machines.get(name)!;
      assert.equal(uuidOf(machine), known.uuid, `${name} is who it was`);
      if (known.guest !== undefined) {
        const vmi = await cluster.vmi(name);
        assert.equal(canonicalUuid(vmi.spec.domain.firmware?.uuid ?? ''), known.guest, `the guest of ${name}`);
      }
      for (const uuid of new Set([known.uuid, known.guest ?? known.uuid])) {
        const other = owners.get(uuid);
        if (other !== undefined)
          assert.ok(isAsked(uuid), `${name} and ${other} share ${uuid}, and nobody asked for it`);
        owners.set(uuid, name);
      }
    }
  }

  async #create(name: string, step: Extract<Step, { do: 'create' | 'createOld' }>): Promise<void> {
    const given = step.do === 'create' && step.given !== undefined ? GIVEN[step.given]! : undefined;
    const firmware = given === undefined ? {} : { firmware: { uuid: given } };
    const made = await cluster.client.create(VIRTUAL_MACHINES, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name, namespace: 'default' },
      spec: {
        runStrategy: 'Halted',
        template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' }, ...firmware } } },
      },
    } as VirtualMachine);
    let uuid = uuidOf(made);
    if (step.do === 'createOld') {
      await strip('kubevirt.io/virtualmachines', name, ({ spec }) => (spec as VirtualMachine['spec']).template);
      uuid = legacyFirmwareUuid(name);
      await eventually(`${name} has its UUID`, async () => uuidOf(await machineNamed(name)) !== '');
    } else if (given === undefined) this.#isNew(uuid);
    this.machines.set(name, { uid: made.metadata.uid ?? '', uuid, guest: undefined });
  }

  async #start(name: string, known: Known): Promise<void> {
    await setStrategy(name, 'Always');
    await runs(name);
    known.guest = known.uuid;
  }

  async #stop(name: string, known: Known): Promise<void> {
    await setStrategy(name, 'Halted');
    await eventually(`${name} has no guest`, async () => !(await instance(name)));
    known.guest = undefined;
  }

  /** A user's own manifest, in which no identity stands, as a whole. */
  async #replace(name: string): Promise<void> {
    await eventually(`${name} is replaced`, async () => {
      const machine = await machineNamed(name);
      const { firmware: _, ...domain } = machine.spec.template.spec!.domain;
      machine.spec.template.spec!.domain = { ...domain, memory: { guest: `${64 + (++this.#made % 8)}Mi` } };
      return cluster.client.update(VIRTUAL_MACHINES, machine).catch(() => undefined);
    });
  }

  async #snapshot(name: string, { known, isOld }: { known: Known; isOld: boolean }): Promise<void> {
    const snapshot = `${name}-s${++this.#made}`;
    await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineSnapshot',
      metadata: { name: snapshot, namespace: 'default' },
      spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name } },
    } as VirtualMachineSnapshot);
    const { status } = await until(VIRTUAL_MACHINE_SNAPSHOTS, snapshot, (each) => each.status?.readyToUse === true);
    await until(VIRTUAL_MACHINES, name, (each) => each.status?.snapshotInProgress === undefined);
    let uuid = known.guest ?? known.uuid;
    if (isOld) {
      // Taken by an older server: no UUID in it, and its machine has that of the name or is another by now.
      await strip(
        'snapshot.kubevirt.io/virtualmachinesnapshotcontents',
        status?.virtualMachineSnapshotContentName ?? '',
        ({ spec }) => (spec as { source: { virtualMachine: VirtualMachine } }).source.virtualMachine.spec.template,
      );
      uuid = legacyFirmwareUuid(name);
    }
    this.snapshots.push({ name: snapshot, of: name, uid: known.uid, uuid });
  }

  async #restore(step: Extract<Step, { do: 'restore' }>): Promise<void> {
    const snapshot = this.snapshots[step.snapshot % Math.max(1, this.snapshots.length)];
    if (!snapshot) return;
    const target = this.name(step.to);
    const known = this.machines.get(target);
    // Only the machine itself, or one that is not there, can be restored to.
    if (known && (known.uid !== snapshot.uid || target !== snapshot.of)) return;
    if (known) await this.#stop(target, known);
    const restore = `${target}-r${++this.#made}`;
    await cluster.client.create(VIRTUAL_MACHINE_RESTORES, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineRestore',
      metadata: { name: restore, namespace: 'default' },
      spec: {
        target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
        virtualMachineSnapshotName: snapshot.name,
      },
    } as VirtualMachineRestore);
    await until(VIRTUAL_MACHINE_RESTORES, restore, ({ status }) => status?.complete === true);
    const machine = await machineNamed(target);
    await eventually(
      `${target} is free`,
      async () => (await machineNamed(target)).status?.restoreInProgress === undefined,
    );
    if (target === snapshot.of) assert.equal(uuidOf(machine), snapshot.uuid, 'the machine that was saved');
    else this.#isNew(uuidOf(machine));
    this.machines.set(target, { uid: machine.metadata.uid ?? '', uuid: uuidOf(machine), guest: undefined });
    await cluster.client.delete(VIRTUAL_MACHINE_RESTORES, key(restore));
  }

  async #clone(source: string, target: string): Promise<void> {
    if (this.machines.has(target)) return;
    const name = `${source}-c${++this.#made}`;
    await cluster.client.create(VIRTUAL_MACHINE_CLONES, {
      apiVersion: 'clone.kubevirt.io/v1beta1',
      kind: 'VirtualMachineClone',
      metadata: { name, namespace: 'default' },
      spec: {
        source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source },
        target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
      },
    } as VirtualMachineClone);
    await until(VIRTUAL_MACHINE_CLONES, name, ({ status }) => status?.phase === 'Succeeded');
    for (const each of [source, target])
      await eventually(`${each} is free`, async () => {
        const { status } = await machineNamed(each);
        return status?.snapshotInProgress === undefined && status?.restoreInProgress === undefined;
      });
    const machine = await machineNamed(target);
    this.#isNew(uuidOf(machine));
    this.machines.set(target, { uid: machine.metadata.uid ?? '', uuid: uuidOf(machine), guest: undefined });
  }

  async #fork(source: string, known: Known, target: string): Promise<void> {
    if (this.machines.has(target)) return;
    // What was changed since its guest was started has to be in it before it can be forked.
    if (known.guest !== undefined) await this.#stop(source, known);
    await this.#start(source, known);
    const name = `${source}-f${++this.#made}`;
    await cluster.client.create(VIRTUAL_MACHINE_SNAPSHOTS, {
      apiVersion: 'snapshot.kubevirt.io/v1beta1',
      kind: 'VirtualMachineSnapshot',
      metadata: {
        name,
        namespace: 'default',
        annotations: { 'coracle.dev/include-memory': 'true', 'coracle.dev/fork-into': target },
      },
      spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: source } },
    } as VirtualMachineSnapshot);
    await runs(target);
    await eventually(`${name} is over`, async () => {
      const snapshot = await orAbsent(cluster.client.get(VIRTUAL_MACHINE_SNAPSHOTS, key(name)));
      return !snapshot && (await machineNamed(source)).status?.snapshotInProgress === undefined;
    });
    const machine = await machineNamed(target);
    this.#isNew(uuidOf(machine));
    const uuid = uuidOf(machine);
    this.machines.set(target, { uid: machine.metadata.uid ?? '', uuid, guest: uuid });
  }

  #isNew(uuid: string): void {
    assert.match(uuid, /^[0-9a-f-]{14}4/, 'a random UUID');
    assert.ok(!this.#seen.has(uuid) && !isAsked(uuid), 'a new one');
    this.#seen.add(uuid);
  }

  async end(): Promise<void> {
    for (const name of this.machines.keys()) await cluster.client.delete(VIRTUAL_MACHINES, key(name));
    for (const { name } of this.snapshots) await cluster.client.delete(VIRTUAL_MACHINE_SNAPSHOTS, key(name));
    for (const name of this.machines.keys()) await gone(name);
  }
}

const isAsked = (uuid: string): boolean => GIVEN.some((given) => canonicalUuid(given) === uuid);
const setStrategy = (name: string, runStrategy: string): Promise<unknown> =>
  cluster.client.patch(VIRTUAL_MACHINES, key(name), { type: 'merge', body: { spec: { runStrategy } } });
const orAbsent = async <T>(asked: Promise<T>): Promise<T | undefined> =>
  asked.catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
const instance = (name: string) => orAbsent(cluster.client.get(VIRTUAL_MACHINE_INSTANCES, key(name)));
const gone = (name: string): Promise<unknown> =>
  eventually(`${name} is gone`, async () => !(await orAbsent(machineNamed(name))) && !(await instance(name)));
const runs = (name: string): Promise<unknown> =>
  eventually(`${name} runs`, async () => (await instance(name))?.status?.phase === 'Running');

let runsMade = 0;
async function live(steps: readonly Step[]): Promise<void> {
  const world = new World(`m${++runsMade}`);
  for (const each of steps) {
    await world.take(each);
    await world.check();
  }
  await world.end();
}

// S-620
test(
  'the life of a machine of an older server: upgrade, snapshots old and new, restores, a clone, a fork',
  {
    timeout: 600_000,
  },
  () =>
    live([
      { do: 'createOld', vm: 0 },
      { do: 'start', vm: 0 },
      { do: 'snapshot', vm: 0, isOld: true },
      { do: 'snapshot', vm: 0, isOld: false },
      { do: 'give', vm: 0, given: 0 },
      { do: 'restart', vm: 0 },
      { do: 'restore', snapshot: 0, to: 0 },
      { do: 'start', vm: 0 },
      { do: 'restore', snapshot: 0, to: 1 },
      { do: 'start', vm: 1 },
      { do: 'restore', snapshot: 1, to: 2 },
      { do: 'delete', vm: 0 },
      { do: 'restore', snapshot: 1, to: 0 },
      { do: 'delete', vm: 2 },
      { do: 'clone', vm: 0, to: 2 },
      { do: 'start', vm: 2 },
      { do: 'crash' },
      { do: 'replace', vm: 2 },
      { do: 'restart', vm: 2 },
      { do: 'migrate', vm: 2 },
      { do: 'delete', vm: 1 },
      { do: 'fork', vm: 0, to: 1 },
      { do: 'migrate', vm: 1 },
      { do: 'restart', vm: 1 },
    ]),
);

// S-620: Whatever users do with machines in whatever order (create, edit, restart, migrate, snapshot, restore, clone,
//   fork, delete, crashes of controllers): no UUID changes after the first boot, and no two machines share one, unless
//   a user asked for it.
test('any sequence', { timeout: 600_000 }, () =>
  fc.assert(
    fc.asyncProperty(
      fc.tuple(creation(fc.constant(0)), creation(fc.constant(1))),
      fc.array(step, { minLength: 6, maxLength: 14 }),
      (first, then) => live([...first, ...then]),
    ),
    // A sequence that fails is as short as it is going to be: each takes real time.
    { numRuns: Number(process.env['CORACLE_IDENTITY_RUNS'] ?? 6), endOnFailure: true },
  ),
);
