/**
 * Upstream's functional cases of object graphs (tests/storage/objectgraph_test.go), asked as virtctl asks: a GET with a
 * body, over TLS, by HTTP/2 and by HTTP/1.1.
 */
import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { after, before, describe, it, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { KUBEVIRTS, VIRTUAL_MACHINES, type VirtualMachine } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import type { ObjectGraphNode } from '../../packages/kubevirt/src/rules/object-graph/graph-node.ts';
import type { TlsServer } from '../../packages/runtime/src/http/tls-server.ts';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';
import { listenTls, newAuthority } from '../testkit/listen-tls.ts';

let cluster: FakeCluster;
let tls: TlsServer;
let session: ClientHttp2Session;
let credentials: { ca: string; cert: string; key: string };

before(async () => {
  const authority = await newAuthority();
  cluster = await startFakeCluster({ nodes: ['node-1'], plane: { clientCa: authority.certificate } });
  const user = { commonName: 'admin', organizations: ['system:masters'], usage: 'client', days: 1 } as const;
  const { certificate, key } = await authority.issue(user);
  credentials = { ca: authority.certificate, cert: certificate, key };
  tls = await listenTls(cluster.board.plane.handler, authority);
  session = connect(`https://127.0.0.1:${tls.port}`, credentials);
});
after(async () => {
  session.close();
  await tls.close(100);
  await cluster.stop();
});

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: graphs and Statuses.
  readonly json: any;
}

/** How a body may travel. Go's HTTP/2 says its length, a client that streams does not. */
const WAYS = {
  async 'HTTP/2'(path: string, body: string): Promise<Answer> {
    const length = { 'content-length': Buffer.byteLength(body) };
    return overHttp2(path, body, { ...length, 'content-type': 'application/json' });
  },
  'HTTP/2 of no declared length': (path: string, body: string) => overHttp2(path, body, {}),
  'HTTP/1.1': (path: string, body: string) => overHttp1(path, body, { 'content-length': Buffer.byteLength(body) }),
  'HTTP/1.1 in chunks': (path: string, body: string) => overHttp1(path, body, { 'transfer-encoding': 'chunked' }),
};

function overHttp2(path: string, body: string, headers: Record<string, string | number>): Promise<Answer> {
  const stream = session.request({ ':method': 'GET', ':path': path, ...headers }, { endStream: false });
  stream.end(body);
  return new Promise((resolve, reject) => {
    let status = 0;
    const chunks: Buffer[] = [];
    stream.on('response', (received) => {
      status = received[':status'] ?? 0;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => resolve({ status, json: JSON.parse(Buffer.concat(chunks).toString()) }));
    stream.on('error', reject);
  });
}

function overHttp1(path: string, body: string, headers: Record<string, string | number>): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpsRequest(
      { host: '127.0.0.1', port: tls.port, path, method: 'GET', headers, agent: false, ...credentials },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, json: JSON.parse(Buffer.concat(chunks).toString()) }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

const pathOf = (name: string, { resource = 'virtualmachines', version = 'v1' } = {}): string =>
  `/apis/subresources.kubevirt.io/${version}/namespaces/default/${resource}/${name}/objectgraph`;
const ask = (path: string, options?: object): Promise<Answer> =>
  WAYS['HTTP/2'](path, options === undefined ? '' : JSON.stringify(options));

const line = ({ objectReference: { kind, name }, optional, children = [] }: ObjectGraphNode): string =>
  `${kind}/${name.replace(/-[a-z0-9]{5}$/, '-x')}${optional ? '?' : ''}` +
  (children.length === 0 ? '' : `(${children.map(line).join(' ')})`);
async function linesOf(path: string, options?: object): Promise<string[]> {
  const { status, json } = await ask(path, options);
  assert.equal(status, 200, JSON.stringify(json));
  return ((json as ObjectGraphNode).children ?? []).map(line);
}

const template = (spec: object = {}) => ({
  spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, ...spec },
});
const makeMachine = (name: string, spec: object): Promise<unknown> =>
  cluster.client.create(VIRTUAL_MACHINES, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace: 'default' },
    spec,
  } as unknown as VirtualMachine);
const claim = (name: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
});
const make = async (resource: string, body: object): Promise<void> => {
  const { status, json } = await cluster.board.send('POST', `/api/v1/namespaces/default/${resource}`, body);
  assert.equal(status, 201, JSON.stringify(json));
};

