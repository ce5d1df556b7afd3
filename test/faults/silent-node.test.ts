/**
 * A node that falls silent: its machines are Unknown, and are started elsewhere only once somebody says that the old
 * guest is gone. The agent that comes back adopts what is still its own, and ends what was moved away.
 */
// test:full: a matrix of faults.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { EVENTS, NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { openWorkspace } from '../cli/workspace.ts';
import { adminOf } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';

/** QEMU processes of an instance. */
const guests = (uid: string): Promise<readonly number[]> =>
  findProcesses((argv) => argv[0]?.includes('qemu-system') === true && argv.some((word) => word.includes(uid)));

// S-201: A silent node is Unknown, its Pods not ready and its machines Unknown; they are moved only by force, and what
//   comes back is adopted or ended.
// S-497
test('a silent node: Unknown, moved only by force, adopted or ended on return', {
  timeout: 600_000,
  ...(why && { skip: why }),
}, async (t) => {
  const at = openWorkspace(t);
  await Promise.all([importTinyGuest(at.data), importTinyGuest(join(at.dir, 'edge'))]);
  const up = await at.up('--nodes', '1');
  assert.equal(up.code, 0, up.stderr);
  const made = await at.run(['token', 'create', '--data-dir', at.data, '--json']);
  const words = (JSON.parse(made.stdout).join as string).split(' ').slice(1);
  const place = ['--data-dir', join(at.dir, 'edge'), '--name', 'edge'];
  const agent = at.start([...words, ...place]);
  await agent.line(/^node edge is ready/);
  const { client, close } = adminOf(at.data);
  t.after(close);
  const home = await eventually('the other node', async () =>
    (await client.list(NODES)).items.find((node) => node.metadata.name !== 'edge'),
  );
  const cordon = (unschedulable: boolean) =>
    client.patch(
      NODES,
      { namespace: '', name: home.metadata.name ?? '' },
      { type: 'merge', body: { spec: { unschedulable } } },
    );
  await cordon(true);
  const patience = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute', tolerationSeconds: 1 };
  for (const name of ['stays', 'moves', 'leaves']) {
    const vm = tinyVm(name);
    const spec = vm.spec.template!.spec as { tolerations?: object[]; evictionStrategy?: string };
    if (name !== 'moves') spec.tolerations = [{ ...patience, operator: 'Exists' }];
    spec.evictionStrategy = name === 'leaves' ? 'LiveMigrate' : 'None';
    await client.create(VIRTUAL_MACHINES, vm);
  }
  const instance = (name: string) => client.get(VIRTUAL_MACHINE_INSTANCES, { namespace, name });
  const vm = async (name: string) => (await client.get(VIRTUAL_MACHINES, { namespace, name })).status?.printableStatus;
  const running = (name: string) =>
    eventually(`${name} runs`, async () => ((await vm(name)) === 'Running' ? await instance(name) : undefined));
  const [stays, moves, leaves] = await Promise.all([running('stays'), running('moves'), running('leaves')]);
  assert.deepEqual([stays.status?.nodeName, moves.status?.nodeName], ['edge', 'edge']);

  agent.child.kill('SIGKILL');
  await agent.ended;
  for (const name of ['stays', 'moves'])
    await eventually(`${name} is Unknown`, async () => ((await vm(name)) === 'Unknown' ? true : undefined), 120_000);
  const lost = await instance('moves');
  const ready = lost.status?.conditions?.find(({ type }) => type === 'Ready');
  assert.deepEqual([ready?.status, ready?.reason], ['False', 'NodeNotReady']);
  const taints = (await client.get(NODES, { namespace: '', name: 'edge' })).spec?.taints ?? [];
  assert.deepEqual(
    taints.map(({ key, effect }) => `${key}:${effect}`),
    ['node.kubernetes.io/unreachable:NoSchedule', 'node.kubernetes.io/unreachable:NoExecute'],
  );

  const podOf = async (uid: string | undefined) =>
    (await client.list(PODS, { namespace })).items.find(
      ({ metadata }) => metadata.labels?.['kubevirt.io/created-by'] === uid,
    );
  for (const { metadata } of [stays, leaves])
    await eventually('its Pod is marked for deletion', async () =>
      (await podOf(metadata.uid))?.metadata.deletionTimestamp === undefined ? undefined : true,
    );

  // A deletion alone proves nothing: the guest may well run. By force it is somebody's word that it does not.
  await cordon(false);
  const pod = await podOf(moves.metadata.uid);
  const key = { namespace, name: pod?.metadata.name ?? '' };
  await client.delete(PODS, key);
  assert.equal((await instance('moves')).metadata.uid, moves.metadata.uid);
  assert.equal(await vm('moves'), 'Unknown');
  await client.delete(PODS, key, { gracePeriodSeconds: 0 });
  const moved = await eventually('moves runs elsewhere', async () => {
    const now = await instance('moves').catch(() => undefined);
    return now && now.metadata.uid !== moves.metadata.uid && now.status?.phase === 'Running' ? now : undefined;
  });
  assert.equal(moved.status?.nodeName, home.metadata.name);
  const [pid] = await guests(stays.metadata.uid ?? '');
  assert.ok(pid !== undefined);

  const back = at.start(['node', 'join', '--data-dir', join(at.dir, 'edge')]);
  await back.line(/^node edge is ready/);
  await eventually('stays is known again', async () => ((await vm('stays')) === 'Running' ? true : undefined));
  assert.equal((await instance('stays')).metadata.uid, stays.metadata.uid);
  assert.deepEqual(await guests(stays.metadata.uid ?? ''), [pid], 'the same process');
  // Marked by the taint manager, which nobody can take back: kept, and reported; what may move goes to the other node.
  await eventually('the mark is reported', async () =>
    (await client.list(EVENTS, { namespace })).items.find(
      (event) => event.reason === 'DeletionDeferred' && event.involvedObject?.name === 'stays',
    ),
  );
  const handed = await eventually('leaves has moved', async () => {
    const now = await instance('leaves');
    return now.status?.nodeName === home.metadata.name && now.status?.phase === 'Running' ? now : undefined;
  });
  assert.equal(handed.metadata.uid, leaves.metadata.uid, 'moved as it ran, not started anew');
  assert.ok((await podOf(stays.metadata.uid))?.metadata.deletionTimestamp);
  assert.deepEqual(await guests(stays.metadata.uid ?? ''), [pid], 'still the same process');
  await eventually('the guest that was moved away has ended', async () =>
    (await guests(moves.metadata.uid ?? '')).length === 0 ? true : undefined,
  );
  assert.equal((await instance('moves')).metadata.uid, moved.metadata.uid);
  assert.equal((await guests(moved.metadata.uid ?? '')).length, 1);
});
