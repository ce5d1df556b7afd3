import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENTS, NODES, PODS } from '../../../../apimachinery/src/types/resource-types.ts';
import { createClient } from '../../../../client/src/create-client.ts';
import { createFakeApi } from '../../../../client/src/fake-api.fixture.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { type MachineFacts, readMachineFacts, whyOf } from './why-facts.ts';

type Parts = {
  vm?: object;
  vmi?: object;
  nodes?: object[] | undefined;
  warnings?: object[];
  pulling?: string;
  dataVolumes?: object[];
};
const factsOf = ({ vm, vmi, nodes = [{}], warnings = [], pulling, dataVolumes = [] }: Parts): MachineFacts =>
  ({
    key: { namespace: 'shop', name: 'web' },
    vm: vm && { metadata: {}, spec: { runStrategy: 'Always' }, ...vm },
    vmi: vmi && { metadata: {}, spec: {}, ...vmi },
    nodes,
    warnings,
    pulling,
    dataVolumes,
  }) as unknown as MachineFacts;
const condition = (type: string, status: string, reason: string, message = '') => ({ type, status, reason, message });
const NO_CLAIM = {
  name: 'data',
  target: '',
  hotplugVolume: {},
  phase: 'Pending',
  reason: 'FailedPvcNotFound',
  message: 'PVC data not found',
};
const instance = (phase: string, ...conditions: object[]) => ({ vm: {}, vmi: { status: { phase, conditions } } });

test('what a machine waits for is said, and the next step', () => {
  const rows: [parts: Parts, state: RegExp, next: RegExp | undefined][] = [
    [{ vm: { spec: { runStrategy: 'Halted' } } }, /^is stopped$/, /^coracle start web -n shop$/],
    [{ vm: { metadata: { deletionTimestamp: 'x', finalizers: ['f'] } } }, /^is being deleted$/, undefined],
    [
      { vm: { status: { conditions: [condition('Failure', 'True', 'FailedFindInstancetype', 'no x')] } } },
      /^cannot be started$/,
      /vmclusterinstancetype/,
    ],
    [
      { vm: { status: { startFailure: { consecutiveFailCount: 3 } } } },
      /^ended 3 times before it ran$/,
      /coracle logs/,
    ],
    [
      instance('Scheduling', condition('PodScheduled', 'False', 'Unschedulable', '0/1 nodes: Insufficient memory')),
      /^waits for a node$/,
      /^stop another machine/,
    ],
    [
      { ...instance('Pending', condition('PodScheduled', 'False', 'Unschedulable')), nodes: [] },
      /^waits for a node$/,
      /coracle up --nodes 1/,
    ],
    [
      instance('Scheduled', condition('Synchronized', 'False', 'ErrImagePull', 'localhost/x: not here')),
      /^waits$/,
      /coracle image import/,
    ],
    [
      instance('Scheduled', condition('Synchronized', 'False', 'ImagePullBackOff', 'quay.io/x')),
      /^waits$/,
      /can reach its registry/,
    ],
    [
      { vm: {}, vmi: { status: { phase: 'Running', volumeStatus: [NO_CLAIM] } } },
      /^runs, without volume data$/,
      /^claims there are: kubectl get pvc -n /,
    ],
    [instance('Running', condition('Paused', 'True', 'PausedByUser')), /^is paused$/, /^coracle unpause web -n shop$/],
    [
      instance('Running', condition('Paused', 'True', 'x'), condition('DiskFull', 'True', 'x')),
      /^is paused$/,
      /^free space/,
    ],
    [instance('Running', condition('Ready', 'False', 'GuestNotRunning')), /^runs, but is not ready$/, /coracle logs/],
    [instance('Running', condition('Ready', 'True', '')), /^runs$/, undefined],
    [
      instance('Running', condition('AccessCredentialsSynchronized', 'False', 'AgentNotConnected', 'offline')),
      /^runs, without its access credentials$/,
      /qemu-guest-agent/,
    ],
    [
      instance('Running', condition('AccessCredentialsSynchronized', 'False', 'UnsupportedAgent', 'no')),
      /^runs, without its access credentials$/,
      undefined,
    ],
    [
      instance('Running', condition('PortsForwarded', 'False', 'PortNotAvailable', 'port 2222 is taken')),
      /^runs, without ports of its host/,
      /--allow-host-ports/,
    ],
    [{ ...instance('Scheduled'), pulling: 'Pulling image x' }, /^is starting \(Scheduled\)$/, undefined],
    [
      {
        vm: {},
        dataVolumes: [{ metadata: { name: 'web-root' }, status: { phase: 'ImportInProgress', progress: '45.0%' } }],
      },
      /^waits for its disk$/,
      /^kubectl describe dv web-root -n shop$/,
    ],
    [{ vm: { status: { printableStatus: 'Starting' } } }, /^is starting$/, undefined],
    [instance('Scheduled'), /^is starting \(Scheduled\)$/, undefined],
  ];
  for (const [parts, state, next] of rows) {
    const said = whyOf(factsOf(parts));
    assert.match(said.state, state, JSON.stringify(parts));
    if (next) assert.match(said.next ?? '', next, JSON.stringify(parts));
    else assert.equal(said.next, undefined);
  }
});

test('a guest that is not ready says what its probe met last', () => {
  const failed = (text: string) => ({ reason: 'Unhealthy', message: `${text} probe failed: no` });
  const { reason } = whyOf(
    factsOf({
      ...instance('Running', condition('Ready', 'False', 'ContainersNotReady', 'containers with unready status')),
      warnings: [failed('Liveness'), failed('Readiness')],
    }),
  );
  assert.equal(reason, 'Readiness probe failed: no');
});

test('that no other Pod could make room is left out of why no node takes a machine', () => {
  const message = '0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes.';
  const { reason } = whyOf(
    factsOf(instance('Scheduling', condition('PodScheduled', 'False', 'Unschedulable', message))),
  );
  assert.equal(reason, '0/1 nodes are available: 1 Insufficient memory.');
});

// S-1628: What was warned of while an earlier instance of a machine started or stopped is no reason why the present one does not run yet.
test('warnings of an earlier instance are left out', async () => {
  const api = createFakeApi([PODS, EVENTS, NODES]);
  const warn = (name: string, lastTimestamp: string): void => {
    const involvedObject = { kind: 'VirtualMachine', namespace: 'shop', name: 'web' };
    const metadata = { namespace: 'shop', name };
    const said = { type: 'Warning', reason: 'Deleted', message: name, lastTimestamp };
    void api.put({ apiVersion: 'v1', kind: 'Event', metadata, involvedObject, ...said });
  };
  warn('earlier', '2026-01-01T10:00:00Z');
  warn('now', '2026-01-01T11:00:01Z');
  const at = (hour: string, phase?: string) =>
    ({
      metadata: { uid: hour, creationTimestamp: `2026-01-01T${hour}:00:00Z` },
      spec: { template: {} },
      status: { phase },
    }) as never;
  const said = async (phase: string): Promise<(string | undefined)[]> => {
    const found = { key: { namespace: 'shop', name: 'web' }, vm: at('09'), vmi: at('11', phase) };
    return (await readMachineFacts(createClient(api.handler), found, NEVER)).warnings.map(({ message }) => message);
  };
  assert.deepEqual(await said('Scheduling'), ['now']);
  assert.deepEqual(await said('Failed'), ['now', 'earlier']);
});