describe('a started machine with a claim, firmware state and a Secret', () => {
  before(async () => {
    await make('persistentvolumeclaims', claim('test-pvc'));
    await make('secrets', { metadata: { name: 'test-secret' }, stringData: { token: 'x' } });
    await makeMachine('worker', {
      runStrategy: 'Always',
      template: template({
        domain: { devices: { tpm: { persistent: true } }, memory: { guest: '64Mi' } },
        accessCredentials: [
          {
            userPassword: {
              source: { secret: { secretName: 'test-secret' } },
              propagationMethod: { qemuGuestAgent: {} },
            },
          },
        ],
        volumes: [{ name: 'disk0', persistentVolumeClaim: { claimName: 'test-pvc' } }],
      }),
    });
    await eventually('the machine to be created', async () => {
      const { status } = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name: 'worker' });
      return status?.created || undefined;
    });
    // What a volume controller does.
    const state = await eventually('a claim for the firmware state', async () =>
      (await cluster.client.list(PERSISTENT_VOLUME_CLAIMS, { namespace: 'default' })).items.find(
        ({ metadata }) => metadata.labels?.['persistent-state-for'] === 'worker',
      ),
    );
    await cluster.client.patch(
      PERSISTENT_VOLUME_CLAIMS,
      { namespace: 'default', name: state.metadata.name ?? '' },
      { type: 'merge', body: { status: { phase: 'Bound', accessModes: state.spec?.accessModes } } },
      { subresource: 'status' },
    );
    await cluster.untilVmi('worker', 'has its Pod', ({ status }) => status?.phase === 'Scheduling');
  });

  const ALL = [
    'VirtualMachineInstance/worker(Pod/virt-launcher-worker-x)',
    'Secret/test-secret',
    'PersistentVolumeClaim/test-pvc',
    'PersistentVolumeClaim/persistent-state-for-worker-x',
  ];

  // Compat KubeVirt's API, P2, yes: objectgraph of machines and instances: nodes, order, options in the body
  for (const version of ['v1', 'v1alpha3'])
    it(`has all of them, in ${version}`, async () =>
      assert.deepEqual(await linesOf(pathOf('worker', { version })), ALL));

  const STORAGE = { labelSelector: { matchLabels: { 'kubevirt.io/dependency-type': 'storage' } } };
  // S-791: `objectgraph` of a virtual machine and of an instance answers what it depends on, in upstream's form and
  //   order; options travel in the body of the GET as JSON or YAML, by HTTP/1.1 and HTTP/2. A parent that the selector
  //   leaves out takes along what is below it; while the claim for the firmware state is not made yet, the rest is
  //   answered.
  for (const [way, send] of Object.entries(WAYS))
    it(`is filtered by the options in the body, by ${way}`, async () => {
      const { status, json } = await send(pathOf('worker'), JSON.stringify(STORAGE));
      assert.equal(status, 200);
      assert.deepEqual(json.children.map(line), ALL.slice(2));
    });

  it('takes options as YAML', async () => {
    const yaml = 'includeOptionalNodes: true\nlabelSelector:\n  matchLabels: {kubevirt.io/dependency-type: compute}\n';
    const { json } = await WAYS['HTTP/1.1'](pathOf('worker'), yaml);
    assert.deepEqual(json.children.map(line), ALL.slice(0, 1));
  });

  it('shows its instance with the Pod', async () =>
    assert.deepEqual(await linesOf(pathOf('worker', { resource: 'virtualmachineinstances' })), [
      'Pod/virt-launcher-worker-x',
      ...ALL.slice(1),
    ]));

  it('shows a volume that was added', async () => {
    await make('persistentvolumeclaims', claim('hotplug-pvc'));
    const body = {
      spec: {
        template: {
          spec: {
            volumes: [
              { name: 'disk0', persistentVolumeClaim: { claimName: 'test-pvc' } },
              { name: 'more', persistentVolumeClaim: { claimName: 'hotplug-pvc' } },
              { name: 'root', dataVolume: { name: 'late' } },
            ],
            domain: { devices: { disks: [{ name: 'disk0' }, { name: 'more' }, { name: 'root' }] } },
          },
        },
      },
    };
    await cluster.client.patch(VIRTUAL_MACHINES, { namespace: 'default', name: 'worker' }, { type: 'merge', body });
    assert.deepEqual(await linesOf(pathOf('worker')), [
      ...ALL.slice(0, 3),
      'PersistentVolumeClaim/hotplug-pvc',
      'DataVolume/late(PersistentVolumeClaim/late)',
      ALL[3],
    ]);
  });
});

