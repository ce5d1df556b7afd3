/**
 * The instance type and the preference of a machine vanish at every step between its creation and its first start: once
 * before each call the VirtualMachine controller makes. The machine then starts with exactly what they said, or it does
 * not start and a condition says what is missing; never something in between (kubevirt issue 8142).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '../../packages/client/src/client.ts';
import { COMPONENTS, runComponent } from '../../packages/coracle/src/compose/components.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';
import { promptClock } from '../testkit/prompt-clock.ts';

const NAMESPACED = '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const REVISIONS = '/apis/apps/v1/namespaces/default/controllerrevisions';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

const object = (kind: string, name: string, spec: object) => ({
  apiVersion: kind === 'VirtualMachine' ? 'kubevirt.io/v1' : 'instancetype.kubevirt.io/v1beta1',
  kind,
  metadata: { name },
  spec,
});
const SMALL = object('VirtualMachineInstancetype', 'small', { cpu: { guest: 3 }, memory: { guest: '96Mi' } });
const LIKED = object('VirtualMachinePreference', 'liked', {
  cpu: { preferredCPUTopology: 'cores' },
  machine: { preferredMachineType: 'pc-q35-6.2' },
});
const MACHINE = object('VirtualMachine', 'vm', {
  runStrategy: 'Always',
  instancetype: { kind: SMALL.kind, name: 'small' },
  preference: { kind: LIKED.kind, name: 'liked' },
  template: { spec: { domain: { devices: {} } } },
});

/** Both gone. */
async function vanish(plane: TestPlane): Promise<void> {
  await plane.admin(`DELETE ${NAMESPACED}/virtualmachineinstancetypes/small`);
  await plane.admin(`DELETE ${NAMESPACED}/virtualmachinepreferences/liked`);
}

/** A client that does `act` before its call number `at` (counted from 0), whatever the call is. */
function interrupted(client: Client, at: number, act: () => Promise<void>): { client: Client; calls: () => number } {
  let calls = 0;
  let acting: Promise<void> | undefined;
  const before = async (): Promise<void> => {
    if (calls++ === at) acting = act();
    await acting;
  };
  const wrapped = Object.fromEntries(
    (['get', 'create', 'update', 'patch', 'delete'] as const).map((verb) => [
      verb,
      async (...call: unknown[]) => {
        // Events are written beside the work and decide nothing.
        if ((call[0] as { kind?: string }).kind !== 'Event') await before();
        return (client[verb] as (...call: unknown[]) => Promise<unknown>)(...call);
      },
    ]),
  );
  return { client: { ...client, ...wrapped } as Client, calls: () => calls };
}

interface Outcome {
  readonly instance: Any;
  readonly reason: string | undefined;
  readonly calls: number;
}

/** When the two vanish: never, or before the controller is there; else before its call of that number. */
const NEVER = -1;
const BEFORE_CONTROLLER = -2;

/** One life: everything is created, `at` decides when the two vanish, `captured` whether admission's copies stay. */
async function live(at: number, captured: boolean): Promise<Outcome> {
  const plane = await startPlane();
  const stop = new AbortController();
  try {
    await plane.admin(`POST ${NAMESPACED}/virtualmachineinstancetypes`, SMALL);
    await plane.admin(`POST ${NAMESPACED}/virtualmachinepreferences`, LIKED);
    await plane.admin(`POST ${VMS}`, MACHINE);
    if (!captured)
      for (const { metadata } of (await plane.admin(`GET ${REVISIONS}`)).items)
        await plane.admin(`DELETE ${REVISIONS}/${metadata.name}`);
    if (at === BEFORE_CONTROLLER) await vanish(plane);
    const component = COMPONENTS.find(({ name }) => name === 'vm')!;
    const own = interrupted(plane.plane.clientFor(component.account), at, () => vanish(plane));
    const running = runComponent({
      component,
      client: own.client,
      facts: { rootCa: '' },
      clock: promptClock,
      log: silentLogger,
      signal: stop.signal,
    });
    const found = await eventually(
      async () => {
        const answer = await plane.ask(`GET ${VMS.replace('machines', 'machineinstances')}/vm`, {
          as: ['admin', 'system:masters'],
        });
        const machine = await plane.admin(`GET ${VMS}/vm`);
        const reason = machine.status?.conditions?.find(({ type }: Any) => type === 'Failure')?.reason;
        return { instance: answer.status === 200 ? answer.json : undefined, reason, machine };
      },
      ({ instance, reason, machine }) =>
        reason !== undefined || (instance !== undefined && machine.status?.preferenceRef?.controllerRevisionRef),
    );
    stop.abort();
    await running;
    return { instance: found.instance, reason: found.reason, calls: own.calls() };
  } finally {
    stop.abort();
    await plane.stop();
  }
}

