import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../../../../apimachinery/src/meta/object.ts';
import { ApiError, notFound } from '../../../../../apimachinery/src/meta/status.ts';
import { applyJsonPatch } from '../../../../../apimachinery/src/patch/json-patch.ts';
import type { Client, Patch } from '../../../../../client/src/client.ts';
import { createFakeClock } from '../../../../../runtime/src/clock/fake-clock.fixture.ts';
import {
  type ApiHandler,
  type ApiRequest,
  type ApiResponse,
  type ByteSink,
  type MessageSocket,
  NEVER,
} from '../../../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../../../runtime/src/log/log.ts';
import type { KubeVirt, VirtualMachine, VirtualMachineInstance } from '../../../kinds/kubevirt.ts';
import { clusterConfigOf } from '../../../rules/machine-defaults/cluster-config.ts';
import { createSubresourceApi, type SubresourceAttributes } from './subresource-api.ts';

type Phase = NonNullable<NonNullable<VirtualMachineInstance['status']>['phase']>;

const vmOf = (spec: object = {}, status?: object): VirtualMachine =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'a', namespace: 'n', uid: 'vm-uid' },
    spec: { runStrategy: 'Manual', template: {}, ...spec },
    ...(status && { status }),
  }) as VirtualMachine;

const vmiOf = (
  phase: Phase | undefined,
  { conditions = [] as string[], spec = {}, status = {} } = {},
): VirtualMachineInstance =>
  ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'a', namespace: 'n', uid: 'vmi-uid', ownerReferences: [{ uid: 'vm-uid' }] },
    spec: { domain: { devices: {} }, ...spec },
    status: {
      ...(phase && { phase }),
      nodeName: 'node',
      conditions: conditions.map((type) => ({ type, status: 'True' })),
      ...status,
    },
  }) as unknown as VirtualMachineInstance;

const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'launcher', namespace: 'n' } };

const kubevirtOf = (featureGates: string[]): KubeVirt =>
  ({ spec: { configuration: { developerConfiguration: { featureGates } } } }) as unknown as KubeVirt;

interface Board {
  readonly writes: { what: string; result?: unknown; options?: unknown }[];
  readonly asked: { method: string; path: string }[];
  call(
    method: string,
    path: string,
    body?: unknown,
    more?: Partial<ApiRequest>,
  ): Promise<{ status: number; text: string; response: ApiResponse }>;
}

/** The API over a fixed set of objects; patches are applied and noted, not kept. */
function boardOf(
  objects: KubeObject[],
  options: {
    agent?: ApiHandler;
    allowed?: (attributes: SubresourceAttributes) => boolean;
    patchFails?: ApiError;
    createFails?: ApiError;
    gates?: string[];
  } = {},
): Board {
  const writes: Board['writes'] = [];
  const asked: Board['asked'] = [];
  const client = {
    async get(type: { kind: string; group: string; resource: string }, key: { name: string }) {
      const found = objects.find(({ kind, metadata }) => kind === type.kind && metadata.name === key.name);
      if (!found) throw notFound(type, key.name);
      return structuredClone(found);
    },
    list: (type: { kind: string }) => Promise.resolve({ items: objects.filter(({ kind }) => kind === type.kind) }),
    async patch(
      type: { kind: string },
      key: { name: string },
      patch: Patch,
      { subresource = '', dryRun = false } = {},
    ) {
      if (options.patchFails) throw options.patchFails;
      const before = objects.find(({ kind, metadata }) => kind === type.kind && metadata.name === key.name);
      assert.equal(patch.type, 'json');
      const result = applyJsonPatch(before, patch.body) as KubeObject & { spec: unknown; status: unknown };
      if (dryRun) return result;
      writes.push({
        what: `patch ${type.kind}${subresource && `/${subresource}`}`,
        result: subresource === 'status' ? result.status : result.spec,
      });
      return result;
    },
    async create(type: { kind: string }, object: KubeObject & { spec?: unknown }, { dryRun = false } = {}) {
      if (options.createFails) throw options.createFails;
      if (dryRun) return object;
      writes.push({ what: `create ${type.kind}`, result: [object.metadata.generateName, object.spec] });
      return object;
    },
    async delete(type: { kind: string }, key: { name: string }, how: object) {
      writes.push({ what: `delete ${type.kind} ${key.name}`, options: { ...how, signal: undefined } });
    },
  } as unknown as Client;
  const api = createSubresourceApi({
    client,
    config: () => clusterConfigOf(kubevirtOf(options.gates ?? [])),
    nodeHandler: (node) =>
      options.agent === undefined
        ? Promise.reject(new Error(`node ${node} does not exist`))
        : Promise.resolve((request) => {
            asked.push({ method: request.method, path: request.path });
            return options.agent!(request);
          }),
    readAs: () => ({ get: async () => 'forbidden', list: async () => 'forbidden' }),
    authorize: (_user, attributes) => Promise.resolve(options.allowed?.(attributes) ?? true),
    clock: createFakeClock(),
    log: silentLogger,
    version: 'v0',
    build: {
      commit: 'abc',
      treeState: 'clean',
      buildDate: '2026-01-01T00:00:00Z',
      engine: 'node v26',
      platform: 'linux/arm64',
    },
  });
  return {
    writes,
    asked,
    async call(method, path, body, more = {}) {
      const [resource = '', ...rest] = path.split('/');
      const cluster = rest.length === 0;
      const response = await api.handle(
        {
          method,
          path: `/apis/subresources.kubevirt.io/v1/${cluster ? '' : 'namespaces/n/'}${path}`,
          query: '',
          headers: {},
          body: new TextEncoder().encode(
            body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body),
          ),
          peer: { address: '' },
          signal: NEVER,
          ...more,
        },
        { username: 'alice', groups: [] },
        { version: 'v1', namespace: cluster ? '' : 'n', resource, name: rest[0] ?? '', parts: [resource, ...rest] },
      );
      const bytes = response.body instanceof Uint8Array ? response.body : new Uint8Array();
      return { status: response.status, text: new TextDecoder().decode(bytes), response };
    },
  };
}