// S-791
test('a machine whose firmware state has no claim yet has the rest of its graph', async () => {
  await makeMachine('early', {
    runStrategy: 'Halted',
    template: template({
      domain: { devices: { tpm: { persistent: true } }, memory: { guest: '64Mi' } },
      volumes: [{ name: 'disk0', configMap: { name: 'settings' } }],
    }),
  });
  assert.deepEqual(await linesOf(pathOf('early')), ['ConfigMap/settings']);
});

test('optional objects are left out on request, their revisions stay', async () => {
  const { status, json } = await cluster.board.send(
    'POST',
    '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/virtualmachineinstancetypes',
    {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineInstancetype',
      metadata: { name: 'test-instancetype' },
      spec: { cpu: { guest: 1 }, memory: { guest: '64Mi' } },
    },
  );
  assert.equal(status, 201, JSON.stringify(json));
  await makeMachine('sized', {
    runStrategy: 'Halted',
    instancetype: { kind: 'VirtualMachineInstancetype', name: 'test-instancetype' },
    template: { spec: { domain: { devices: {} }, networks: [], volumes: [] } },
  });
  await eventually('the status to name the revision', async () => {
    const vm = await cluster.client.get(VIRTUAL_MACHINES, { namespace: 'default', name: 'sized' });
    return vm.status?.instancetypeRef?.controllerRevisionRef?.name;
  });
  const kinds = async (options: object): Promise<string[]> =>
    (await linesOf(pathOf('sized'), options)).map((node) => node.split('/')[0]!);
  assert.deepEqual(await kinds({}), ['VirtualMachineInstancetype', 'ControllerRevision']);
  assert.deepEqual(await kinds({ includeOptionalNodes: false }), ['ControllerRevision']);
});

test('what is not there, what cannot be read, and who may not ask', async () => {
  const messageOf = async (path: string, body = ''): Promise<[number, string]> => {
    const { status, json } = await WAYS['HTTP/2'](path, body);
    return [status, json.message];
  };
  assert.deepEqual(await messageOf(pathOf('nobody')), [404, 'virtualmachine.kubevirt.io "nobody" not found']);
  assert.deepEqual(await messageOf(pathOf('nobody', { resource: 'virtualmachineinstances' })), [
    404,
    'virtualmachineinstance.kubevirt.io "nobody" not found',
  ]);
  await makeMachine('plain', { runStrategy: 'Halted', template: template() });
  for (const body of ['{', 'a: [', '"text"', '[]', '{"labelSelector":"a=b"}', '{"includeOptionalNodes":"no"}']) {
    const [status, message] = await messageOf(pathOf('plain'), body);
    assert.equal(status, 400, body);
    assert.match(message, /^Can not unmarshal Request body to struct, error: /, body);
  }
  assert.deepEqual(await linesOf(pathOf('plain')), []);
  const { status } = await cluster.board.sendAs(['jane', 'system:authenticated'], 'GET', pathOf('plain'));
  assert.equal(status, 403);
});

test('admin, edit and view may ask, by their roles', async () => {
  for (const role of ['admin', 'edit', 'view']) {
    await cluster.board.send('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `${role}-user` }],
    });
    for (const resource of ['virtualmachines', 'virtualmachineinstances']) {
      const user = [`${role}-user`, 'system:authenticated'] as const;
      const { status } = await cluster.board.sendAs(user, 'GET', pathOf('nobody', { resource }));
      assert.equal(status, 404, `${role} ${resource}`);
    }
  }
});

test('the gate: on in a new server, and off with upstream’s words when it is taken out', async () => {
  const key = { namespace: 'kubevirt', name: 'kubevirt' };
  const set = (featureGates: readonly string[]): Promise<unknown> =>
    cluster.client.patch(KUBEVIRTS, key, {
      type: 'merge',
      body: { spec: { configuration: { developerConfiguration: { featureGates } } } },
    });
  const kubevirt = await cluster.client.get(KUBEVIRTS, key);
  const before = kubevirt.spec?.configuration?.developerConfiguration?.featureGates ?? [];
  assert.ok(before.includes('ObjectGraph'));
  await set([]);
  for (const resource of ['virtualmachines', 'virtualmachineinstances']) {
    const { status, json } = await ask(pathOf('nobody', { resource }));
    const message = 'ObjectGraph feature gate not enabled: Unable to return object graph.';
    assert.deepEqual([status, json.reason, json.message], [400, 'BadRequest', message]);
  }
  await set(before);
});
