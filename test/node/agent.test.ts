// test:full: many guests, one after the other.
import assert from 'node:assert/strict';
import { access, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ApiError } from '../../packages/apimachinery/src/meta/status.ts';
import { EVENTS, NODES, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { hostAddressOf } from '../../packages/kubevirt/src/rules/launcher/pod-address.ts';
import { usualHostPort } from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { isRunning } from '../../packages/runtime/src/process/identity.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect, kernelSpec, NAMESPACE, NODE, startBoard } from './board.ts';

let board: Board;
before(async () => {
  board = await startBoard();
});
after(() => board.close());

interface MeasuredPod {
  readonly podRef: { readonly name: string };
  readonly memory: { readonly workingSetBytes: number };
  readonly cpu: { readonly usageCoreNanoSeconds: number };
}

const isRunningPhase = (vmi: { status?: { phase?: string } }): boolean => vmi.status?.phase === 'Running';
const remove = (name: string): Promise<void> =>
  board.client.delete(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
const gone = (name: string): Promise<unknown> =>
  eventually(`${name} gone`, async () => {
    const [vmi, pods] = [await board.vmi(name).catch(() => undefined), await board.pods()];
    return vmi === undefined && !pods.some((pod) => pod.metadata.labels?.['vmi.kubevirt.io/id'] === name);
  });

// S-056: The agent registers a Node with capacity, conditions, a Lease and labels.
test('a node is registered with what it offers', async () => {
  const node = await board.client.get(NODES, { namespace: '', name: NODE });
  assert.equal(node.metadata.labels?.['kubevirt.io/schedulable'], 'true');
  for (const label of ['machine-type.node.kubevirt.io/q35', 'cpu-feature.node.kubevirt.io/sse4.1'])
    assert.equal(node.metadata.labels?.[label], 'true', label);
  for (const model of ['qemu64', 'Conroe', 'n270'])
    assert.equal(node.metadata.labels?.[`cpu-model.node.kubevirt.io/${model}`], undefined, model);
  assert.equal(node.status?.conditions?.find((c) => c.type === 'Ready')?.status, 'True');
  assert.equal(node.status?.capacity?.['devices.kubevirt.io/kvm'], undefined);
  assert.equal(node.status?.capacity?.['devices.kubevirt.io/tun'], '1k');
});

// S-057: A guest boots from a VMI, is reachable on its address, survives the agent and is adopted again, and shuts down
//   when it is deleted.
// S-071
// S-073: Masquerade on user-mode networking: one loopback address for each machine, declared ports forwarded, others on
//   demand, the address in the VMI's and the Pod's status.
// S-076: The serial console shows its backlog to a client that asks for it, also after a restart of the agent.
// S-293
// S-399: A freeze or unfreeze of a guest without an agent fails in upstream's words.
// S-402: The event `Deleted` tells that a guest is ended for its deletion; `FailedMount` is reported of the launcher
//   Pod.
test('a VMI boots, is reachable, survives the agent, and shuts down when it is deleted', async () => {
  const created = await board.createVmi('life', kernelSpec());
  const running = await board.until('life', 'running', isRunningPhase);
  const [nic] = running.status?.interfaces ?? [];
  assert.match(nic?.ipAddress ?? '', /^100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\./);
  assert.equal(running.status?.machine?.type, 'pc-q35-7.2');
  assert.equal(running.status?.memory?.guestAtBoot, '128Mi');
  assert.ok(running.status?.phaseTransitionTimestamps?.some((s) => s.phase === 'Running'));
  const [pod] = await board.pods();
  assert.equal(pod?.status?.podIP, nic?.ipAddress);
  // The default machine type is one that this node says it has: the scheduler looked.
  assert.equal(pod?.spec.nodeSelector?.['machine-type.node.kubevirt.io/q35'], 'true');

  // The console shows the guest's own view of its identity.
  const first = collect(await board.connect('life/console?backlog=true'));
  const uuid = running.spec.domain.firmware?.uuid ?? '';
  await first.has(`uuid: ${uuid}`);
  // The next one takes the console over.
  const second = collect(await board.connect('life/console?backlog=true'));
  await second.has(`uuid: ${uuid}`);

  // No agent in it answers: upstream's words, by which clients know.
  for (const [action, command] of [
    ['freeze', 'Freeze'],
    ['unfreeze', 'Unfreeze'],
  ] as const) {
    const path = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/life/${action}`;
    const refusal = await board.client.raw('PUT', path).catch((error: Error) => error);
    assert.ok(refusal instanceof ApiError, action);
    assert.deepEqual([refusal.code, refusal.status.reason], [500, 'InternalError']);
    assert.match(
      refusal.message,
      new RegExp(`^Internal error occurred:.*command ${command} failed:.*QEMU guest agent is not connected`),
    );
  }

  const url = `http://${hostAddressOf(nic?.ipAddress ?? '')}:${usualHostPort(8080)}/`;
  await eventually('http', async () => (await fetch(url).catch(() => undefined))?.ok === true);
  assert.match(await (await fetch(`${url}index.txt`)).text(), new RegExp(uuid));

  // A port nobody declared is opened when it is asked for.
  const tunnel = await board.connect('life/portforward/80/tcp');
  const answer = collect(tunnel);
  tunnel.send(new TextEncoder().encode('GET /index.txt HTTP/1.0\r\n\r\n'));
  await answer.has(uuid);

  assert.equal((await stat(join(board.directory, 'node/vms', created.metadata.uid ?? ''))).mode & 0o777, 0o700);
  const before = (await board.record(running)).process;
  assert.ok(before);
  await board.restartAgent();
  const again = await board.record(running);
  assert.deepEqual(again.process, before);
  assert.ok(await isRunning(before));
  await eventually('adopted', async () => (await board.put('life/pause')) === 200);
  await board.until(
    'life',
    'paused',
    (vmi) => vmi.status?.conditions?.some((c) => c.type === 'Paused' && c.reason === 'PausedByUser') ?? false,
  );
  assert.equal(await board.put('life/pause'), 409);
  assert.equal(await board.put('life/unpause'), 200);
  await board.until('life', 'unpaused', (vmi) => !vmi.status?.conditions?.some((c) => c.type === 'Paused'));
  const replay = collect(await board.connect('life/console?backlog=true'));
  await replay.has(`uuid: ${uuid}`);

  // What its QEMU takes is reported by the node, through the API server.
  const summary = await board.client.raw('GET', `/api/v1/nodes/${NODE}/proxy/stats/summary`);
  const [measured, ...others] = (summary as { pods: MeasuredPod[] }).pods;
  assert.deepEqual([measured?.podRef.name, others], [pod?.metadata.name, []]);
  assert.ok((measured?.memory.workingSetBytes ?? 0) > 32 * 1024 * 1024, 'the guest has memory');
  assert.ok((measured?.cpu.usageCoreNanoSeconds ?? 0) > 100_000_000, 'it has booted');

  await remove('life');
  await gone('life');
  await eventually('the event', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.some(
      (event) =>
        event.involvedObject.name === 'life' && event.reason === 'Deleted' && event.message === 'Signaled Deletion',
    ),
  );
  assert.equal(await isRunning(before), false);
  await eventually('files gone', () =>
    access(join(board.directory, 'node/vms', created.metadata.uid ?? '')).then(
      () => false,
      () => true,
    ),
  );
  // Events wait for work that users wait for: this one may come after all else.
  const stopped = await eventually('the event of its end', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.find(
      (event) => event.involvedObject.name === 'life' && event.reason === 'Stopped',
    ),
  );
  assert.equal(stopped.message, 'the guest shut down');
});

// S-058: `kill -9` of QEMU: the VMI becomes Failed.
test('a QEMU that is killed leaves a Failed VMI', async () => {
  await board.createVmi('killed', kernelSpec());
  const vmi = await board.until('killed', 'running', isRunningPhase);
  const { process: identity } = await board.record(vmi);
  process.kill(identity?.pid ?? 0, 'SIGKILL');
  const failed = await board.until('killed', 'failed', (v) => v.status?.phase === 'Failed');
  assert.equal(failed.status?.reason, 'Crashed');
  await remove('killed');
  await gone('killed');
});

// S-061: A guest that was killed while no agent watched is Failed.
test('a guest that died while no agent watched is Failed', async () => {
  await board.createVmi('unseen', kernelSpec());
  const vmi = await board.until('unseen', 'running', isRunningPhase);
  const console = await board.connect('unseen/console?backlog=true');
  await collect(console)
    .has('login:')
    .catch(() => {});
  const { process: identity } = await board.record(vmi);
  await board.restartAgent(async () => {
    process.kill(identity?.pid ?? 0, 'SIGKILL');
    await eventually('dead', async () => !(await isRunning(identity!)));
  });
  await board.until('unseen', 'failed', (v) => v.status?.phase === 'Failed');
  await remove('unseen');
  await gone('unseen');
});

// S-062: A damaged record is never acted upon: the guest is neither killed nor started twice.
test('a damaged record is left alone: the guest is neither killed nor started twice, until it is deleted', async () => {
  await board.createVmi('damaged', kernelSpec({ terminationGracePeriodSeconds: 1 }));
  const vmi = await board.until('damaged', 'running', isRunningPhase);
  const { process: identity } = await board.record(vmi);
  assert.ok(identity);
  await board.restartAgent(() =>
    writeFile(join(board.directory, 'node/vms', vmi.metadata.uid ?? '', 'record.json'), '{"version":1,"vmi'),
  );
  await eventually('reported', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.some((event) =>
      /is left running/.test(event.message ?? ''),
    ),
  );
  assert.ok(await isRunning(identity));
  await remove('damaged');
  await gone('damaged');
  assert.equal(await isRunning(identity), false);
});

test('a QEMU that does not answer keeps its phase, is reported, and is not touched', async () => {
  await board.createVmi('silent', kernelSpec({ terminationGracePeriodSeconds: 0 }));
  const vmi = await board.until('silent', 'running', isRunningPhase);
  const { process: identity } = await board.record(vmi);
  assert.ok(identity);
  const unknown = (v: VirtualMachineInstance): boolean =>
    v.status?.conditions?.some((c) => c.type === 'AgentConnected' && c.status === 'Unknown') ?? false;
  process.kill(identity.pid, 'SIGSTOP');
  const silent = await board.until('silent', 'unknown', unknown);
  assert.equal(silent.status?.phase, 'Running');
  process.kill(identity.pid, 'SIGCONT');
  await board.until('silent', 'known again', (v) => !unknown(v));
  process.kill(identity.pid, 'SIGSTOP');
  // Only the user's own deletion ends it.
  await remove('silent');
  await gone('silent');
  assert.equal(await isRunning(identity), false);
});

// S-069: An image that does not exist is reported in the status of the Pod.
test('an image that is not there is reported, and the guest starts once it is', async () => {
  await board.createVmi('late', {
    ...kernelSpec(),
    volumes: [{ name: 'root', containerDisk: { image: 'localhost/nowhere:v1' } }],
  });
  await eventually('waiting', async () =>
    (await board.pods()).some((pod) =>
      pod.status?.containerStatuses?.some((c) =>
        ['ErrImagePull', 'ImagePullBackOff'].includes(c.state?.waiting?.reason ?? ''),
      ),
    ),
  );
  await remove('late');
  await gone('late');
});

// S-078: A Pod that is no launcher stays Pending with an event.
test('a pod that is no launcher stays pending, gets the reason as an event, and can be deleted', async () => {
  await board.client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'plain', namespace: NAMESPACE },
    spec: { nodeName: NODE, containers: [{ name: 'c', image: 'x' }] },
  });
  await eventually('reported', async () =>
    (await board.client.list(EVENTS, { namespace: NAMESPACE })).items.some(
      (e) => e.involvedObject?.name === 'plain' && e.reason === 'NotSupported',
    ),
  );
  await board.client.delete(PODS, { namespace: NAMESPACE, name: 'plain' });
  await eventually('deleted', async () => !(await board.pods()).some((pod) => pod.metadata.name === 'plain'));
});

// S-401
test('a guest that asks for a processor model of old finds no node', async () => {
  const spec = kernelSpec();
  await board.createVmi('old-model', { ...spec, domain: { ...spec.domain, cpu: { model: 'qemu64' } } });
  const waits = await board.until('old-model', 'unschedulable', ({ status }) =>
    (status?.conditions ?? []).some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable'),
  );
  assert.equal(waits.status?.phase, 'Scheduling');
  await remove('old-model');
  await gone('old-model');
});