const ok: ApiHandler = () => Promise.resolve({ status: 200, headers: {} });
const messageIn = (text: string): string =>
  text === '' ? '' : ((JSON.parse(text) as { message?: string }).message ?? '');

// S-027: The subresources API answers start, stop, restart, pause, unpause, softreboot, reset, version and healthz with
//   upstream's codes and messages.
describe('start, stop and restart', () => {
  type Row = [
    name: string,
    path: string,
    body: object | undefined,
    objects: KubeObject[],
    status: number,
    expected: unknown,
  ];
  const stop = { action: 'Stop', uid: 'vmi-uid' };
  const start = { action: 'Start' };
  const rows: Row[] = [
    [
      'start: halted',
      'start',
      undefined,
      [vmOf({ runStrategy: 'Halted' })],
      202,
      { runStrategy: 'Always', template: {} },
    ],
    [
      'start: not running',
      'start',
      {},
      [vmOf({ runStrategy: undefined, running: false })],
      202,
      { running: true, template: {}, runStrategy: undefined },
    ],
    [
      'start: halted, paused',
      'start',
      { paused: true },
      [vmOf({ runStrategy: 'Halted' })],
      202,
      { stateChangeRequests: [{ ...start, data: { paused: 'true' } }] },
    ],
    [
      'start: manual',
      'start',
      undefined,
      [vmOf({}, { ready: false })],
      202,
      { ready: false, stateChangeRequests: [start] },
    ],
    [
      'start: clears a start failure',
      'start',
      undefined,
      [vmOf({}, { startFailure: { consecutiveFailCount: 1 } })],
      202,
      { stateChangeRequests: [start] },
    ],
    [
      'start: manual with a finished instance',
      'start',
      undefined,
      [vmOf(), vmiOf('Succeeded')],
      202,
      { stateChangeRequests: [stop, start] },
    ],
    [
      'start: rerun after success',
      'start',
      undefined,
      [vmOf({ runStrategy: 'RerunOnFailure' }), vmiOf('Succeeded')],
      202,
      { stateChangeRequests: [stop, start] },
    ],
    [
      'start: rerun after a failure',
      'start',
      undefined,
      [vmOf({ runStrategy: 'RerunOnFailure' }), vmiOf('Failed')],
      409,
      'RerunOnFailure does not support starting VM from failed state',
    ],
    ['start: running', 'start', undefined, [vmOf(), vmiOf('Running')], 409, 'VM is already running'],
    [
      'start: always',
      'start',
      undefined,
      [vmOf({ runStrategy: 'Always' })],
      409,
      'Always does not support manual start requests',
    ],
    [
      'start: once',
      'start',
      undefined,
      [vmOf({ runStrategy: 'Once' })],
      409,
      'Once does not support manual start requests',
    ],
    [
      'start: recovery needed',
      'start',
      undefined,
      [vmOf({}, { conditions: [{ type: 'ManualRecoveryRequired', status: 'True' }] })],
      409,
      'VM recovery required',
    ],
    [
      'start: under way',
      'start',
      undefined,
      [vmOf({}, { stateChangeRequests: [start] })],
      500,
      'stop/start already underway',
    ],
    ['start: missing', 'start', undefined, [], 404, 'virtualmachine.kubevirt.io "a" not found'],
    [
      'stop: always',
      'stop',
      undefined,
      [vmOf({ runStrategy: 'Always' }), vmiOf('Running')],
      202,
      { runStrategy: 'Halted', template: {} },
    ],
    [
      'stop: manual',
      'stop',
      undefined,
      [vmOf({}, { created: true }), vmiOf('Running')],
      202,
      { created: true, stateChangeRequests: [stop] },
    ],
    [
      'stop: replaces what is asked',
      'stop',
      undefined,
      [vmOf({}, { stateChangeRequests: [start] }), vmiOf('Running')],
      202,
      { stateChangeRequests: [stop] },
    ],
    ['stop: not running', 'stop', undefined, [vmOf()], 409, 'VM is not running'],
    ['stop: finished', 'stop', undefined, [vmOf(), vmiOf('Failed')], 409, 'VM is not running'],
    [
      'stop: halted',
      'stop',
      undefined,
      [vmOf({ runStrategy: 'Halted' }), vmiOf('Running')],
      409,
      'only supports manual stop requests with a shorter graceperiod',
    ],
    [
      'stop: halted, no sooner',
      'stop',
      { gracePeriod: 30 },
      [vmOf({ runStrategy: 'Halted' }), vmiOf('Running', { spec: { terminationGracePeriodSeconds: 30 } })],
      409,
      'shorter graceperiod',
    ],
    ['restart: manual', 'restart', {}, [vmOf(), vmiOf('Running')], 202, { stateChangeRequests: [stop, start] }],
    [
      'restart: always',
      'restart',
      undefined,
      [vmOf({ runStrategy: 'Always' }), vmiOf('Running')],
      202,
      { stateChangeRequests: [stop, start] },
    ],
    [
      'restart: halted',
      'restart',
      undefined,
      [vmOf({ runStrategy: 'Halted' })],
      409,
      'RunStategy Halted does not support manual restart requests',
    ],
    ['restart: once', 'restart', undefined, [vmOf({ runStrategy: 'Once' })], 409, 'RunStategy Once'],
    ['restart: not running', 'restart', undefined, [vmOf()], 409, 'VM is not running: Halted'],
    [
      'restart: volumes on their way',
      'restart',
      undefined,
      [vmOf(), vmiOf('Running', { conditions: ['VolumesChange'] })],
      409,
      'volumes',
    ],
    [
      'restart: volumes on their way, as the machine says',
      'restart',
      {},
      [vmOf({ runStrategy: 'Halted' }, { conditions: [{ type: 'VolumesChange', status: 'True' }] }), vmiOf('Running')],
      409,
      'VM recovery required',
    ],
    ['restart: a grace period', 'restart', { gracePeriodSeconds: 1 }, [], 400, 'only gracePeriod=0'],
    ['restart: a negative one', 'restart', { gracePeriodSeconds: -1 }, [], 400, 'greater or equal to 0'],
    ['migrate: not running', 'migrate', undefined, [vmOf(), vmiOf('Scheduled')], 409, 'VM is not running'],
    ['migrate: no instance', 'migrate', undefined, [vmOf()], 404, 'virtualmachineinstance.kubevirt.io "a" not found'],
  ];
  for (const [name, path, body, objects, status, expected] of rows) {
    it(name, async () => {
      const board = boardOf(objects);
      const answer = await board.call('PUT', `virtualmachines/a/${path}`, body);
      assert.equal(answer.status, status, answer.text);
      if (typeof expected === 'string') {
        assert.ok(messageIn(answer.text).includes(expected), answer.text);
        assert.deepEqual(board.writes, []);
      } else {
        assert.equal(answer.text, '');
        assert.deepEqual(
          board.writes.map(({ result }) => result),
          [expected],
        );
      }
    });
  }

  it('stop with a shorter grace period changes the instance first', async () => {
    const board = boardOf([
      vmOf({ runStrategy: 'Halted' }),
      vmiOf('Running', { spec: { terminationGracePeriodSeconds: 30 } }),
    ]);
    assert.equal((await board.call('PUT', 'virtualmachines/a/stop', { gracePeriod: 0 })).status, 202);
    assert.deepEqual(
      board.writes.map(({ what }) => what),
      ['patch VirtualMachineInstance', 'patch VirtualMachine/status'],
    );
    assert.deepEqual(
      (board.writes[0]!.result as { terminationGracePeriodSeconds: number }).terminationGracePeriodSeconds,
      0,
    );
  });
  it('restart without grace deletes the launcher', async () => {
    const board = boardOf([vmOf(), vmiOf('Running'), pod]);
    assert.equal((await board.call('PUT', 'virtualmachines/a/restart', { gracePeriodSeconds: 0 })).status, 202);
    assert.deepEqual(board.writes[1], {
      what: 'delete Pod launcher',
      options: { gracePeriodSeconds: 1, signal: undefined },
    });
  });
  it('migrate creates a migration', async () => {
    const board = boardOf([vmOf(), vmiOf('Running')]);
    assert.equal((await board.call('PUT', 'virtualmachines/a/migrate', { addedNodeSelector: { a: 'b' } })).status, 202);
    assert.deepEqual(board.writes, [
      {
        what: 'create VirtualMachineInstanceMigration',
        result: ['kubevirt-migrate-vm-', { vmiName: 'a', addedNodeSelector: { a: 'b' } }],
      },
    ]);
  });
  it('a dry run checks and writes nothing', async () => {
    const board = boardOf([vmOf(), vmiOf('Running'), pod]);
    for (const path of ['stop', 'restart', 'migrate']) {
      assert.equal((await board.call('PUT', `virtualmachines/a/${path}`, { dryRun: ['All'] })).status, 202);
    }
    assert.equal((await board.call('PUT', 'virtualmachines/a/start', { dryRun: ['All'] })).status, 409);
    assert.equal((await board.call('PUT', 'virtualmachines/a/stop', { dryRun: ['Some'] })).status, 400);
    assert.deepEqual(board.writes, []);
  });
  // S-237: A dry run of `migrate` asks the admission, and a drain of a silent node names that as its blocker.
  // Compat KubeVirt's API, P1, yes: a dry run of `migrate` asks the admission
  it('a dry run of migrate asks the admission too', async () => {
    const createFails = new ApiError({ code: 400, message: 'in-flight migration detected.' });
    const board = boardOf([vmOf(), vmiOf('Running')], { createFails });
    const answer = await board.call('PUT', 'virtualmachines/a/migrate', { dryRun: ['All'] });
    assert.equal(answer.status, 500);
    assert.match(answer.text, /in-flight migration detected/);
  });
  it('a lost race is a conflict, any other failure an internal error', async () => {
    const lost = new ApiError({
      code: 422,
      reason: 'Invalid',
      message: 'the server rejected our request due to an error in our request: test',
    });
    const denied = new ApiError({
      code: 422,
      reason: 'Invalid',
      message: 'admission webhook "x" denied the request: no',
    });
    const status = async (patchFails: ApiError) =>
      (await boardOf([vmOf()], { patchFails }).call('PUT', 'virtualmachines/a/start')).status;
    assert.deepEqual([await status(lost), await status(denied)], [409, 500]);
  });
  it('a body that is none is a bad request', async () => {
    const board = boardOf([vmOf()]);
    for (const body of ['{', '[]', '1'])
      assert.equal((await board.call('PUT', 'virtualmachines/a/start', body)).status, 400);
  });
});

