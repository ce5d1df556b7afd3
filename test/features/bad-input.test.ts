/**
 * What a user gets for a manifest that is wrong: never a 500, always the code, the reason and the path of the field.
 * Asked of a whole control plane (schemas, defaulting, KubeVirt's admission) as its admin.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Schema } from '../../packages/apimachinery/src/schema/schema.ts';
import type { ResourceInfo } from '../../packages/apimachinery/src/types/resource.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

type Json = Record<string, unknown>;

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
let board: InProcessControlPlane;
const send: InProcessControlPlane['send'] = (...request) => board.send(...request);

before(async () => {
  board = await startInProcess();
});
after(() => board.stop());

const disk = { name: 'root', disk: { bus: 'virtio' } };
const volume = { name: 'root', containerDisk: { image: 'localhost/coracle/tiny' } };
const template = (more: Json = {}, devices: Json = {}): Json => ({
  spec: { domain: { devices: { disks: [disk], ...devices } }, volumes: [volume], ...more },
});
const machine = (spec: Json): Json => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'bad' },
  spec: { runStrategy: 'Halted', template: template(), ...spec },
});
const ports = (...list: unknown[]): Json =>
  machine({
    template: template(
      { networks: [{ name: 'default', pod: {} }] },
      { interfaces: [{ name: 'default', masquerade: {}, ports: list }] },
    ),
  });
const IN = 'spec.template.spec';

test('the manifest the cases below depart from is a good one', async () => {
  const { status, json } = await send('POST', `${VMS}?dryRun=All&fieldValidation=Strict`, machine({}));
  assert.equal(status, 201, JSON.stringify(json));
});

// What is wrong, the manifest, the code, and each cause as `field: words of its message`.
const REFUSED: readonly [string, Json, number, readonly string[]][] = [
  ['running together with runStrategy', machine({ running: true }), 422, ['spec.running: mutually exclusive']],
  ['neither of the two', machine({ runStrategy: undefined }), 422, ['spec.running: One of Running or RunStrategy']],
  ['a run strategy there is none of', machine({ runStrategy: 'Sometimes' }), 422, ['spec.runStrategy: Sometimes']],
  ['no template', machine({ template: undefined }), 422, ['spec.template: ']],
  [
    'a disk without its volume',
    machine({ template: template({ volumes: [{ ...volume, name: 'other' }] }) }),
    422,
    [`${IN}.domain.devices.disks[0].name: 'root' not found`],
  ],
  [
    'two volumes of one name',
    machine({ template: template({ volumes: [volume, { name: 'root', emptyDisk: { capacity: '1Gi' } }] }) }),
    422,
    [`${IN}.volumes[1].name: must not have the same Name`],
  ],
  [
    'two disks of one name',
    machine({ template: template({}, { disks: [disk, disk] }) }),
    422,
    [`${IN}.domain.devices.disks[1].name: must not have the same Name`],
  ],
  [
    'two sources in one volume',
    machine({ template: template({ volumes: [{ ...volume, emptyDisk: { capacity: '1Gi' } }] }) }),
    422,
    [`${IN}.volumes[0]: one`],
  ],
  [
    'a port out of range',
    ports({ port: 70000 }),
    422,
    [`${IN}.domain.devices.interfaces[0].ports[0].port: range 0 < x < 65536`],
  ],
  ['a port of 0', ports({ port: 0 }), 422, [`${IN}.domain.devices.interfaces[0].ports[0]: `]],
  [
    'two ports of one name',
    ports({ name: 'http', port: 80 }, { name: 'http', port: 81 }),
    422,
    [`${IN}.domain.devices.interfaces[0].ports[1].name: Duplicate name`],
  ],
  [
    'an interface without its network',
    machine({
      template: template({ networks: [{ name: 'a', pod: {} }] }, { interfaces: [{ name: 'b', masquerade: {} }] }),
    }),
    422,
    [`${IN}.domain.devices.interfaces[0].name: `],
  ],
  [
    'memory that is no amount',
    machine({ template: { spec: { domain: { devices: {}, memory: { guest: 'lots' } } } } }),
    422,
    [`${IN}.domain.memory.guest: should match`],
  ],
  [
    'negative memory',
    machine({ template: { spec: { domain: { devices: {}, resources: { requests: { memory: '-64Mi' } } } } } }),
    422,
    [`${IN}.domain.resources.requests.memory: `],
  ],
  ['a name that is none', { ...machine({}), metadata: { name: 'Not_Valid' } }, 422, ['metadata.name: RFC 1123']],
  [
    'a label that is none',
    { ...machine({}), metadata: { name: 'bad', labels: { 'a b': 'c' } } },
    422,
    ['metadata.labels: a b'],
  ],
];

for (const [name, manifest, code, causes] of REFUSED) {
  test(`a virtual machine with ${name}: ${code}, with the field`, async () => {
    const { status, json } = await send('POST', VMS, manifest);
    assert.equal(status, code, JSON.stringify(json));
    assert.deepEqual([json.kind, json.status, json.reason, json.code], ['Status', 'Failure', 'Invalid', code]);
    const reported = (json.details?.causes ?? []) as { field: string; message: string; reason: string }[];
    for (const cause of causes) {
      const at = cause.indexOf(': ');
      const found = reported.find(
        ({ field, message }) => field === cause.slice(0, at) && message.includes(cause.slice(at + 2)),
      );
      assert.ok(found?.reason, `no cause ${cause} in ${JSON.stringify(reported)}`);
      assert.ok(json.message.includes(found.message), json.message);
    }
    assert.equal((await send('GET', `${VMS}/bad`, '')).status, 404, 'nothing of it is stored');
  });
}

// S-003
test('every mistake is reported at once, not one at a time', async () => {
  const { json } = await send(
    'POST',
    VMS,
    machine({ running: true, template: template({ volumes: [volume, volume] }, { disks: [disk, { name: 'none' }] }) }),
  );
  const fields = json.details.causes.map(({ field }: { field: string }) => field);
  for (const field of ['spec.running', `${IN}.volumes[1].name`, `${IN}.domain.devices.disks[1].name`])
    assert.ok(fields.includes(field), `${field} is not in ${fields}`);
});

// S-003
test('values of a wrong type: 400 that names the field and both types', async () => {
  const cases: [Json, RegExp][] = [
    [machine({ runStrategy: ['Halted'] }), /spec\.runStrategy: expected string, got array/],
    [machine({ running: 'yes', runStrategy: undefined }), /spec\.running: expected bool, got string/],
    [machine({ template: template({ volumes: 'root' }) }), /spec\.volumes: expected array, got string/],
    [
      machine({ template: { spec: { domain: { devices: {}, cpu: { cores: 'two' } } } } }),
      /cpu\.cores: expected uint32, got string/,
    ],
    [
      machine({ template: { spec: { domain: { devices: {}, cpu: { cores: 1.5 } } } } }),
      /cpu\.cores: expected uint32, got number 1\.5/,
    ],
    [
      machine({ template: { spec: { domain: { devices: {}, cpu: { cores: -1 } } } } }),
      /cpu\.cores: expected uint32, got number -1/,
    ],
    [{ ...machine({}), metadata: 'bad' }, /metadata: expected object, got string$/],
    [{ ...machine({}), metadata: { name: ['bad'] } }, /name: expected string, got array$/],
    [{ ...machine({}), spec: [] }, /spec/],
  ];
  for (const [manifest, wanted] of cases) {
    const { status, json } = await send('POST', VMS, manifest);
    assert.ok(status === 400 || status === 422, `${status} ${JSON.stringify(json)}`);
    assert.match(json.message, wanted);
  }
  const { status, json } = await send('POST', CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'x' },
    data: { a: 1 },
  });
  assert.deepEqual([status, json.reason], [400, 'BadRequest']);
  assert.match(json.message, /data\.\w+: expected string, got number/);
});

test('unknown and duplicate fields: an error when strict, a warning by default, silence when asked', async () => {
  const manifest = machine({ runStrategey: 'Halted', template: template({ volumes: [{ ...volume, color: 'red' }] }) });
  const strict = await send('POST', `${VMS}?fieldValidation=Strict`, manifest);
  assert.deepEqual([strict.status, strict.json.reason], [400, 'BadRequest']);
  assert.match(
    strict.json.message,
    /strict decoding error: unknown field "spec\.runStrategey", unknown field "spec\.template\.spec\.volumes\[0\]\.color"/,
  );
  const warned = await send('POST', `${VMS}?dryRun=All`, manifest);
  assert.equal(warned.status, 201);
  assert.match(warned.warnings, /299 - "unknown field \\"spec\.runStrategey\\""/);
  assert.equal(warned.json.spec.runStrategey, undefined);
  const silent = await send('POST', `${VMS}?dryRun=All&fieldValidation=Ignore`, manifest);
  assert.deepEqual([silent.status, silent.warnings], [201, '']);
  const wrong = await send('POST', `${VMS}?fieldValidation=Loose`, manifest);
  assert.ok([400, 422].includes(wrong.status));
  assert.match(wrong.json.message, /supported values:.*"Ignore", "Strict", "Warn"/);

  const twice = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: "1", a: "2"}\n';
  const duplicate = await send('POST', `${CONFIG_MAPS}?fieldValidation=Strict`, twice, 'application/yaml');
  assert.equal(duplicate.status, 400);
  assert.match(duplicate.json.message, /"?a"? already set|duplicate/);
  const inJson = await send(
    'POST',
    `${CONFIG_MAPS}?fieldValidation=Strict`,
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","name":"y"}}',
  );
  assert.equal(inJson.status, 400);
  assert.match(inJson.json.message, /duplicate field "metadata\.name"/);
});

// S-003
// Compat HTTP, P0, yes: bodies over 3 MiB, and JSON patches of more than 10 000 operations: 413
test('a body that cannot be read: 400, 413 or 415, and never a crash', async () => {
  const bad: [string, string | Uint8Array, string, number][] = [
    ['JSON cut short', '{"apiVersion":"v1","kind":"ConfigMap"', 'application/json', 400],
    ['text as JSON', 'hello', 'application/json', 400],
    ['a list as JSON', '[]', 'application/json', 400],
    ['null', 'null', 'application/json', 422],
    ['a number', '42', 'application/json', 400],
    ['nothing', '', 'application/json', 400],
    ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]), 'application/json', 422],
    ['two documents', '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}{}', 'application/json', 400],
    ['another kind', '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}', 'application/json', 400],
    ['another version', '{"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}', 'application/json', 400],
    ['YAML that is not YAML', 'apiVersion: v1\nkind: [ConfigMap\nmetadata', 'application/yaml', 400],
    ['YAML with a tab', 'apiVersion: v1\nmetadata:\n\tname: x\n', 'application/yaml', 400],
    [
      'YAML aliases without end',
      `a: &a ["x","x"]\n${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*${i === 0 ? 'a' : `b${i - 1}`}, *${i === 0 ? 'a' : `b${i - 1}`}]`).join('\n')}\n`,
      'application/yaml',
      400,
    ],
    ['depth without end', '['.repeat(200_000), 'application/json', 400],
    [
      'objects in objects without end',
      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`,
      'application/json',
      400,
    ],
    ['protobuf that is none', 'k8s\0garbage', 'application/vnd.kubernetes.protobuf', 400],
    ['a type nobody speaks', '<x/>', 'application/xml', 415],
    ['a body over the limit', `{"a":"${'x'.repeat(3 * 1024 * 1024)}"}`, 'application/json', 413],
  ];
  for (const [name, body, type, wanted] of bad) {
    const { status, json } = await send('POST', CONFIG_MAPS, body, type);
    assert.equal(status, wanted, `${name}: ${JSON.stringify(json).slice(0, 300)}`);
    assert.deepEqual([json.kind, json.code], ['Status', wanted], name);
    assert.ok(json.message.length > 10 && json.message.length < 5000, `${name}: ${json.message.length} characters`);
  }
});

// S-114
test('names of inherited members are only names', async () => {
  const body =
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"proto","labels":{"constructor":"x"}},"data":{"__proto__":"a","toString":"b"}}';
  const { status, json } = await send('POST', CONFIG_MAPS, body);
  assert.equal(status, 201, JSON.stringify(json));
  assert.deepEqual(Object.keys(json.data).sort(), ['__proto__', 'toString']);
  assert.equal(({} as Json)['a'], undefined);
  for (const path of [
    '/apis/__proto__/v1/constructor',
    '/api/v1/namespaces/default/__proto__',
    '/api/v1/constructor',
    '/apis/kubevirt.io/v1/toString',
  ])
    assert.equal((await send('GET', path, '')).status, 404, path);
});

test('patches that are wrong', async () => {
  const path = `${CONFIG_MAPS}/patched`;
  await send('POST', CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'patched' },
    data: { a: '1' },
  });
  const cases: [string, unknown, string, readonly number[]][] = [
    ['a JSON patch that is no list', {}, 'json-patch', [400]],
    ['an operation nobody knows', [{ op: 'frob', path: '/data' }], 'json-patch', [422]],
    ['a path that is not there', [{ op: 'remove', path: '/data/none' }], 'json-patch', [422]],
    ['a test that fails', [{ op: 'test', path: '/data/a', value: '2' }], 'json-patch', [422]],
    ['a merge patch that is a list', [], 'merge-patch', [400]],
    ['a wrong type by merge', { data: { a: 1 } }, 'merge-patch', [400, 422]],
    ['a wrong type by strategic merge', { data: 'x' }, 'strategic-merge-patch', [400, 422]],
    ['another name', { metadata: { name: 'other' } }, 'merge-patch', [400, 422]],
    ['another uid', { metadata: { uid: 'other' } }, 'merge-patch', [409, 422]],
    ['a stale resourceVersion', { metadata: { resourceVersion: '1' } }, 'merge-patch', [409]],
  ];
  for (const [name, patch, type, wanted] of cases) {
    const { status, json } = await send('PATCH', path, patch, `application/${type}+json`);
    assert.ok(wanted.includes(status), `${name}: ${status} ${JSON.stringify(json)}`);
    assert.equal(json.kind, 'Status', name);
  }
  assert.equal((await send('PATCH', path, {}, 'application/json')).status, 415);
  assert.deepEqual((await send('GET', path, '')).json.data, { a: '1' });
});

/** Every place of a schema with something that does not belong there: null, an empty object, a list with a hole. */
function* strange(schema: Schema, build: (value: unknown) => Json, depth = 0): Generator<Json> {
  if (depth > 9) return;
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const here = (value: unknown): Json => build({ [name]: value });
    if (member.items) {
      yield here([null]);
      yield here([{}]);
    } else if (member.type === 'object') {
      for (const value of [null, {}, { a: null }]) yield here(value);
    }
    yield* strange(member.items ?? member, member.items ? (value) => here([value]) : here, depth + 1);
  }
}

// S-003
test('no place of a KubeVirt object makes the server stumble: null, nothing, a list with a hole', async () => {
  let count = 0;
  const crashes: string[] = [];
  for (const info of kubevirtResources() as readonly ResourceInfo[]) {
    if (info.version === 'v1alpha3' || !info.verbs.includes('create') || info.resource === 'kubevirts') continue;
    const apiVersion = `${info.group}/${info.version}`;
    const scope = info.namespaced ? 'namespaces/default/' : '';
    const collection = `/apis/${apiVersion}/${scope}${info.resource}?dryRun=All`;
    const base = { apiVersion, kind: info.kind, metadata: { name: 'strange' } };
    const bodies = [
      {},
      base,
      { ...base, spec: null },
      { ...base, spec: {} },
      { ...base, status: null },
      { ...base, metadata: null },
    ];
    for (const body of [...bodies, ...strange(info.schema.properties!['spec']!, (spec) => ({ ...base, spec }))]) {
      const { status, json } = await send('POST', collection, body);
      count++;
      if (status >= 500) crashes.push(`${JSON.stringify(body)}: ${json.message}`);
    }
  }
  assert.deepEqual(crashes.slice(0, 10), []);
  assert.ok(count > 1000, `only ${count} bodies were tried`);
});
