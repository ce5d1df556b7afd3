/** What a machine asks for and no guest here gets is reported at once. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../testkit/eventually.ts';
import { type FakeCluster, startFakeCluster } from '../testkit/fake-cluster.ts';

let cluster: FakeCluster;
before(async () => {
  cluster = await startFakeCluster({ nodes: ['node-1'], components: 'vm,replica-set,pool' });
});
after(async () => {
  await cluster.stop();
  assert.deepEqual(cluster.errors, []);
});

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const make = (name: string, spec: object, more: object = {}) =>
  cluster.board.send('POST', VMS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { runStrategy: 'Halted', template: { spec }, ...more },
  });

const NETWORKS = [{ name: 'first', pod: {} }];
const NICS = [{ name: 'first', masquerade: {}, acpiIndex: 1 }];

// S-1293
test('a machine that asks for what is not served is answered with a warning and has an event, though it does not run', async () => {
  const domain = { memory: { guest: '64Mi', hugepages: { pageSize: '2Mi' } }, devices: { blockMultiQueue: true } };
  const { status, warnings, json } = await make('unserved', { domain });
  assert.equal(status, 201, JSON.stringify(json));
  assert.match(warnings, /spec\.template\.spec\.domain\.memory\.hugepages: huge pages are not supported/);
  assert.match(warnings, /spec\.template\.spec\.domain\.devices\.blockMultiQueue: blockMultiQueue has no effect/);
  await eventually('the events', async () => {
    const events = (await cluster.events('unserved')).join('\n');
    return /NotSupported huge pages/.test(events) && /NotSupported blockMultiQueue/.test(events);
  });
  const moving = await make(
    'moving',
    { domain: { memory: { guest: '64Mi' }, devices: {} } },
    { updateVolumesStrategy: 'Migration' },
  );
  assert.match(moving.warnings, /spec\.updateVolumesStrategy: .*not moved into others/);
  await eventually('its event', async () => (await cluster.events('moving')).some((one) => /not moved/.test(one)));
  const plain = await make('plain', { domain: { memory: { guest: '64Mi' }, devices: {} } });
  assert.equal(plain.warnings, '');
});

// S-1401: Replica sets and pools are answered with the same warnings for their templates, and tell it in events of their own
//   as soon as they make something of a template, a changed one too.
// Compat KubeVirt's API, P1, yes: fields of templates of replica sets and pools that no guest gets: warnings and events
for (const [kind, apiVersion, path, place, specOf] of [
  [
    'VirtualMachineInstanceReplicaSet',
    'kubevirt.io/v1',
    '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancereplicasets',
    'spec.template.spec',
    (template: object) => ({ template }),
  ],
  [
    'VirtualMachinePool',
    'pool.kubevirt.io/v1beta1',
    '/apis/pool.kubevirt.io/v1beta1/namespaces/default/virtualmachinepools',
    'spec.virtualMachineTemplate.spec.template.spec',
    (template: { readonly metadata: object }) => ({
      virtualMachineTemplate: { metadata: template.metadata, spec: { runStrategy: 'Halted', template } },
    }),
  ],
] as const)
  test(`a ${kind} tells what its template asks for in vain`, async () => {
    const name = kind.toLowerCase();
    const metadata = { labels: { app: name } };
    const domain = (more: object) => ({ memory: { guest: '64Mi' }, devices: { interfaces: NICS, ...more } });
    const template = (more: object) => ({ metadata, spec: { domain: domain(more), networks: NETWORKS } });
    const { status, warnings, json } = await cluster.board.send('POST', path, {
      apiVersion,
      kind,
      metadata: { name },
      spec: { replicas: 1, selector: { matchLabels: { app: name } }, ...specOf(template({ blockMultiQueue: true })) },
    });
    assert.equal(status, 201, JSON.stringify(json));
    for (const field of ['domain.devices.blockMultiQueue', 'domain.devices.interfaces[0].acpiIndex'])
      assert.ok(warnings.includes(`${place}.${field}: `), warnings);
    const reported = (text: string): Promise<unknown> =>
      eventually(text, async () => (await cluster.events(name)).some((event) => event.includes(text)));
    await reported('Warning NotSupported blockMultiQueue has no effect');
    await reported('Warning NotSupported interface first: acpiIndex is not supported');
    const changed = await cluster.board.send(
      'PATCH',
      `${path}/${name}`,
      { spec: { ...specOf(template({ networkInterfaceMultiqueue: true })), replicas: 2 } },
      'application/merge-patch+json',
    );
    assert.equal(changed.status, 200, JSON.stringify(changed.json));
    assert.ok(changed.warnings.includes(`${place}.domain.devices.networkInterfaceMultiqueue: `), changed.warnings);
    await reported('Warning NotSupported networkInterfaceMultiqueue');
  });

// S-1294: Settings of the verbosity of logs, of the cluster and of a guest, are answered with a warning that names what sets it here.
test('verbosity of logs is not set by the API, and says so', async () => {
  const { status, warnings } = await cluster.board.send(
    'PATCH',
    '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt',
    { spec: { configuration: { developerConfiguration: { logVerbosity: { virtLauncher: 6 } } } } },
    'application/merge-patch+json',
  );
  assert.equal(status, 200);
  assert.match(warnings, /developerConfiguration\.logVerbosity: has no effect here; .*CORACLE_LOG/);
  const made = await cluster.board.send('POST', VMS, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'loud' },
    spec: {
      runStrategy: 'Halted',
      template: {
        metadata: { labels: { logVerbosity: '5' } },
        spec: { domain: { memory: { guest: '64Mi' }, devices: {} } },
      },
    },
  });
  assert.match(made.warnings, /spec\.template\.metadata\.labels\.logVerbosity: has no effect here/);
});

// S-1293
test('kinds of volumes that no guest here has are refused with their place', async () => {
  const gates = ['DownwardMetrics', 'ContainerPathVolumes', 'Sidecar'];
  await cluster.board.send(
    'PATCH',
    '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt',
    { spec: { configuration: { developerConfiguration: { featureGates: gates } } } },
    'application/merge-patch+json',
  );
  await eventually('they are on', async () => {
    const volumes = [
      { name: 'a', downwardMetrics: {} },
      { name: 'b', containerPath: { path: '/x' } },
    ];
    const { status, json } = await make('volumes', { domain: { memory: { guest: '64Mi' }, devices: {} }, volumes });
    assert.equal(status, 422, JSON.stringify(json));
    const causes: { field: string; message: string }[] = json.details.causes;
    const texts = causes.map(({ field, message }) => `${field} ${message}`).join('\n');
    return (
      /volumes\[0\]\.downwardMetrics .*metrics of the host are not shown/.test(texts) &&
      /volumes\[1\]\.containerPath .*no files that a guest could share/.test(texts)
    );
  });
  const metadata = { annotations: { 'hooks.kubevirt.io/hookSidecars': '[]' } };
  const spec = { domain: { memory: { guest: '64Mi' }, devices: {} } };
  const { status, warnings } = await make('hooked', {}, { template: { metadata, spec } });
  assert.equal(status, 201);
  assert.match(
    warnings,
    /spec\.template\.metadata\.annotations\[hooks\.kubevirt\.io\/hookSidecars\]: no sidecars are run/,
  );
});
