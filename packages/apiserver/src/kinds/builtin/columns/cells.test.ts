import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiVersion } from '../../../../../apimachinery/src/meta/gvk.ts';
import { builtinResource } from '../builtin-resources.ts';

const NOW = Date.UTC(2024, 5, 1, 12);
const ago = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();
const METADATA = { name: 'x', creationTimestamp: ago(300) };

/** The cells of an object by column name. */
function row(apiVersion: string, resource: string, object: Record<string, unknown>): Record<string, unknown> {
  const info = builtinResource({ ...parseApiVersion(apiVersion), resource });
  assert.ok(info, resource);
  return Object.fromEntries(
    info.columns.map((column) => [column.name, column.cell?.({ metadata: METADATA, ...object }, NOW)]),
  );
}

const containers = (...names: string[]): { name: string }[] => names.map((name) => ({ name }));
const pod = (spec: object, status: object, metadata: object = {}): Record<string, unknown> => ({
  metadata: { ...METADATA, ...metadata },
  spec: { containers: containers('a'), ...spec },
  status,
});
const running = { name: 'a', ready: true, restartCount: 0, state: { running: {} } };

// S-018
test('the Status of a Pod follows its containers', () => {
  const ready = [{ type: 'Ready', status: 'True' }];
  const cases: [string, Record<string, unknown>, string, string][] = [
    ['pending', pod({}, { phase: 'Pending' }), 'Pending', '0/1'],
    ['running', pod({}, { phase: 'Running', containerStatuses: [running] }), 'Running', '1/1'],
    ['evicted', pod({}, { phase: 'Failed', reason: 'Evicted' }), 'Evicted', '0/1'],
    [
      'gated',
      pod({}, { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] }),
      'SchedulingGated',
      '0/1',
    ],
    [
      'waiting',
      pod({}, { phase: 'Pending', containerStatuses: [{ name: 'a', state: { waiting: { reason: 'ErrImagePull' } } }] }),
      'ErrImagePull',
      '0/1',
    ],
    [
      'terminated with a reason',
      pod(
        {},
        { phase: 'Failed', containerStatuses: [{ state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }] },
      ),
      'OOMKilled',
      '0/1',
    ],
    [
      'terminated by a signal',
      pod({}, { phase: 'Failed', containerStatuses: [{ state: { terminated: { signal: 9, exitCode: 137 } } }] }),
      'Signal:9',
      '0/1',
    ],
    [
      'terminated with a code',
      pod({}, { phase: 'Failed', containerStatuses: [{ state: { terminated: { exitCode: 3 } } }] }),
      'ExitCode:3',
      '0/1',
    ],
    [
      'one of two is done, the Pod ready',
      pod(
        { containers: containers('a', 'b') },
        {
          phase: 'Running',
          conditions: ready,
          containerStatuses: [
            { state: { terminated: { reason: 'Completed', exitCode: 0 } } },
            { ...running, name: 'b' },
          ],
        },
      ),
      'Running',
      '1/2',
    ],
    [
      'one of two is done, the Pod not ready',
      pod(
        { containers: containers('a', 'b') },
        {
          phase: 'Running',
          containerStatuses: [
            { state: { terminated: { reason: 'Completed', exitCode: 0 } } },
            { ...running, name: 'b' },
          ],
        },
      ),
      'NotReady',
      '1/2',
    ],
    [
      'initialising',
      pod(
        { initContainers: containers('i', 'j') },
        { phase: 'Pending', initContainerStatuses: [{ name: 'i', state: {} }] },
      ),
      'Init:0/2',
      '0/1',
    ],
    [
      'second init container',
      pod(
        { initContainers: containers('i', 'j') },
        {
          phase: 'Pending',
          initContainerStatuses: [
            { name: 'i', state: { terminated: { exitCode: 0 } } },
            { name: 'j', state: {} },
          ],
        },
      ),
      'Init:1/2',
      '0/1',
    ],
    [
      'init failed',
      pod(
        { initContainers: containers('i') },
        { phase: 'Pending', initContainerStatuses: [{ name: 'i', state: { terminated: { exitCode: 1 } } }] },
      ),
      'Init:ExitCode:1',
      '0/1',
    ],
    [
      'init waiting',
      pod(
        { initContainers: containers('i') },
        {
          phase: 'Pending',
          initContainerStatuses: [{ name: 'i', state: { waiting: { reason: 'CrashLoopBackOff' } } }],
        },
      ),
      'Init:CrashLoopBackOff',
      '0/1',
    ],
    [
      'sidecar counts',
      pod(
        { initContainers: [{ name: 's', restartPolicy: 'Always' }] },
        {
          phase: 'Running',
          initContainerStatuses: [{ name: 's', ready: true, started: true, state: { running: {} } }],
          containerStatuses: [running],
        },
      ),
      'Running',
      '2/2',
    ],
    [
      'terminating',
      pod({}, { phase: 'Running', containerStatuses: [running] }, { deletionTimestamp: ago(1) }),
      'Terminating',
      '1/1',
    ],
    ['done while terminating', pod({}, { phase: 'Succeeded' }, { deletionTimestamp: ago(1) }), 'Succeeded', '0/1'],
    ['node lost', pod({}, { phase: 'Running', reason: 'NodeLost' }, { deletionTimestamp: ago(1) }), 'Unknown', '0/1'],
  ];
  for (const [name, object, status, readyText] of cases) {
    const cells = row('v1', 'pods', object);
    assert.equal(cells['Status'], status, name);
    assert.equal(cells['Ready'], readyText, name);
  }
});