// S-027
describe('requests for the node agent', () => {
  type Row = [name: string, method: string, path: string, objects: KubeObject[], status: number, expected: string];
  const running = vmiOf('Running');
  const paused = vmiOf('Running', { conditions: ['Paused'] });
  const probed = vmiOf('Running', { spec: { livenessProbe: { tcpSocket: { port: 1 } } } });
  const pinged = vmiOf('Running', { spec: { livenessProbe: { guestAgentPing: {} } } });
  const noAcpi = vmiOf('Running', { spec: { domain: { devices: {}, features: { acpi: { enabled: false } } } } });
  const agent = vmiOf('Running', { conditions: ['AgentConnected'] });
  const rows: Row[] = [
    ['pause', 'PUT', 'pause', [running], 200, 'PUT pause'],
    ['pause: paused', 'PUT', 'pause', [paused], 409, 'VMI is already paused'],
    ['pause: not running', 'PUT', 'pause', [vmiOf('Scheduled')], 409, 'VM is not running'],
    ['pause: probed', 'PUT', 'pause', [probed], 403, 'LivenessProbe'],
    ['pause: probed through the agent', 'PUT', 'pause', [pinged], 200, 'PUT pause'],
    ['pause: missing', 'PUT', 'pause', [], 404, 'virtualmachineinstance.kubevirt.io "a" not found'],
    ['unpause', 'PUT', 'unpause', [paused], 200, 'PUT unpause'],
    ['unpause: not paused', 'PUT', 'unpause', [running], 409, 'VMI is not paused'],
    [
      'unpause: during a snapshot',
      'PUT',
      'unpause',
      [paused, vmOf({}, { snapshotInProgress: 's' })],
      409,
      'VM snapshot is in progress',
    ],
    ['softreboot', 'PUT', 'softreboot', [running], 200, 'PUT softreboot'],
    ['softreboot: paused', 'PUT', 'softreboot', [paused], 409, 'VMI is paused'],
    ['softreboot: deaf', 'PUT', 'softreboot', [noAcpi], 409, 'neither have the agent connected'],
    ['reset', 'PUT', 'reset', [running], 200, 'PUT reset'],
    ['reset: not running', 'PUT', 'reset', [vmiOf('Pending')], 409, 'VMI is not running'],
    ['freeze', 'PUT', 'freeze', [running], 200, 'PUT freeze'],
    ['freeze: not running', 'PUT', 'freeze', [vmiOf('Scheduled')], 409, 'VM is not running'],
    ['unfreeze: not running', 'PUT', 'unfreeze', [vmiOf('Scheduled')], 409, 'VMI is not running'],
    ['guestosinfo', 'GET', 'guestosinfo', [agent], 200, 'GET guestosinfo'],
    ['guestosinfo: no agent', 'GET', 'guestosinfo', [running], 500, 'VMI does not have guest agent connected'],
    ['vnc/screenshot', 'GET', 'vnc/screenshot', [running], 200, 'GET vnc/screenshot'],
    ['vnc/screenshot: not running', 'GET', 'vnc/screenshot', [vmiOf('Scheduled')], 400, 'VMI is not running'],
    ['userlist: not running', 'GET', 'userlist', [vmiOf('Failed')], 500, 'VMI is not running'],
    ['filesystemlist: missing', 'GET', 'filesystemlist', [], 404, 'not found'],
  ];
  for (const [name, method, path, objects, status, expected] of rows) {
    it(name, async () => {
      const board = boardOf(objects, { agent: ok });
      const answer = await board.call(method, `virtualmachineinstances/a/${path}`);
      assert.equal(answer.status, status, answer.text);
      if (status === 200) {
        const [verb, sub] = expected.split(' ');
        assert.deepEqual(board.asked, [{ method: verb, path: `/v1/namespaces/n/virtualmachineinstances/a/${sub}` }]);
      } else {
        assert.ok(messageIn(answer.text).includes(expected), answer.text);
        assert.deepEqual(board.asked, []);
      }
    });
  }
  it('a dry run does not reach the agent', async () => {
    const board = boardOf([running], { agent: ok });
    assert.equal((await board.call('PUT', 'virtualmachineinstances/a/pause', { dryRun: ['All'] })).status, 200);
    assert.deepEqual(board.asked, []);
  });
  it('a failure of the agent is an internal error with its words', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ message: 'QMP is gone' }));
    const board = boardOf([running], { agent: () => Promise.resolve({ status: 500, headers: {}, body }) });
    const answer = await board.call('PUT', 'virtualmachineinstances/a/pause');
    assert.equal(answer.status, 500);
    assert.match(messageIn(answer.text), /QMP is gone/);
  });
  it('so it is when its answer comes over the network, as a stream', async () => {
    const body = (sink: ByteSink): void => {
      sink.write(new TextEncoder().encode('{"message":"QMP '));
      sink.write(new TextEncoder().encode('is gone"}'));
      sink.end();
    };
    const board = boardOf([running], { agent: () => Promise.resolve({ status: 409, headers: {}, body }) });
    const answer = await board.call('PUT', 'virtualmachineinstances/a/pause');
    assert.equal(answer.status, 500);
    assert.match(messageIn(answer.text), /QMP is gone/);
  });
  it('an agent out of reach is an internal error', async () => {
    const answer = await boardOf([running]).call('PUT', 'virtualmachineinstances/a/pause');
    assert.equal(answer.status, 500);
    assert.match(messageIn(answer.text), /dialing virt-handler: node node does not exist/);
  });
});

