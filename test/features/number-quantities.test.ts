/** Amounts written as JSON or YAML numbers, fractions too: taken where upstream takes them, refused where it refuses. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let server: InProcessControlPlane;
before(async () => {
  server = await startInProcess();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await server.send('POST', '/api/v1/namespaces/default/serviceaccounts', account);
});
after(() => server.stop());

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/default';
const machine = (domain: object) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { generateName: 'vm-' },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {}, ...domain } } } },
});
const REQUESTS = { cpu: 2.2, memory: 2222222.2 };
const TEXTS = { cpu: '2200m', memory: '2222222200m' };

// S-422: Amounts of machines and instances may be numbers of any size, with fractions; they are kept as text.
test('a machine and an instance take numbers of any size, with fractions, and keep them as text', async () => {
  const made = await server.send('POST', `${KUBEVIRT}/virtualmachines`, machine({ resources: { requests: REQUESTS } }));
  assert.equal(made.status, 201, JSON.stringify(made.json));
  assert.deepEqual(made.json.spec.template.spec.domain.resources.requests, TEXTS);
  const large = await server.send('POST', `${KUBEVIRT}/virtualmachines`, machine({ memory: { guest: 8_589_934_592 } }));
  assert.equal(large.json.spec.template.spec.domain.memory.guest, '8589934592');
  const { name } = made.json.metadata;
  const template = { spec: { domain: { resources: { requests: { cpu: 1.5 } } } } };
  const body = { spec: { template } };
  const patched = await server.send(
    'PATCH',
    `${KUBEVIRT}/virtualmachines/${name}`,
    body,
    'application/merge-patch+json',
  );
  assert.equal(patched.json.spec.template.spec.domain.resources.requests.cpu, '1500m');
  const instance = await server.send('POST', `${KUBEVIRT}/virtualmachineinstances`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { generateName: 'vmi-' },
    spec: { domain: { devices: {}, resources: { requests: { cpu: 2.2, memory: 134217728.2 } } } },
  });
  assert.deepEqual(instance.json.spec.domain.resources.requests, { cpu: '2200m', memory: '134217728200m' });
});

interface Domain {
  readonly resources: { readonly requests: object };
}

// S-801: Amounts in templates of replica sets and in presets may be numbers with fractions; they are kept as text.
for (const [kind, resource, spec, of] of [
  [
    'VirtualMachineInstanceReplicaSet',
    'virtualmachineinstancereplicasets',
    (domain: object) => ({
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { domain: { devices: {}, ...domain } } },
    }),
    (made: { spec: { template: { spec: { domain: Domain } } } }) => made.spec.template.spec.domain,
  ],
  [
    'VirtualMachineInstancePreset',
    'virtualmachineinstancepresets',
    (domain: object) => ({ selector: {}, domain: { devices: {}, ...domain } }),
    (made: { spec: { domain: Domain } }) => made.spec.domain,
  ],
] as const)
  test(`a ${kind} takes them too, at creation and on update`, async () => {
    const path = `${KUBEVIRT}/${resource}`;
    const made = await server.send('POST', path, {
      apiVersion: 'kubevirt.io/v1',
      kind,
      metadata: { generateName: 'set-' },
      spec: spec({ resources: { requests: REQUESTS } }),
    });
    assert.equal(made.status, 201, JSON.stringify(made.json));
    assert.deepEqual(of(made.json).resources.requests, TEXTS);
    const changed = await server.send('PUT', `${path}/${made.json.metadata.name}`, {
      ...made.json,
      spec: spec({ resources: { requests: { cpu: 1.5, memory: '64Mi' } } }),
    });
    assert.equal(changed.status, 200, JSON.stringify(changed.json));
    assert.deepEqual(of(changed.json).resources.requests, { cpu: '1500m', memory: '64Mi' });
  });

test('YAML is read the same, and so are built-in kinds', async () => {
  const requests = '{cpu: 2.2, memory: 2222222.2}';
  const yaml = (text: string, path: string) => server.send('POST', path, text, 'application/yaml');
  const vm = await yaml(
    `apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {generateName: vm-}\nspec: {runStrategy: Halted, template: {spec: {domain: {devices: {}, resources: {requests: ${requests}}}}}}\n`,
    `${KUBEVIRT}/virtualmachines`,
  );
  assert.deepEqual(vm.json.spec.template.spec.domain.resources.requests, TEXTS);
  const pod = await yaml(
    `apiVersion: v1\nkind: Pod\nmetadata: {generateName: p-}\nspec: {containers: [{name: c, image: i, resources: {requests: ${requests}}}]}\n`,
    '/api/v1/namespaces/default/pods',
  );
  assert.deepEqual(pod.json.spec.containers[0].resources.requests, TEXTS);
});

test('a kind that no webhook fills in takes whole numbers of any size, and no fractions', async () => {
  const path = '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/virtualmachineinstancetypes';
  const make = (guest: number) =>
    server.send('POST', path, {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineInstancetype',
      metadata: { generateName: 'it-' },
      spec: { cpu: { guest: 1 }, memory: { guest } },
    });
  assert.equal((await make(8_589_934_592)).status, 201);
  const refused = await make(1.5);
  assert.equal(refused.status, 422);
  assert.match(refused.json.message, /spec.memory.guest in body must be of type integer,string: "number"/);
});

test('a number that no amount can hold is refused by its place, at each kind', async () => {
  const out = await server.send('POST', `${KUBEVIRT}/virtualmachines`, machine({ memory: { guest: 5e-324 } }));
  const preset = await server.send('POST', `${KUBEVIRT}/virtualmachineinstancepresets`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstancePreset',
    metadata: { generateName: 'set-' },
    spec: { selector: {}, domain: { devices: {}, memory: { guest: 1e80 } } },
  });
  for (const { status, json } of [out, preset]) {
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(json.message, /domain\.memory\.guest/);
  }
});
