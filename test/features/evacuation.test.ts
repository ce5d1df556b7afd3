import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { NODES, POD_DISRUPTION_BUDGETS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Pod, PodDisruptionBudget } from '../../packages/apimachinery/src/types/types.ts';
import {
  KUBEVIRTS,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
  type VirtualMachineInstance,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { seed } from '../testkit/seed.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster();
});
after(async () => {
  await cluster.stop();
  // Every component had the rights it names and no others, and none of them stumbled.
  const unexpected = cluster.errors.filter(({ fields }) => !String(fields['error']).includes('exceeded quota'));
  assert.deepEqual(unexpected, []);
});

const key = (name: string) => ({ namespace: 'default', name });
const cordon = (name: string, unschedulable = true) =>
  cluster.client.patch(NODES, { namespace: '', name }, { type: 'merge', body: { spec: { unschedulable } } });
const limits = (migrations: object | null) =>
  cluster.client.patch(
    KUBEVIRTS,
    { namespace: 'kubevirt', name: 'kubevirt' },
    { type: 'merge', body: { spec: { configuration: { migrations } } } },
  );
/** All new guests start on node-1. */
beforeEach(async () => {
  for (const name of ['node-2', 'node-3']) await cordon(name);
});
afterEach(async () => {
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.failure = undefined;
    node.migratable = true;
    node.nudge();
  }
  for (const { metadata } of (await cluster.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' })).items)
    await cluster.client.delete(VIRTUAL_MACHINE_INSTANCES, key(metadata.name ?? ''));
  await eventually('all are gone', async () => {
    const { items } = await cluster.client.list(VIRTUAL_MACHINE_INSTANCES, { namespace: 'default' });
    return items.length === 0 && (await cluster.migrations()).length === 0;
  });
  for (const name of cluster.nodes.keys()) await cordon(name, false);
  await limits(null);
});
const openOthers = async (): Promise<void> => {
  for (const name of ['node-2', 'node-3']) await cordon(name, false);
};

const launcherOf = async (name: string): Promise<Pod> => {
  const vmi = await cluster.vmi(name);
  const { items } = await cluster.client.list(PODS, {
    namespace: 'default',
    labelSelector: `kubevirt.io/created-by=${vmi.metadata.uid}`,
  });
  const pod = items.find(({ spec, status }) => spec.nodeName === vmi.status?.nodeName && status?.phase === 'Running');
  if (!pod) throw new Error(`no launcher of ${name}`);
  return pod;
};
/** As kubectl drain does for one Pod. */
const evict = async (name: string, more: object = {}) => {
  const { metadata } = await launcherOf(name);
  return cluster.board.send('POST', `/api/v1/namespaces/default/pods/${metadata.name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: metadata.name, ...more },
  });
};
const moved = (name: string) =>
  cluster.untilVmi(name, 'moved', ({ status }) => status?.nodeName !== 'node-1' && !status?.evacuationNodeName);
const condition = ({ status }: VirtualMachineInstance, type: string) =>
  status?.conditions?.find((one) => one.type === type);
const budgetOf = async (name: string): Promise<PodDisruptionBudget | undefined> => {
  const { metadata } = await cluster.vmi(name);
  const { items } = await cluster.client.list(POD_DISRUPTION_BUDGETS, { namespace: 'default' });
  return items.find((budget) => budget.metadata.ownerReferences?.[0]?.uid === metadata.uid);
};

// Compat KubeVirt's API, P0, yes: `evacuationNodeName`: set by an eviction, gone with the move
test('an evicted instance moves, once, and the mark goes with it', async () => {
  await cluster.run('moves', { evictionStrategy: 'LiveMigrate' });
  await openOthers();
  await cordon('node-1');
  for (const node of cluster.nodes.values()) node.holds.add('finish');
  assert.equal((await evict('moves')).status, 429);
  const marked = await cluster.untilVmi('moves', 'marked', (vmi) => condition(vmi, 'EvictionRequested') !== undefined);
  assert.equal(marked.status?.evacuationNodeName, 'node-1');
  const [migration] = await eventually('a migration', async () => {
    const found = await cluster.migrations('moves');
    return found.length > 0 && found;
  });
  assert.match(migration?.metadata.name ?? '', /^kubevirt-evacuation-/);
  assert.equal(migration?.metadata.annotations?.['kubevirt.io/evacuationMigration'], 'node-1');
  assert.equal(migration?.spec.priority, 'system-critical');
  await cluster.untilPhase(migration?.metadata.name ?? '', 'Running');
  const noteOf = ({ metadata }: Pod) => metadata.annotations?.['descheduler.alpha.kubernetes.io/eviction-in-progress'];
  await eventually('a note for the descheduler', async () => noteOf(await launcherOf('moves')) === 'true');
  assert.match((await evict('moves')).json.message, /Evacuation in progress: /);
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.nudge();
  }
  await moved('moves');
  await cluster.untilVmi('moves', 'unmarked', (vmi) => condition(vmi, 'EvictionRequested') === undefined);
  assert.equal((await cluster.migrations('moves')).length, 1);
  assert.equal(noteOf(await launcherOf('moves')), undefined);
  const noted = await cluster.untilVmi(
    'moves',
    'without a note',
    ({ metadata }) => metadata.annotations?.['coracle.dev/drained-from'] === undefined,
  );
  assert.equal(noted.status?.phase, 'Running');
});

// S-274: Who drains reads why a migration failed while the next one waits; times from the creation to each phase are
//   counted.
// Compat KubeVirt's API, P2, yes: evictions of an instance whose last migration failed say why, behind upstream's words
test('who drains reads why a migration failed while the next one waits, and the times of both are counted', async () => {
  await cluster.run('again', { evictionStrategy: 'LiveMigrate' });
  await openOthers();
  await cordon('node-1');
  for (const node of cluster.nodes.values()) {
    node.failure = 'no room';
    node.holds.add('finish');
  }
  assert.equal((await evict('again')).status, 429);
  await cluster.untilVmi('again', 'failed', ({ status }) => status?.migrationState?.failed === true);
  const refused = await evict('again');
  assert.equal(refused.status, 429);
  assert.match(refused.json.message, /Evacuation in progress: Eviction triggered evacuation of VMI "default\/again"; /);
  assert.match(refused.json.message, /; its last migration failed at \S+ and is tried again: no room$/);

  const next = await eventually('the next one', async () =>
    (await cluster.migrations('again')).find(({ status }) => status?.phase === 'Pending'),
  );
  for (const node of cluster.nodes.values()) {
    node.failure = undefined;
    node.holds.clear();
  }
  await cluster.client.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, key(next.metadata.name ?? ''), {
    type: 'merge',
    body: { metadata: { annotations: { 'kubevirt.io/func-test-ignore-migration-backoff': '' } } },
  });
  await moved('again');
  await cluster.untilPhase(next.metadata.name ?? '', 'Succeeded');
  const metrics = (await cluster.board.send('GET', '/metrics')).json as string;
  for (const phase of ['Pending', 'Failed', 'Succeeded'])
    assert.match(
      metrics,
      new RegExp(
        `^kubevirt_vmi_migration_phase_transition_time_from_creation_seconds_count{phase="${phase}"} [1-9]`,
        'm',
      ),
    );
});

// Compat KubeVirt's API, P2, yes: evictions by the descheduler
test('the descheduler tidies up: lowest priority, and its mark outlives an uncordon', async () => {
  await cluster.run('tidy', { evictionStrategy: 'LiveMigrate' });
  await cordon('node-1');
  const asked = { annotations: { 'requested-by': 'sigs.k8s.io/descheduler' } };
  assert.equal((await evict('tidy', asked)).status, 429);
  const [migration] = await eventually('a migration', async () => {
    const found = await cluster.migrations('tidy');
    return found.length > 0 && found;
  });
  assert.equal(migration?.spec.priority, 'system-maintenance');
  await cordon('node-1', false);
  await openOthers();
  await moved('tidy');
  await cluster.untilVmi(
    'tidy',
    'without its source',
    ({ metadata }) => metadata.annotations?.['kubevirt.io/eviction-source'] === undefined,
  );
});

// Compat KubeVirt's API, P2, yes: the drain taint (`nodeDrainTaintKey`)
test('a drain taint moves what wants to move, without a mark', async () => {
  await cluster.run('tainted', { evictionStrategy: 'LiveMigrate' });
  await cluster.run('stays', { evictionStrategy: 'None' });
  await cluster.run('outside', { evictionStrategy: 'External' });
  await openOthers();
  const taints = [{ key: 'kubevirt.io/drain', effect: 'NoSchedule' }];
  await cluster.client.patch(NODES, { namespace: '', name: 'node-1' }, { type: 'merge', body: { spec: { taints } } });
  await moved('tainted');
  await cluster.client.patch(
    NODES,
    { namespace: '', name: 'node-1' },
    { type: 'merge', body: { spec: { taints: null } } },
  );
  assert.deepEqual([...(await cluster.migrations('stays')), ...(await cluster.migrations('outside'))], []);
});

// S-196
test('uncordon in the middle: what waits is called off, what moves arrives', async () => {
  await limits({ parallelOutboundMigrationsPerNode: 1 });
  for (const name of ['mid-1', 'mid-2', 'mid-3']) await cluster.run(name, { evictionStrategy: 'LiveMigrate' });
  await cluster.run('mid-x', { evictionStrategy: 'External' });
  await openOthers();
  await cordon('node-1');
  for (const node of cluster.nodes.values()) node.holds.add('finish');
  for (const name of ['mid-1', 'mid-2', 'mid-3', 'mid-x']) assert.equal((await evict(name)).status, 429);
  await eventually('three migrations, one under way', async () => {
    const phases = (await cluster.migrations()).map(({ status }) => status?.phase).sort();
    return phases.join() === 'Pending,Pending,Running';
  });
  for (const name of ['mid-1', 'mid-2', 'mid-3', 'mid-x'])
    await cluster.untilVmi(
      name,
      'noted',
      ({ metadata }) => metadata.annotations?.['coracle.dev/drained-from'] === 'node-1',
    );
  await cordon('node-1', false);
  await eventually('only the one under way is left', async () => {
    const left = await cluster.migrations();
    return left.length === 1 && left[0]?.status?.phase === 'Running';
  });
  for (const name of ['mid-1', 'mid-2', 'mid-3', 'mid-x']) {
    const vmi = await cluster.untilVmi(
      name,
      'unmarked',
      ({ metadata, status }) =>
        !status?.evacuationNodeName && metadata.annotations?.['coracle.dev/drained-from'] === undefined,
    );
    assert.equal(vmi.status?.phase, 'Running');
    assert.ok(
      (
        await eventually('an event', async () => {
          const found = (await cluster.events(name)).filter((event) => event.includes('EvacuationCancelled'));
          return found.length > 0 && found;
        })
      ).length > 0,
    );
  }
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.nudge();
  }
  const where = await eventually('one has moved', async () => {
    const nodes = await Promise.all(
      ['mid-1', 'mid-2', 'mid-3'].map(async (name) => (await cluster.vmi(name)).status?.nodeName),
    );
    return nodes.filter((node) => node !== 'node-1').length === 1 && nodes;
  });
  assert.equal(where.filter((node) => node === 'node-1').length, 2);
});

// S-196: Evicted instances move, no more at a time than the limits, each in its turn; an uncordon calls off what waits
//   and lets arrive what moves.
// Compat KubeVirt's API, P1, yes: limits for the cluster and each node, priorities
test('no more at a time than the limits, and everything gets its turn', async () => {
  await limits({ parallelMigrationsPerCluster: 3, parallelOutboundMigrationsPerNode: 2 });
  const names = Array.from({ length: 6 }, (_, i) => `many-${i}`);
  for (const name of names) await cluster.run(name, { evictionStrategy: 'LiveMigrate' });
  await openOthers();
  await cordon('node-1');
  for (const node of cluster.nodes.values()) node.holds.add('finish');
  for (const name of names) assert.equal((await evict(name)).status, 429);
  const phases = async () => (await cluster.migrations()).map(({ status }) => status?.phase ?? '').sort();
  await eventually(
    'two leave the node, the others wait',
    async () => (await phases()).join() === 'Pending,Pending,Pending,Pending,Running,Running',
  );
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.nudge();
  }
  for (const name of names) await moved(name);
});

test('an instance that cannot move is reported and stays', async () => {
  for (const node of cluster.nodes.values()) node.migratable = false;
  await cluster.run('stuck', { evictionStrategy: 'LiveMigrate' });
  await openOthers();
  const taints = [{ key: 'kubevirt.io/drain', effect: 'NoSchedule' }];
  await cluster.client.patch(NODES, { namespace: '', name: 'node-1' }, { type: 'merge', body: { spec: { taints } } });
  await eventually('an event', async () =>
    (await cluster.events('stuck')).includes('Normal FailedCreate VirtualMachineInstance is not migrateable'),
  );
  await cluster.client.patch(
    NODES,
    { namespace: '', name: 'node-1' },
    { type: 'merge', body: { spec: { taints: null } } },
  );
  assert.deepEqual(await cluster.migrations('stuck'), []);
});

// S-198: An External instance is marked and left alone, everybody can see who waits for whom, and whoever watches the
//   marks can empty the node.
// Compat KubeVirt's API, P0, yes: External: marked, never moved by us
test('External: marked and left alone, and everybody can see who waits for whom', async () => {
  await cluster.run('ext', { evictionStrategy: 'External' });
  await openOthers();
  await cordon('node-1');
  assert.equal((await evict('ext')).status, 429);
  const vmi = await cluster.untilVmi('ext', 'marked', (one) => condition(one, 'EvictionRequested') !== undefined);
  assert.match(condition(vmi, 'EvictionRequested')?.message ?? '', /node node-1,.* outside controller/);
  await eventually('an event', async () =>
    (await cluster.events('ext')).some((event) =>
      event.startsWith('Normal WaitingForExternalEviction Node node-1 waits'),
    ),
  );
  const metrics = (await cluster.board.send('GET', '/metrics')).json as string;
  const line = metrics.split('\n').find((one) => one.startsWith('kubevirt_vmi_evacuation_mark_age_seconds{'));
  assert.match(line ?? '', /namespace="default"/);
  assert.match(line ?? '', /name="ext"/);
  assert.match(line ?? '', /strategy="External"/);
  assert.deepEqual(await cluster.migrations('ext'), []);
});

// S-197: An instance that an eviction must not kill has a budget; where a policy forbids it, the instance runs on and
//   is still held.
// Compat KubeVirt's API, P1, yes: a budget for each protected instance
test('each instance that an eviction must not kill has a budget: one Pod, two while it moves', async () => {
  const { metadata } = await cluster.run('held', { evictionStrategy: 'LiveMigrate' });
  await cluster.run('free', { evictionStrategy: 'None' });
  await openOthers();
  const budget = await eventually('a budget', () => budgetOf('held'));
  assert.match(budget.metadata.name ?? '', /^kubevirt-disruption-budget-/);
  assert.deepEqual(budget.spec, {
    minAvailable: 1,
    selector: { matchLabels: { 'kubevirt.io/created-by': metadata.uid } },
  });
  await eventually('it is counted', async () => {
    const status = (await budgetOf('held'))?.status;
    return status?.expectedPods === 1 && status.disruptionsAllowed === 0;
  });
  for (const node of cluster.nodes.values()) node.holds.add('finish');
  const name = await cluster.migrate('held');
  await cluster.untilPhase(name, 'Running');
  await eventually('two while it moves', async () => (await budgetOf('held'))?.spec?.minAvailable === 2);
  for (const node of cluster.nodes.values()) {
    node.holds.clear();
    node.nudge();
  }
  await cluster.untilPhase(name, 'Succeeded');
  await eventually('one again', async () => (await budgetOf('held'))?.spec?.minAvailable === 1);
  assert.equal(await budgetOf('free'), undefined);
});

// S-197
test('where a policy forbids budgets the instance runs on, is still held, and an event says what is missing', async () => {
  const root = '/apis/admissionregistration.k8s.io/v1';
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'no-budgets' },
    spec: {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['policy'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['poddisruptionbudgets'] },
        ],
      },
      validations: [{ expression: 'false', message: 'budgets are made by the platform team' }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'no-budgets' },
    spec: { policyName: 'no-budgets', validationActions: ['Deny'] },
  };
  assert.equal((await cluster.board.send('POST', `${root}/validatingadmissionpolicies`, policy)).status, 201);
  assert.equal((await cluster.board.send('POST', `${root}/validatingadmissionpolicybindings`, binding)).status, 201);
  try {
    await cluster.run('unbudgeted', { evictionStrategy: 'External' });
    await eventually('an event', async () =>
      (await cluster.events('unbudgeted')).some((event) =>
        /Warning FailedCreate .*PodDisruptionBudget.*platform team/.test(event),
      ),
    );
    assert.equal(await budgetOf('unbudgeted'), undefined);
    assert.equal((await evict('unbudgeted')).status, 429);
  } finally {
    await cluster.board.send('DELETE', `${root}/validatingadmissionpolicybindings/no-budgets`);
    await cluster.board.send('DELETE', `${root}/validatingadmissionpolicies/no-budgets`);
  }
});

// S-196
test('drains, uncordons, cancelled migrations and controllers that start anew, in any order: every guest survives', async () => {
  await openOthers();
  await limits({ parallelMigrationsPerCluster: 3, parallelOutboundMigrationsPerNode: 2 });
  for (const node of cluster.nodes.values()) node.transferMs = 15;
  const names = Array.from({ length: 6 }, (_, i) => `churn-${i}`);
  const uids = new Map<string, string | undefined>();
  for (const name of names) uids.set(name, (await cluster.run(name, { evictionStrategy: 'LiveMigrate' })).metadata.uid);
  // A generator of its own, so that a run that fails can be had again.
  let state = seed;
  const random = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const steps: string[] = [];
  const evictAll = async (node: string): Promise<void> => {
    for (const name of names)
      if ((await cluster.vmi(name)).status?.nodeName === node) await evict(name).catch(() => undefined);
  };
  for (let step = 0; step < 40; step++) {
    const node = pick([...cluster.nodes.keys()]);
    const act = random(10);
    if (act < 4) {
      steps.push(`drain ${node}`);
      await cordon(node);
      await evictAll(node);
    } else if (act < 8) {
      steps.push(`uncordon ${node}`);
      await cordon(node, false);
    } else if (act < 9) {
      const { metadata } = pick(await cluster.migrations()) ?? {};
      steps.push(`cancel ${metadata?.name}`);
      if (metadata)
        await cluster.board.send(
          'DELETE',
          `/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations/${metadata.name}`,
        );
    } else {
      steps.push('restart');
      await cluster.restart();
    }
    await new Promise((resolve) => setTimeout(resolve, random(40)));
    for (const name of names) {
      const { metadata, status } = await cluster.vmi(name);
      assert.deepEqual(
        [metadata.uid, status?.phase],
        [uids.get(name), 'Running'],
        `CORACLE_SEED=${seed}: ${steps.join(', ')}`,
      );
    }
  }
  for (const name of cluster.nodes.keys()) await cordon(name, false);
  for (const node of cluster.nodes.values()) node.transferMs = 0;
  await eventually(
    `quiet after CORACLE_SEED=${seed}: ${steps.join(', ')}`,
    async () => {
      const unfinished = (await cluster.migrations()).filter(
        ({ status }) => !['Succeeded', 'Failed'].includes(status?.phase ?? ''),
      );
      const vmis = await Promise.all(names.map(cluster.vmi));
      const { items } = await cluster.client.list(PODS, { namespace: 'default' });
      const alive = (vmi: VirtualMachineInstance) =>
        items.filter(
          ({ metadata, status }) =>
            metadata.labels?.['kubevirt.io/created-by'] === vmi.metadata.uid && status?.phase === 'Running',
        );
      return (
        unfinished.length === 0 &&
        vmis.every((vmi) => {
          const pods = alive(vmi);
          return (
            !vmi.status?.evacuationNodeName && pods.length === 1 && pods[0]?.spec.nodeName === vmi.status?.nodeName
          );
        })
      );
    },
    60_000,
  );
});