describe('streams', () => {
  const running = vmiOf('Running');
  const upgrading: ApiHandler = () =>
    Promise.resolve({ status: 101, headers: {}, upgrade: { protocol: '', accept: (socket) => socket.send('hello') } });
  const websocket = { upgradable: true, headers: { 'sec-websocket-protocol': 'other, plain.kubevirt.io' } };

  it('hand the socket of the client to the agent', async () => {
    const board = boardOf([running], { agent: upgrading });
    const { response } = await board.call('GET', 'virtualmachineinstances/a/console', undefined, websocket);
    assert.equal(response.status, 101);
    assert.equal(response.upgrade?.protocol, 'plain.kubevirt.io');
    const sent: unknown[] = [];
    response.upgrade?.accept({ send: (data: unknown) => sent.push(data) } as unknown as MessageSocket);
    assert.deepEqual(sent, ['hello']);
  });
  it('choose no protocol that was not offered', async () => {
    const board = boardOf([running], { agent: upgrading });
    const { response } = await board.call('GET', 'virtualmachineinstances/a/console', undefined, { upgradable: true });
    assert.equal(response.upgrade?.protocol, '');
  });
  const created = vmOf({}, { created: true });
  const rows: [name: string, path: string, objects: KubeObject[], status: number, expected: string][] = [
    [
      'console without a serial device',
      'virtualmachineinstances/a/console',
      [vmiOf('Running', { spec: { domain: { devices: { autoattachSerialConsole: false } } } })],
      400,
      'No serial consoles are present.',
    ],
    [
      'console of a failed instance',
      'virtualmachineinstances/a/console',
      [vmiOf('Failed')],
      409,
      'VMI is in failed status',
    ],
    [
      'console of a starting instance',
      'virtualmachineinstances/a/console',
      [vmiOf('Scheduling')],
      400,
      'VMI is not running',
    ],
    [
      'VNC without a display',
      'virtualmachineinstances/a/vnc',
      [vmiOf('Running', { spec: { domain: { devices: { autoattachGraphicsDevice: false } } } })],
      400,
      'No graphics devices are present.',
    ],
    [
      'a forward to a paused guest',
      'virtualmachineinstances/a/portforward/22',
      [vmiOf('Running', { conditions: ['Paused'] })],
      409,
      'VMI is paused',
    ],
    ['a forward to no port', 'virtualmachineinstances/a/portforward/0', [running], 400, '0 is not a port number'],
    [
      'a forward by another protocol',
      'virtualmachineinstances/a/portforward/22/sctp',
      [running],
      400,
      'neither tcp nor udp',
    ],
    ['a forward to a machine that is off', 'virtualmachines/a/portforward/22', [vmOf()], 409, 'VMI is not started'],
    [
      'a forward to another machine of the name',
      'virtualmachines/a/portforward/22',
      [{ ...created, metadata: { ...created.metadata, uid: 'other' } }, running],
      500,
      'was not started by the vm',
    ],
    ['a forward', 'virtualmachineinstances/a/portforward/22', [running], 101, 'portforward/22/tcp'],
    ['a forward by UDP', 'virtualmachineinstances/a/portforward/53/udp', [running], 101, 'portforward/53/udp'],
    [
      'a forward through the machine',
      'virtualmachines/a/portforward/22/tcp',
      [created, running],
      101,
      'portforward/22/tcp',
    ],
  ];
  for (const [name, path, objects, status, expected] of rows) {
    it(name, async () => {
      const board = boardOf(objects, { agent: upgrading });
      const answer = await board.call('GET', path, undefined, websocket);
      assert.equal(answer.status, status, answer.text);
      const seen = status === 101 ? board.asked[0]?.path : messageIn(answer.text);
      assert.ok(seen?.includes(expected), String(seen));
    });
  }
  it('need a WebSocket', async () => {
    const answer = await boardOf([running], { agent: upgrading }).call('GET', 'virtualmachineinstances/a/console');
    assert.equal(answer.status, 400);
  });
});