test('Restarts tell when the last one was', () => {
  const lastState = { terminated: { exitCode: 1, finishedAt: ago(300) } };
  const cells = row(
    'v1',
    'pods',
    pod({}, { phase: 'Running', containerStatuses: [{ ...running, restartCount: 3, lastState }] }),
  );
  assert.equal(cells['Restarts'], '3 (5m ago)');
  assert.equal(cells['Age'], '5m');
  assert.equal(cells['IP'], '<none>');
  assert.equal(row('v1', 'pods', pod({}, { containerStatuses: [{ ...running, restartCount: 2 }] }))['Restarts'], '2');
});

// Compat Reading, P0, yes: columns and cells of the built-in kinds, ages
test('cells of the core kinds', () => {
  assert.deepEqual(
    row('v1', 'nodes', {
      metadata: {
        ...METADATA,
        labels: { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/control-plane': '' },
      },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: 'Ready', status: 'False' }],
        addresses: [{ type: 'InternalIP', address: '127.0.0.2' }],
        nodeInfo: { kubeletVersion: 'v1.36.0' },
      },
    }),
    {
      Status: 'NotReady,SchedulingDisabled',
      Roles: 'control-plane,worker',
      Age: '5m',
      Version: 'v1.36.0',
      'Internal-IP': '127.0.0.2',
      'External-IP': '<none>',
      'OS-Image': '<unknown>',
      'Kernel-Version': '<unknown>',
      'Container-Runtime': '<unknown>',
    },
  );
  assert.deepEqual(
    row('v1', 'services', {
      spec: {
        type: 'LoadBalancer',
        clusterIPs: ['10.0.0.1'],
        ports: [
          { port: 80, nodePort: 30080, protocol: 'TCP' },
          { port: 53, protocol: 'UDP' },
        ],
        selector: { b: '2', a: '1' },
      },
    }),
    {
      Type: 'LoadBalancer',
      'Cluster-IP': '10.0.0.1',
      'External-IP': '<pending>',
      'Port(s)': '80:30080/TCP,53/UDP',
      Age: '5m',
      Selector: 'a=1,b=2',
    },
  );
  assert.deepEqual(row('v1', 'configmaps', { data: { a: '', b: '' }, binaryData: { c: '' } }), { Data: 3, Age: '5m' });
  assert.deepEqual(
    row('v1', 'endpoints', {
      subsets: [{ addresses: [{ ip: '1.1.1.1' }, { ip: '::1' }], ports: [{ port: 1 }, { port: 2 }] }],
    })['Endpoints'],
    '1.1.1.1:1,[::1]:1,1.1.1.1:2 + 1 more...',
  );
  const claim = row('v1', 'persistentvolumeclaims', {
    spec: { volumeName: 'pv', storageClassName: 'fast', volumeMode: 'Block' },
    status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteMany', 'ReadWriteOnce'] },
  });
  assert.equal(claim['Access Modes'], 'RWO,RWX');
  assert.equal(claim['Capacity'], '1Gi');
  assert.equal(
    row('v1', 'resourcequotas', { status: { hard: { pods: '10', 'limits.cpu': '4' }, used: { pods: '1' } } })[
      'Request'
    ],
    'pods: 1/10',
  );
  assert.equal(
    row('v1', 'resourcequotas', { status: { hard: { pods: '10', 'limits.cpu': '4' } } })['Limit'],
    'limits.cpu: 0/4',
  );
});

