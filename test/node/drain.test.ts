/**
 * `kubectl drain` on three agents with real guests: one test, since a cluster with guests is dear. What moves is proved by
 * the guest itself: its counter of tenths of a second never starts anew.
 */
// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { NODES, POD_DISRUPTION_BUDGETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const DRAIN = ['--delete-emptydir-data', '--ignore-daemonsets', '--force'];
const WAIT_MS = 90_000;

interface Drain {
  readonly done: Promise<{ readonly code: number | null; readonly output: string }>;
  /** What it has said so far. */
  output(): string;
}

function drain(kubeconfig: string, node: string, ...more: readonly string[]): Drain {
  const env = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', KUBECONFIG: kubeconfig };
  const child = spawn('kubectl', ['drain', node, ...DRAIN, ...more], { env, timeout: 2 * WAIT_MS });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  const done = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, output })),
  );
  return { done, output: () => output };
}

// S-199: `kubectl drain` and `coracle drain` end: guests move, start anew, or wait for somebody who is named;
//   `--what-if` changes nothing. An uncordon ends `coracle drain` with 1, and it evicts nothing more.
// Compat KubeVirt's API, P0, yes: `kubectl drain` with each strategy, twice at once, with a user's budget, with an
//   uncordon
test('kubectl drain: guests move, start anew, or wait for somebody, and every drain ends', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await importTinyGuest(at.data);
  const up = await at.up('--nodes', '3');
  assert.equal(up.code, 0, up.stderr);
  const { client, close } = adminOf(at.data);
  t.after(close);
  const names = await eventually('three nodes', async () => {
    const { items } = await client.list(NODES);
    const ready = items.filter(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    );
    return ready.length === 3 ? ready.map(({ metadata }) => metadata.name ?? '').sort() : undefined;
  });
  const [first = '', second = '', third = ''] = names;

  const cordon = (name: string, unschedulable: boolean) =>
    client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
  const key = (name: string) => ({ namespace: 'default', name });
  const vmi = (name: string): Promise<VirtualMachineInstance> => client.get(VIRTUAL_MACHINE_INSTANCES, key(name));
  const untilVmi = (name: string, what: string, check: (one: VirtualMachineInstance) => boolean) =>
    eventually(
      `${name} ${what}`,
      async () => {
        const found = await vmi(name);
        return check(found) ? found : undefined;
      },
      WAIT_MS,
    );
  const addressOf = ({ status }: VirtualMachineInstance): string =>
    hostAddressOf(status?.interfaces?.[0]?.ipAddress ?? '');
  const heartbeat = (address: string): Promise<number> =>
    eventually(`a heartbeat at ${address}`, async () => {
      const response = await fetch(`http://${address}:${usualHostPort(8080)}/heartbeat`, {
        signal: AbortSignal.timeout(10_000),
      });
      return response.ok ? Number(await response.text()) : undefined;
    });
  const migrationsOf = async (name: string) =>
    (await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, { namespace: 'default' })).items.filter(
      ({ spec }) => spec.vmiName === name,
    );
  const qemusOf = async (uid: string | undefined): Promise<number> =>
    (await findProcesses((argv) => /qemu-system/.test(argv[0] ?? '') && argv.some((word) => word.includes(uid ?? '-'))))
      .length;
  const start = async (name: string, evictionStrategy: string): Promise<VirtualMachineInstance> => {
    const machine = tinyVm(name, ({ spec }) => {
      const template = spec.template as { metadata: { labels: object }; spec: Record<string, unknown> };
      template.metadata.labels = { app: name };
      Object.assign(template.spec, { evictionStrategy, terminationGracePeriodSeconds: 0 });
    });
    await client.create(VIRTUAL_MACHINES, machine);
    const running = await untilVmi(name, 'runs', (one) => one.status?.phase === 'Running' && addressOf(one) !== '');
    await heartbeat(addressOf(running));
    return running;
  };

  // Each strategy, all on one node.
  for (const name of [second, third]) await cordon(name, true);
  const [live, free, outside] = await Promise.all([
    start('live', 'LiveMigrate'),
    start('free', 'None'),
    start('outside', 'External'),
  ]);
  assert.deepEqual(
    [live, free, outside].map(({ status }) => status?.nodeName),
    [first, first, first],
  );
  await untilVmi(
    'live',
    'can move',
    ({ status }) => status?.conditions?.some((one) => one.type === 'LiveMigratable' && one.status === 'True') ?? false,
  );
  for (const name of [second, third]) await cordon(name, false);
  const address = addressOf(live);
  let beats = await heartbeat(address);
  /** The guest is the same one, and has gone on. */
  const wentOn = async (): Promise<void> => {
    const now = await heartbeat(address);
    assert.ok(now > beats, `the counter went from ${beats} to ${now}`);
    beats = now;
    const present = await vmi('live');
    assert.deepEqual([present.metadata.uid, present.status?.phase], [live.metadata.uid, 'Running']);
    assert.equal(await qemusOf(live.metadata.uid), 1, 'one QEMU');
  };

  await t.test('each strategy: one moves, one starts anew elsewhere, one waits for its controller', async () => {
    const draining = drain(at.kubeconfig, first);
    const marked = await untilVmi('outside', 'marked', ({ status }) => status?.evacuationNodeName === first);
    await untilVmi('live', 'moved', ({ status }) => status?.nodeName !== first && !status?.evacuationNodeName);
    assert.equal((await vmi('outside')).metadata.uid, marked.metadata.uid, 'nobody but its controller touches it');
    assert.deepEqual(await migrationsOf('outside'), []);
    // The outside controller is ready.
    await client.delete(VIRTUAL_MACHINE_INSTANCES, key('outside'), { propagationPolicy: 'Foreground' });
    const { code, output } = await draining.done;
    assert.equal(code, 0, output);
    assert.match(output, /Eviction triggered evacuation of VMI "default\/live"/);
    await wentOn();
    for (const [name, old] of [
      ['free', free],
      ['outside', outside],
    ] as const) {
      const anew = await untilVmi(
        name,
        'runs anew',
        (one) => one.metadata.uid !== old.metadata.uid && one.status?.phase === 'Running',
      );
      assert.notEqual(anew.status?.nodeName, first);
    }
  });

  await t.test('two drains at once: everything ends up on the node that is left', async () => {
    await cordon(first, false);
    await client.delete(VIRTUAL_MACHINES, key('outside'));
    await eventually('outside is gone', async () =>
      (await client.list(VIRTUAL_MACHINE_INSTANCES)).items.length === 2 ? true : undefined,
    );
    const outcomes = await Promise.all([second, third].map((name) => drain(at.kubeconfig, name).done));
    for (const { code, output } of outcomes) assert.equal(code, 0, output);
    assert.equal((await vmi('live')).status?.nodeName, first);
    await wentOn();
    await untilVmi('free', 'runs', ({ status }) => status?.phase === 'Running' && status.nodeName === first);
    for (const name of [second, third]) await cordon(name, false);
  });

  await t.test("a budget of the user's holds what would be killed, and does not hold up what moves", async () => {
    const budget = (name: string) => ({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: 'default' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: name } } },
    });
    for (const name of ['live', 'free']) await client.create(POD_DISRUPTION_BUDGETS, budget(name));
    const draining = drain(at.kubeconfig, first);
    await untilVmi('live', 'moved', ({ status }) => status?.nodeName !== first);
    await eventually('the drain to name the budget', async () =>
      /would violate the pod's disruption budget/.test(draining.output()) ? true : undefined,
    );
    const held = await vmi('free');
    assert.deepEqual([held.status?.phase, held.status?.nodeName], ['Running', first]);
    await client.delete(POD_DISRUPTION_BUDGETS, key('free'));
    const { code, output } = await draining.done;
    assert.equal(code, 0, output);
    await wentOn();
    await client.delete(POD_DISRUPTION_BUDGETS, key('live'));
    await cordon(first, false);
  });

  await t.test('uncordon in the middle: the evacuation is called off and the guest stays', async () => {
    // No migration gets its turn, so that the middle lasts.
    const settings = (parallelMigrationsPerCluster: number | null) =>
      client.patch(
        KUBEVIRTS,
        { namespace: 'kubevirt', name: 'kubevirt' },
        { type: 'merge', body: { spec: { configuration: { migrations: { parallelMigrationsPerCluster } } } } },
      );
    await settings(0);
    const before = await vmi('live');
    const node = before.status?.nodeName ?? '';
    const finished = (await migrationsOf('live')).length;
    const draining = drain(at.kubeconfig, node, '--timeout=6s');
    await untilVmi('live', 'noted', ({ metadata }) => metadata.annotations?.['coracle.dev/drained-from'] === node);
    await eventually('a migration that waits', async () =>
      (await migrationsOf('live')).length > finished ? true : undefined,
    );
    const { code } = await draining.done;
    assert.notEqual(code, 0, 'the drain gave up');
    await cordon(node, false);
    await untilVmi(
      'live',
      'unmarked',
      ({ metadata, status }) =>
        !status?.evacuationNodeName && metadata.annotations?.['coracle.dev/drained-from'] === undefined,
    );
    await eventually('the migration is taken back', async () =>
      (await migrationsOf('live')).length === finished ? true : undefined,
    );
    await settings(null);
    assert.equal((await vmi('live')).status?.nodeName, node);
    await wentOn();
  });
});