describe('evacuate/cancel', () => {
  const marked = vmiOf('Running', { status: { evacuationNodeName: 'node' } });
  it('takes the mark back', async () => {
    const board = boardOf([marked]);
    const answer = await board.call('PUT', 'virtualmachineinstances/a/evacuate/cancel', {});
    assert.equal(answer.status, 200);
    assert.equal(board.writes[0]?.what, 'patch VirtualMachineInstance/status');
    assert.equal(Object.hasOwn(board.writes[0]!.result as object, 'evacuationNodeName'), false);
  });
  it('does nothing without a mark, and refuses another node', async () => {
    assert.equal(
      (await boardOf([vmiOf('Running')]).call('PUT', 'virtualmachineinstances/a/evacuate/cancel')).status,
      200,
    );
    const board = boardOf([marked]);
    assert.equal(
      (await board.call('PUT', 'virtualmachineinstances/a/evacuate/cancel', { evacuationNodeName: 'x' })).status,
      409,
    );
    assert.equal((await boardOf([vmOf()]).call('PUT', 'virtualmachines/a/evacuate/cancel')).status, 409);
  });
  it('refuses while the node is drained by its taint', async () => {
    const nodeOf = (key: string, effect: string) =>
      ({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'node' },
        spec: { taints: [{ key, effect }] },
      }) as KubeObject;
    const rows: [vmi: KubeObject, node: KubeObject, status: number][] = [
      [marked, nodeOf('kubevirt.io/drain', 'NoSchedule'), 400],
      [vmiOf('Running'), nodeOf('kubevirt.io/drain', 'NoSchedule'), 400],
      [marked, nodeOf('kubevirt.io/drain', 'NoExecute'), 200],
      [marked, nodeOf('other', 'NoSchedule'), 200],
    ];
    for (const [vmi, node, status] of rows) {
      const board = boardOf([vmi, node]);
      const answer = await board.call('PUT', 'virtualmachineinstances/a/evacuate/cancel');
      assert.equal(answer.status, status, answer.text);
      if (status === 400) assert.match(messageIn(answer.text) ?? '', /Node "node" has NodeDrainTaintKey/);
    }
  });
  // Compat KubeVirt's API, P1, yes: `evacuate/cancel` of instances and machines
  it('takes the mark back through the machine, and only from its own instance', async () => {
    const created = vmOf({}, { created: true });
    const board = boardOf([created, marked]);
    assert.equal((await board.call('PUT', 'virtualmachines/a/evacuate/cancel')).status, 200);
    const other = { ...created, metadata: { ...created.metadata, uid: 'other' } };
    assert.equal((await boardOf([other, marked]).call('PUT', 'virtualmachines/a/evacuate/cancel')).status, 500);
  });
});