function assertWhole({ instance }: Outcome, step: string): void {
  const { cpu, memory, machine } = instance.spec.domain;
  assert.deepEqual([cpu.sockets, cpu.cores, cpu.threads], [1, 3, 1], step);
  assert.equal(memory.guest, '96Mi', step);
  assert.equal(machine.type, 'pc-q35-6.2', step);
}

for (const captured of [true, false]) {
  const where = captured ? 'in one server' : 'where admission captured nothing';
  // S-176
  test(`a machine is never half-expanded, ${where}`, { timeout: 600_000 }, async () => {
    const { calls } = await live(NEVER, captured);
    assert.ok(calls >= 3, `${calls} calls`);
    const early = await live(BEFORE_CONTROLLER, captured);
    if (captured) assertWhole(early, 'deleted before the controller runs');
    else assert.equal(early.reason, 'FailedFindInstancetype', 'deleted before the controller runs');
    for (let at = 0; at < calls; at++) {
      const outcome = await live(at, captured);
      const step = `deleted before call ${at}`;
      if (outcome.instance !== undefined) assertWhole(outcome, step);
      else assert.match(outcome.reason ?? '', /^FailedFind(Instancetype|Preference)$/, step);
      if (captured) assert.equal(outcome.reason, undefined, `${step}: the copy is there`);
    }
  });
}

// S-176
test('a machine starts with what was validated, though the instance type was edited before the controller ran', async () => {
  const plane = await startPlane();
  try {
    await plane.admin(`POST ${NAMESPACED}/virtualmachineinstancetypes`, SMALL);
    await plane.admin(`POST ${NAMESPACED}/virtualmachinepreferences`, LIKED);
    await plane.admin(`POST ${VMS}`, MACHINE);
    await plane.admin(`PATCH ${NAMESPACED}/virtualmachineinstancetypes/small`, { spec: { memory: { guest: '1Gi' } } });
    await plane.run(['vm'], { rootCa: '' });
    const instances = VMS.replace('machines', 'machineinstances');
    const { items } = await eventually(
      () => plane.admin(`GET ${instances}`),
      (list) => list.items.length > 0,
    );
    assert.equal(items[0].spec.domain.memory.guest, '96Mi');
    const copies = (await plane.admin(`GET ${REVISIONS}`)).items.filter(
      ({ metadata }: Any) => !metadata.name.startsWith('revision-start-vm-'),
    );
    assert.equal(copies.length, 2, 'captured once');
  } finally {
    await plane.stop();
  }
});

// S-176: Captured copies of an instance type and a preference are stored with the machine in one commit; the machine
//   starts with what was validated.
test('a machine and its copies are one commit', { timeout: 600_000 }, async () => {
  const plane = await startPlane();
  try {
    await plane.admin(`POST ${NAMESPACED}/virtualmachineinstancetypes`, SMALL);
    await plane.admin(`POST ${NAMESPACED}/virtualmachinepreferences`, LIKED);
    const before = plane.plane.store.stats();
    await plane.admin(`POST ${VMS}`, MACHINE);
    const after = plane.plane.store.stats();
    assert.equal(after.commits - before.commits, 1);
    assert.equal(after.writes - before.writes, 3);
  } finally {
    await plane.stop();
  }
});