test('events show series, counts and both spellings', () => {
  const core = row('v1', 'events', {
    involvedObject: { kind: 'Pod', name: 'p', fieldPath: 'spec' },
    firstTimestamp: ago(600),
    lastTimestamp: ago(60),
    source: { component: 'kubelet', host: 'n1' },
    message: ' hello\n',
  });
  assert.deepEqual(
    [
      core['Last Seen'],
      core['First Seen'],
      core['Object'],
      core['Source'],
      core['Message'],
      core['Count'],
      core['Name'],
    ],
    ['60s', '10m', 'pod/p', 'kubelet, n1', 'hello', 1, 'x'],
  );
  const newer = row('events.k8s.io/v1', 'events', {
    regarding: { kind: 'VirtualMachine', name: 'vm' },
    eventTime: ago(600),
    series: { count: 7, lastObservedTime: ago(5) },
    reportingController: 'virt',
    note: 'n',
  });
  assert.deepEqual(
    [newer['Last Seen'], newer['First Seen'], newer['Object'], newer['Source'], newer['Message'], newer['Count']],
    ['5s', '10m', 'virtualmachine/vm', 'virt', 'n', 7],
  );
});

test('cells of workloads and cluster kinds', () => {
  assert.equal(row('policy/v1', 'poddisruptionbudgets', { spec: { minAvailable: '50%' } })['Min Available'], '50%');
  const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  assert.equal(
    row('storage.k8s.io/v1', 'storageclasses', { metadata: { ...METADATA, annotations: isDefault } })['Name'],
    'x (default)',
  );
  assert.equal(
    row('rbac.authorization.k8s.io/v1', 'rolebindings', {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'ServiceAccount', namespace: 'n', name: 's' },
        { kind: 'User', name: 'u' },
      ],
    })['ServiceAccounts'],
    'n/s',
  );
  assert.equal(
    row('apiregistration.k8s.io/v1', 'apiservices', {
      status: { conditions: [{ type: 'Available', status: 'False', reason: 'MissingEndpoints' }] },
    })['Available'],
    'False (MissingEndpoints)',
  );
});

test('no cell fails on an empty object', async () => {
  const { builtinResources } = await import('../builtin-resources.ts');
  for (const info of builtinResources()) {
    for (const column of info.columns) {
      assert.doesNotThrow(() => column.cell?.({}, NOW), `${info.resource} ${column.name}`);
      assert.notEqual(column.cell?.({}, NOW), undefined, `${info.resource} ${column.name}`);
    }
  }
});

test('lists in one cell are cut as upstream cuts them', () => {
  const discovery = 'discovery.k8s.io/v1';
  const cases: [string, string, object, string, string][] = [
    [discovery, 'endpointslices', { ports: [{ name: 'http' }, { port: 8 }, {}] }, 'Ports', 'http,8,*'],
    [discovery, 'endpointslices', { ports: [{ name: '' }] }, 'Ports', '<unset>'],
    ['v1', 'endpoints', {}, 'Endpoints', '<none>'],
    ['v1', 'endpoints', { subsets: [{ notReadyAddresses: [{ ip: '1.1.1.1' }] }] }, 'Endpoints', ''],
  ];
  for (const [apiVersion, resource, object, column, expected] of cases) {
    const cells = row(apiVersion, resource, { ...object });
    assert.equal(cells[column], expected, `${resource} ${JSON.stringify(object)}`);
  }
});

test('cells of flow control, policies and components', () => {
  const flow = 'flowcontrol.apiserver.k8s.io/v1';
  const admission = 'admissionregistration.k8s.io/v1';
  const selected = (selector: object | undefined) => ({ spec: { policyName: 'p', paramRef: { selector } } });
  const exempt = { spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 0 } } };
  const matchExpressions = [{ key: 'k', operator: 'In', values: ['v', 'w'] }];
  const cases: [string, string, object, string, unknown][] = [
    [flow, 'prioritylevelconfigurations', exempt, 'NominalConcurrencyShares', '<none>'],
    [admission, 'validatingadmissionpolicybindings', selected(undefined), 'ParamRef', '<unset>'],
    [
      admission,
      'validatingadmissionpolicybindings',
      selected({ matchLabels: { b: '2', a: '1' }, matchExpressions }),
      'ParamRef',
      'a=1,b=2,k in (v,w)',
    ],
  ];
  for (const [apiVersion, resource, object, column, expected] of cases) {
    assert.equal(row(apiVersion, resource, { ...object })[column], expected, `${resource} ${JSON.stringify(object)}`);
  }
});