describe('the API itself', () => {
  it('asks for the subresource with update for PUT and get for GET', async () => {
    const asked: string[] = [];
    const board = boardOf([vmOf(), vmiOf('Running')], {
      agent: ok,
      allowed: ({ verb, group, resource, subresource, namespace, name }) => {
        asked.push([verb, group, resource, subresource, namespace, name].join(' '));
        return false;
      },
    });
    const answer = await board.call('PUT', 'virtualmachines/a/start');
    assert.deepEqual(
      [answer.status, answer.text, answer.response.headers['content-type']],
      [401, '', 'text/plain; charset=utf-8'],
    );
    await board.call('GET', 'virtualmachineinstances/a/portforward/22/tcp');
    assert.deepEqual(asked, [
      'update subresources.kubevirt.io virtualmachines start n a',
      'get subresources.kubevirt.io virtualmachineinstances portforward n a',
    ]);
    assert.deepEqual(board.writes, []);
  });
  // S-027
  it('answers version, health and guestfs to everybody', async () => {
    const board = boardOf([], { allowed: () => false });
    assert.deepEqual(JSON.parse((await board.call('GET', 'version')).text), {
      gitVersion: 'v0',
      gitCommit: 'abc',
      gitTreeState: 'clean',
      buildDate: '2026-01-01T00:00:00Z',
      goVersion: 'node v26',
      compiler: 'coracle',
      platform: 'linux/arm64',
    });
    assert.deepEqual(JSON.parse((await board.call('GET', 'healthz')).text), { apiserver: { connectivity: 'ok' } });
    assert.equal((await board.call('GET', 'guestfs')).status, 200);
  });
  it('answers 404 to unknown paths and 405 to wrong methods', async () => {
    const board = boardOf([vmOf()]);
    assert.equal((await board.call('PUT', 'virtualmachines/a/fly')).status, 404);
    assert.equal((await board.call('PUT', 'virtualmachines/a/start/now')).status, 404);
    assert.equal((await board.call('GET', 'virtualmachineinstances/a/portforward')).status, 404);
    assert.equal((await board.call('GET', 'virtualmachines/a/start')).status, 405);
    assert.equal((await board.call('PUT', 'constructor')).status, 404);
  });
});

