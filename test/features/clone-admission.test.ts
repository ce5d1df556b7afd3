/** VirtualMachineClones as users write them: what is filled in, what is refused and in which words, and who may. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
});
after(() => board.stop());

const CLONES = '/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones';
const SOURCE = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
const TARGET = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'copy' };
const WEBHOOK = 'admission webhook "vm-clone-validator.kubevirt.io" denied the request: ';

let made = 0;
const create = (spec: object, version = 'v1beta1') =>
  board.send('POST', CLONES.replace('v1beta1', version), {
    apiVersion: `clone.kubevirt.io/${version}`,
    kind: 'VirtualMachineClone',
    metadata: { name: `clone-${++made}`, namespace: 'default' },
    spec,
  });

const accepted: [name: string, spec: object][] = [
  ['of a machine that is not there yet', { source: SOURCE, target: TARGET }],
  [
    'of a snapshot',
    { source: { apiGroup: 'snapshot.kubevirt.io', kind: 'VirtualMachineSnapshot', name: 'copy' }, target: TARGET },
  ],
  [
    'with filters',
    { source: SOURCE, labelFilters: ['*', '!a/b*', 'c'], annotationFilters: [], template: { labelFilters: ['x*'] } },
  ],
  ['with addresses', { source: SOURCE, newMacAddresses: { a: 'BE-AD-00-00-BE-04', b: '', c: '0200.5e10.0001' } }],
  ['with a policy of names', { source: SOURCE, volumeNamePolicy: 'PrefixTargetName' }],
  [
    'with patches that only the restore can validate',
    { source: SOURCE, patches: ['{"op":"remove","path":"/spec/x"}'] },
  ],
];
for (const [name, spec] of accepted)
  test(`a clone ${name} is accepted`, async () => {
    const { status, json } = await create(spec);
    assert.equal(status, 201, JSON.stringify(json));
  });

const filterProblem = (name: string, filter: string): string =>
  `${name} filter ${filter} is invalid: cannot contain a wildcard character (*); FilterRules: WildcardChar can be only at the end of the filter`;
const refused: [name: string, spec: object, causes: [field: string, message: string][]][] = [
  [
    'a source of another kind',
    { source: { ...SOURCE, kind: 'Pod' } },
    [['spec.source.kind', 'Source kind is not supported']],
  ],
  [
    'a target of another kind',
    { source: SOURCE, target: { ...TARGET, kind: 'Pod' } },
    [['spec.target.kind', 'Target kind is not supported']],
  ],
  [
    'no apiGroup',
    { source: { kind: 'VirtualMachine', name: 'db' } },
    [['spec.source.apiGroup', "Source's APIGroup cannot be empty"]],
  ],
  ['an empty name', { source: { ...SOURCE, name: '' } }, [['spec.source.name', "Source's name cannot be empty"]]],
  [
    'an empty kind',
    { source: { ...SOURCE, kind: '' } },
    [
      ['spec.source.kind', 'Source kind is not supported'],
      ['spec.source.kind', "Source's Kind cannot be empty"],
    ],
  ],
  [
    'the source as target',
    { source: SOURCE, target: SOURCE },
    [['spec.target.name', 'Target name cannot be equal to source name when both are VirtualMachines']],
  ],
  [
    'filters that are none',
    {
      source: SOURCE,
      annotationFilters: ['!'],
      labelFilters: ['*b'],
      template: { annotationFilters: ['*c'], labelFilters: ['*d'] },
    },
    [
      ['spec.annotationFilters', 'a negation character is not a valid filter'],
      ['spec.labelFilters', filterProblem('spec.labels', '*b')],
      ['spec.template.annotationFilters', filterProblem('spec.template.annotations', '*c')],
      ['spec.template.labelFilters', filterProblem('spec.template.labels', '*d')],
    ],
  ],
  ...['x', '02:00:00:00:00', '02:00:00:00:00:00:00:01'].map((mac): (typeof refused)[number] => [
    `the address ${mac}`,
    { source: SOURCE, newMacAddresses: { eth: mac } },
    [['spec.newMacAddresses.eth', `interface eth has malformed MAC address (${mac}).`]],
  ]),
];
// S-591
// Compat KubeVirt's API, P1, yes: VirtualMachineClone: rules about new clones
for (const [name, spec, causes] of refused)
  test(`a clone with ${name} is refused in upstream's words`, async () => {
    const { status, json } = await create(spec);
    assert.equal(status, 422, JSON.stringify(json));
    assert.equal(json.message, WEBHOOK + causes.map(([, message]) => message).join(', '));
    assert.deepEqual(
      json.details.causes,
      causes.map(([field, message]) => ({ reason: 'FieldValueInvalid', message, field })),
    );
  });

test('the schema refuses a clone without a source, and an unknown policy of names', async () => {
  for (const [spec, message] of [
    [{ target: TARGET }, /spec\.source: Required value/],
    [{ source: SOURCE, volumeNamePolicy: 'InPlace' }, /spec\.volumeNamePolicy: Unsupported value: "InPlace"/],
  ] as const) {
    const { status, json } = await create(spec);
    assert.equal(status, 422);
    assert.match(json.message, message);
  }
});

// S-591
test('a target that is not named gets a name of its source', async () => {
  const generated = /^clone-db-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
  const { json } = await create({ source: SOURCE });
  const { name, ...rest } = json.spec.target;
  assert.match(name, generated);
  assert.deepEqual(rest, { apiGroup: 'kubevirt.io', kind: 'VirtualMachine' });
  const other = await create({ source: SOURCE, target: { ...TARGET, name: '' } }, 'v1alpha1');
  assert.match(other.json.spec.target.name, generated);
  assert.notEqual(other.json.spec.target.name, name);
});

// S-591
test('the spec of a clone never changes; its metadata and its status do', async () => {
  const { json } = await create({ source: SOURCE, target: TARGET });
  const at = `${CLONES}/${json.metadata.name}`;
  const change = (body: object, path = at) => board.send('PATCH', path, body, 'application/merge-patch+json');
  const { status, json: answer } = await change({ spec: { newSMBiosSerial: 'x' } });
  assert.equal(status, 422);
  assert.equal(answer.message, `${WEBHOOK}spec in immutable after creation`);
  assert.deepEqual(answer.details.causes, [
    { reason: 'FieldValueInvalid', message: 'spec in immutable after creation', field: 'spec' },
  ]);
  assert.equal((await change({ metadata: { labels: { a: 'b' } } })).status, 200);
  const reported = await change({ spec: { newSMBiosSerial: 'x' }, status: { phase: 'Failed' } }, `${at}/status`);
  assert.equal(reported.json.status.phase, 'Failed');
  assert.equal(reported.json.spec.newSMBiosSerial, undefined);
});

// S-597: What `virtctl create clone` prints works as it is.
test('what virtctl create clone prints is taken as it is', async () => {
  // virtctl 1.6: create clone --source-name db --label-filter '*' --new-mac-address eth:00-11-22-33-44-55
  const printed = `apiVersion: clone.kubevirt.io/v1beta1
kind: VirtualMachineClone
metadata:
  creationTimestamp: null
  name: clone-7xqzb
spec:
  labelFilters:
  - '*'
  newMacAddresses:
    eth: 00-11-22-33-44-55
  source:
    apiGroup: kubevirt.io
    kind: VirtualMachine
    name: db
  target:
    apiGroup: kubevirt.io
    kind: VirtualMachine
    name: ""
  template: {}
status: {}
`;
  const { status, json } = await board.send('POST', `${CLONES}?fieldValidation=Strict`, printed, 'application/yaml');
  assert.equal(status, 201, JSON.stringify(json));
  assert.match(json.spec.target.name, /^clone-db-/);
  assert.deepEqual([json.spec.template, json.status], [{}, undefined]);
});

test('a clone is refused where the cluster makes no snapshots', async () => {
  const kubevirt = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
  const gates = (disabledFeatureGates: string[] | null) =>
    board.send(
      'PATCH',
      kubevirt,
      { spec: { configuration: { developerConfiguration: { disabledFeatureGates } } } },
      'application/merge-patch+json',
    );
  assert.equal((await gates(['Snapshot'])).status, 200);
  const { status, json } = await create({ source: SOURCE });
  assert.deepEqual([status, json.message], [400, `${WEBHOOK}snapshot feature gate is not enabled`]);
  await gates(null);
});

// S-591: VirtualMachineClone is served as v1beta1 and v1alpha1 of clone.kubevirt.io; its target is named where the user
//   did not, its spec never changes, and what is wrong is refused in upstream's words.
test('kubectl lists a clone with its phase, source and target', async () => {
  const { json } = await board.send('GET', CLONES);
  assert.ok(json.items.length > 0);
  const discovery = await board.send('GET', '/apis/clone.kubevirt.io/v1beta1');
  const [kind, status] = discovery.json.resources;
  assert.deepEqual([kind.shortNames, kind.categories], [['vmclone', 'vmclones'], ['all']]);
  assert.equal(status.name, 'virtualmachineclones/status');
  const crd = await board.send(
    'GET',
    '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/virtualmachineclones.clone.kubevirt.io',
  );
  assert.deepEqual(
    crd.json.spec.versions.map(({ name, storage, additionalPrinterColumns }: Record<string, { name: string }[]>) => [
      name,
      storage,
      additionalPrinterColumns?.map((column) => column.name),
    ]),
    ['v1beta1', 'v1alpha1'].map((name, i) => [
      name,
      i === 0,
      ['Phase', 'SourceVirtualMachine', 'TargetVirtualMachine'],
    ]),
  );
});

test('those who edit a namespace may clone in it, and those who view it may look', async () => {
  const bind = (role: string) =>
    board.send('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: `kubevirt.io:${role}` },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: role }],
    });
  for (const role of ['edit', 'view']) assert.equal((await bind(role)).status, 201);
  const post = (user: string) =>
    board.sendAs([user], 'POST', CLONES, {
      apiVersion: 'clone.kubevirt.io/v1beta1',
      kind: 'VirtualMachineClone',
      metadata: { generateName: 'by-' },
      spec: { source: SOURCE },
    });
  assert.equal((await post('edit')).status, 201);
  assert.equal((await post('view')).status, 403);
  assert.equal((await board.sendAs(['view'], 'GET', CLONES)).status, 200);
  assert.equal((await board.sendAs(['nobody'], 'GET', CLONES)).status, 403);
});