// S-1250
// S-1251
describe('addvolume and removevolume', () => {
  const root = { name: 'root', containerDisk: { image: 'i' } };
  const data = { name: 'data', persistentVolumeClaim: { claimName: 'c', hotpluggable: true } };
  const disk = { name: 'data', disk: { bus: 'scsi' } };
  const machine = (volumes?: object[], disks?: object[]) =>
    vmOf({ template: { spec: { domain: disks ? { devices: { disks } } : {}, ...(volumes && { volumes }) } } });
  const made = (volumes: object[], disks: object[]) => ({
    runStrategy: 'Manual',
    template: { spec: { domain: { devices: { disks } }, volumes } },
  });
  const add = {
    name: 'data',
    disk: { disk: { bus: 'scsi' } },
    volumeSource: { persistentVolumeClaim: { claimName: 'c' } },
  };
  const rows: [
    name: string,
    path: string,
    body: object | undefined,
    vm: VirtualMachine,
    status: number,
    expected: unknown,
  ][] = [
    ['added to none', 'addvolume', add, machine(), 202, made([data], [disk])],
    ['added', 'addvolume', add, machine([root], [{ name: 'root' }]), 202, made([root, data], [{ name: 'root' }, disk])],
    ['added in a dry run', 'addvolume', { ...add, dryRun: ['All'] }, machine(), 202, undefined],
    [
      'added without a name',
      'addvolume',
      { ...add, name: '' },
      machine(),
      400,
      'AddVolumeOptions requires name to be set',
    ],
    [
      'added without a disk',
      'addvolume',
      { ...add, disk: null },
      machine(),
      400,
      'AddVolumeOptions requires disk to not be nil',
    ],
    [
      'added without a source',
      'addvolume',
      { ...add, volumeSource: undefined },
      machine(),
      400,
      'AddVolumeOptions requires VolumeSource to not be nil',
    ],
    [
      'added twice',
      'addvolume',
      add,
      machine([data], [disk]),
      409,
      'Unable to add volume [data] because volume with that name already exists',
    ],
    [
      'the claim of another',
      'addvolume',
      { ...add, name: 'more' },
      machine([data], [disk]),
      409,
      'Unable to add volume source [c] because it already exists',
    ],
    [
      'removed',
      'removevolume',
      { name: 'data' },
      machine([root, data], [{ name: 'root' }, disk]),
      202,
      made([root], [{ name: 'root' }]),
    ],
    ['removed by its claim', 'removevolume', { name: 'c' }, machine([data], [disk]), 202, made([], [])],
    ['removed without a name', 'removevolume', {}, machine(), 400, 'RemoveVolumeOptions requires name to be set'],
    [
      'removed, not there',
      'removevolume',
      { name: 'x' },
      machine([data], [disk]),
      409,
      'Unable to remove volume [x] because it does not exist',
    ],
    [
      'removed, not pluggable',
      'removevolume',
      { name: 'root' },
      machine([root], [{ name: 'root' }]),
      409,
      'Unable to remove volume [root] because it is not hotpluggable',
    ],
  ];
  for (const [name, path, body, vm, status, expected] of rows) {
    it(name, async () => {
      const board = boardOf([vm]);
      const answer = await board.call('PUT', `virtualmachines/a/${path}`, body);
      assert.equal(answer.status, status, answer.text);
      if (status === 202)
        assert.deepEqual(
          board.writes.map(({ result }) => result),
          expected === undefined ? [] : [expected],
        );
      else assert.ok(messageIn(answer.text).endsWith(expected as string), answer.text);
    });
  }

  it('a machine that is refused keeps the words of the refusal; a lost race is reported', async () => {
    const refused = new ApiError({ code: 422, reason: 'Invalid', message: 'no such bus' });
    const answer = await boardOf([machine()], { patchFails: refused }).call('PUT', 'virtualmachines/a/addvolume', add);
    assert.deepEqual([answer.status, messageIn(answer.text)], [422, 'no such bus']);
  });

  it('an instance that runs is changed alone; one of a machine only where volumes do not follow that', async () => {
    const owned = vmiOf('Running');
    owned.metadata.ownerReferences = [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'a', uid: 'u' }];
    const gate = 'HotplugVolumes feature gate is not enabled.';
    const off = await boardOf([owned]).call('PUT', 'virtualmachineinstances/a/addvolume', add);
    assert.deepEqual([off.status, messageIn(off.text)], [400, `Unable to Add Volume because ${gate}`]);
    const ended = await boardOf([vmiOf('Failed')]).call('PUT', 'virtualmachineinstances/a/removevolume', { name: 'x' });
    assert.deepEqual([ended.status, /VMI is not running$/.test(messageIn(ended.text))], [409, true]);
    const made = { domain: { devices: { disks: [disk] } }, volumes: [data] };
    for (const [vmi, gates] of [
      [owned, ['HotplugVolumes']],
      [vmiOf('Running'), []],
    ] as const) {
      const board = boardOf([vmi], { gates: [...gates] });
      const { status } = await board.call('PUT', 'virtualmachineinstances/a/addvolume', add);
      assert.deepEqual([status, board.writes.map(({ result }) => result)], [202, [made]]);
    }
    const leaving = vmiOf('Running', { status: { volumeStatus: [{ name: 'data', target: '', phase: 'Detaching' }] } });
    const again = await boardOf([leaving]).call('PUT', 'virtualmachineinstances/a/addvolume', add);
    assert.deepEqual([again.status, /is still being detached$/.test(messageIn(again.text))], [409, true]);
  });
});

// S-1287: memorydump takes a claim that holds the guest's memory and refuses any other with the reason; removememorydump
//   lets it go.
describe('memorydump and removememorydump', () => {
  const claimOf = (spec: object = {}) =>
    ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c', namespace: 'n' },
      spec: { resources: { requests: { storage: '164Mi' } }, ...spec },
    }) as KubeObject;
  const running = vmiOf('Running', { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } });
  const requested = (phase: string, claimName = 'c') => vmOf({}, { memoryDumpRequest: { claimName, phase } });
  const path = '/status/memoryDumpRequest';
  const rows: [path: string, body: object, objects: KubeObject[], status: number, expected: RegExp | object][] = [
    ['memorydump', {}, [vmOf()], 400, /requires claim name/],
    ['memorydump', { claimName: 'c' }, [], 404, /"a" not found/],
    ['memorydump', { claimName: 'c' }, [vmOf()], 404, /virtualmachineinstance.kubevirt.io "a" not found/],
    ['memorydump', { claimName: 'c' }, [vmOf(), vmiOf('Scheduled')], 409, /VMI is not running/],
    ['memorydump', { claimName: 'c' }, [vmOf(), running], 404, /persistentvolumeclaim "c" not found/],
    [
      'memorydump',
      { claimName: 'c' },
      [vmOf(), running, claimOf({ volumeMode: 'Block' })],
      409,
      /should be filesystem pvc/,
    ],
    [
      'memorydump',
      { claimName: 'c' },
      [vmOf(), running, claimOf({ accessModes: ['ReadOnlyMany'] })],
      409,
      /can't be read only/,
    ],
    [
      'memorydump',
      { claimName: 'c' },
      [vmOf(), running, claimOf({ resources: { requests: { storage: '163Mi' } } })],
      409,
      /pvc size \[163Mi\] should be bigger then \[164Mi\]/,
    ],
    ['memorydump', { claimName: 'd' }, [requested('Completed'), running], 409, /while pvc \[c\] is still associated/],
    ['memorydump', {}, [requested('InProgress'), running, claimOf()], 409, /already in progress/],
    [
      'memorydump',
      {},
      [requested('Dissociating'), running, claimOf()],
      409,
      /remove memory dump request is in progress/,
    ],
    ['memorydump', {}, [requested('Completed'), running, claimOf()], 202, { claimName: 'c', phase: 'Associating' }],
    [
      'memorydump',
      { claimName: 'c' },
      [vmOf({}, {}), running, claimOf()],
      202,
      { claimName: 'c', phase: 'Associating' },
    ],
    ['removememorydump', {}, [vmOf()], 409, /no association found/],
    ['removememorydump', {}, [requested('Completed')], 202, { claimName: 'c', phase: 'Dissociating', remove: true }],
  ];
  for (const [index, [action, body, objects, status, expected]] of rows.entries())
    it(`${action} ${index}: ${status}`, async () => {
      const board = boardOf(objects);
      const answer = await board.call('PUT', `virtualmachines/a/${action}`, body);
      assert.equal(answer.status, status, answer.text);
      if (expected instanceof RegExp) {
        assert.match(messageIn(answer.text), expected);
        assert.deepEqual(board.writes, []);
      } else assert.deepEqual((board.writes[0]?.result as VirtualMachine['status'])?.memoryDumpRequest, expected, path);
    });
});

// S-313: What guests here do not have is refused with the reason.
describe('what guests here do not have is refused with the reason', () => {
  const rows: [
    method: string,
    path: string,
    objects: KubeObject[],
    gates: string[],
    status: number,
    message: RegExp,
  ][] = [
    ['GET', 'virtualmachineinstances/a/usbredir', [vmiOf('Running')], [], 409, /Not configured with USB Redirection$/],
    ['GET', 'virtualmachineinstances/a/usbredir', [], [], 404, /"a" not found$/],
    ['GET', 'virtualmachineinstances/a/vsock', [vmiOf('Running')], [], 400, /^VSOCK feature gate not enabled/],
    [
      'GET',
      'virtualmachineinstances/a/sev/fetchcertchain',
      [vmiOf('Running')],
      [],
      409,
      /Attestation not requested for VMI$/,
    ],
    ['PUT', 'virtualmachineinstances/a/sev/setupsession', [vmiOf('Pending')], [], 409, /VMI is not running$/],
    [
      'PUT',
      'virtualmachineinstances/a/backup',
      [vmiOf('Running')],
      [],
      400,
      /^'IncrementalBackup' feature gate is not enabled$/,
    ],
  ];
  for (const [method, path, objects, gates, status, message] of rows) {
    it(`${method} ${path}: ${status}`, async () => {
      const answer = await boardOf(objects, { gates }).call(method, path);
      assert.equal(answer.status, status, answer.text);
      assert.match(messageIn(answer.text), message);
    });
  }
});
