import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { applyDefaults } from '../../../apimachinery/src/schema/defaults.ts';
import { pruneUnknown } from '../../../apimachinery/src/schema/prune.ts';
import type { Schema } from '../../../apimachinery/src/schema/schema.ts';
import { validateSchema } from '../../../apimachinery/src/schema/validate.ts';
import { kubevirtCrds, kubevirtResources } from './kubevirt.ts';
import { definitionSchema } from './structural-schema.ts';

type Json = Record<string, unknown>;

const OWN = new URL('../../../../test/fixtures/kubevirt/', import.meta.url);
const SHARED = new URL('../../../../../shared/data/kubevirt-examples/', import.meta.url);

const manifests = (folder: URL): [string, Json][] =>
  existsSync(folder)
    ? readdirSync(folder).map((file) => [file, parse(readFileSync(new URL(file, folder), 'utf8')) as Json])
    : [];

const infoOf = (kind: string) => {
  const info = kubevirtResources().find((candidate) => candidate.kind === kind);
  assert.ok(info, `${kind} is served`);
  return info;
};
const unknownFields = (kind: string, object: Json): string[] =>
  pruneUnknown(infoOf(kind).schema, structuredClone(object), { custom: true });

describe('real manifests', () => {
  const ours = new Set(kubevirtResources().map(({ kind }) => kind));
  for (const [file, object] of [...manifests(OWN), ...manifests(SHARED)]) {
    const kind = String(object['kind']);
    if (!ours.has(kind)) continue;
    // S-022: KubeVirt's example manifests have no unknown field and fit the schema; an unknown field is reported as
    //   upstream reports it.
    it(`${file} has no unknown field and fits the schema`, () => {
      assert.deepEqual(unknownFields(kind, object), []);
      assert.deepEqual(validateSchema(infoOf(kind).schema, object, { custom: true }), []);
    });
  }
  it('includes our own three', () => assert.equal(manifests(OWN).length, 3));
});

describe('unknown fields', () => {
  const vm = (spec: Json, template: Json = {}): Json => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'x' },
    spec: { template: { spec, ...template } },
  });
  const cases: [name: string, object: Json, expected: string[]][] = [
    ['a misspelt field', vm({ domain: { devices: {}, memroy: {} } }), ['spec.template.spec.domain.memroy']],
    [
      'a member of an object that has none',
      vm({ domain: { devices: { interfaces: [{ name: 'a', masquerade: { port: 1 } }] } } }),
      ['spec.template.spec.domain.devices.interfaces[0].masquerade.port'],
    ],
    [
      'anything in template metadata is kept',
      vm({ domain: { devices: {} } }, { metadata: { anything: { x: 1 } } }),
      [],
    ],
    ['anything in a clock is kept', vm({ domain: { devices: {}, clock: { later: 1 } } }), []],
    [
      'a built-in type below ours',
      vm({ domain: { devices: {} }, tolerations: [{ key: 'a', operater: 'Exists' }] }),
      ['spec.template.spec.tolerations[0].operater'],
    ],
    [
      'a member called constructor',
      vm({ domain: { devices: {}, constructor: {} } }),
      ['spec.template.spec.domain.constructor'],
    ],
  ];
  for (const [name, object, expected] of cases) {
    it(name, () => assert.deepEqual(unknownFields('VirtualMachine', object), expected));
  }
});

describe('schema', () => {
  const vmi = (domain: Json): Json => ({ metadata: { name: 'x' }, spec: { domain: { devices: {}, ...domain } } });
  const cases: [name: string, domain: Json, field: string | undefined][] = [
    ['a quantity as text', { memory: { guest: '1Gi' } }, undefined],
    ['a quantity as number', { resources: { requests: { cpu: 2 } } }, undefined],
    ['no quantity', { memory: { guest: '1 Gi' } }, 'spec.domain.memory.guest'],
    ['a list where an object belongs', { memory: [] }, 'spec.domain.memory'],
    ['no devices', { devices: undefined }, 'spec.domain.devices'],
    ['an enumerated value', { rebootPolicy: 'Sometimes' }, 'spec.domain.rebootPolicy'],
    ['a disk without a name', { devices: { disks: [{ disk: {} }] } }, 'spec.domain.devices.disks[0].name'],
    [
      'too many disks',
      { devices: { disks: Array.from({ length: 257 }, (_, i) => ({ name: `d${i}` })) } },
      'spec.domain.devices.disks',
    ],
  ];
  for (const [name, domain, field] of cases) {
    it(`${field === undefined ? 'accepts' : 'refuses'} ${name}`, () => {
      const object = JSON.parse(JSON.stringify(vmi(domain))) as Json;
      const fields = validateSchema(infoOf('VirtualMachineInstance').schema, object, { custom: true }).map(
        (e) => e.field,
      );
      assert.deepEqual(fields, field === undefined ? [] : [field]);
    });
  }

  it('shows a virtual machine without a state as Stopped', () => {
    const object = { spec: {}, status: {} } as { status: Json };
    applyDefaults(infoOf('VirtualMachine').schema, object);
    assert.deepEqual(object.status, { printableStatus: 'Stopped' });
  });

  // S-020: `kubectl explain` of KubeVirt kinds shows our descriptions, of every property.
  it('describes every property of ours', () => {
    const missing: string[] = [];
    const walk = (node: Schema, path: string): void => {
      for (const [name, member] of Object.entries(node.properties ?? {})) {
        if (member.description === undefined) missing.push(`${path}.${name}`);
        walk(member, `${path}.${name}`);
      }
      if (node.items !== undefined) walk(node.items, `${path}[]`);
    };
    const spec = infoOf('VirtualMachineInstance').schema.properties!['spec']!;
    walk(spec.properties!['domain']!, 'domain');
    walk(spec.properties!['volumes']!.items!, 'volumes[]');
    assert.deepEqual(
      missing.filter((path) => !/secretRef|SecretRef|sysprep|fields\[\]/i.test(path)),
      [],
    );
  });
});

describe('kubevirtResources()', () => {
  // S-023: KubeVirt kinds are served as v1 and v1alpha3, with CRDs made of the same schema.
  // S-561: VirtualMachineSnapshot, VirtualMachineSnapshotContent and VirtualMachineRestore are served as v1beta1 and
  //   v1alpha1 of snapshot.kubevirt.io.
  it('serves v1 and the deprecated v1alpha3 of the core kinds, two versions of snapshots, one of the others', () => {
    const table = kubevirtResources().map(({ resource, version, shortNames, storageVersion, deprecationWarning }) =>
      [resource, version, shortNames.join(), storageVersion ?? 'stored', deprecationWarning !== undefined].join(' '),
    );
    assert.deepEqual(table, [
      'virtualmachines v1 vm,vms stored false',
      'virtualmachines v1alpha3 vm,vms kubevirt.io/v1 true',
      'virtualmachineinstances v1 vmi,vmis stored false',
      'virtualmachineinstances v1alpha3 vmi,vmis kubevirt.io/v1 true',
      'virtualmachineinstancemigrations v1 vmim,vmims stored false',
      'virtualmachineinstancemigrations v1alpha3 vmim,vmims kubevirt.io/v1 true',
      'virtualmachineinstancereplicasets v1 vmirs,vmirss stored false',
      'virtualmachineinstancereplicasets v1alpha3 vmirs,vmirss kubevirt.io/v1 true',
      'virtualmachineinstancepresets v1 vmipreset,vmipresets kubevirt.io/v1alpha3 true',
      'virtualmachineinstancepresets v1alpha3 vmipreset,vmipresets stored true',
      'kubevirts v1 kv,kvs stored false',
      'kubevirts v1alpha3 kv,kvs kubevirt.io/v1 true',
      'virtualmachineinstancetypes v1beta1 vminstancetype,vminstancetypes,vmf,vmfs stored false',
      'virtualmachineclusterinstancetypes v1beta1 vmclusterinstancetype,vmclusterinstancetypes,vmcf,vmcfs stored false',
      'virtualmachinepreferences v1beta1 vmpref,vmprefs,vmp,vmps stored false',
      'virtualmachineclusterpreferences v1beta1 vmcp,vmcps stored false',
      'migrationpolicies v1alpha1  stored false',
      'virtualmachinesnapshots v1beta1 vmsnapshot,vmsnapshots stored false',
      'virtualmachinesnapshots v1alpha1 vmsnapshot,vmsnapshots snapshot.kubevirt.io/v1beta1 false',
      'virtualmachinesnapshotcontents v1beta1 vmsnapshotcontent,vmsnapshotcontents stored false',
      'virtualmachinesnapshotcontents v1alpha1 vmsnapshotcontent,vmsnapshotcontents snapshot.kubevirt.io/v1beta1 false',
      'virtualmachinerestores v1beta1 vmrestore,vmrestores stored false',
      'virtualmachinerestores v1alpha1 vmrestore,vmrestores snapshot.kubevirt.io/v1beta1 false',
      'virtualmachineclones v1beta1 vmclone,vmclones stored false',
      'virtualmachineclones v1alpha1 vmclone,vmclones clone.kubevirt.io/v1beta1 false',
      'virtualmachinepools v1beta1 vmpool,vmpools stored false',
      'virtualmachinepools v1alpha1 vmpool,vmpools pool.kubevirt.io/v1beta1 false',
      'virtualmachinebackups v1alpha1 vmbackup,vmbackups stored false',
      'virtualmachinebackuptrackers v1alpha1 vmbackuptracker,vmbackuptrackers stored false',
      'virtualmachineexports v1 vmexport,vmexports stored false',
      'virtualmachineexports v1beta1 vmexport,vmexports export.kubevirt.io/v1 true',
    ]);
  });
});

describe('kubevirtCrds()', () => {
  const crdOf = (kind: string) => kubevirtCrds(0).find(({ spec }) => spec.names.kind === kind)!;

  // S-023
  it('is plain JSON with one stored version and full schemas', () => {
    for (const info of kubevirtResources()) {
      const crd = crdOf(info.kind);
      const text = JSON.stringify(crd);
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(JSON.parse(text))));
      assert.equal(crd.metadata.name, `${info.resource}.${info.group}`);
      assert.equal(crd.spec.scope, info.namespaced ? 'Namespaced' : 'Cluster');
      assert.equal(crd.spec.versions.filter(({ storage }) => storage).length, 1);
      assert.ok(!text.includes('x-coracle'), 'no mark of ours is published');
      assert.ok(!text.includes('x-kubernetes-patch'), 'no merge keys are published');
    }
  });
  it('lists the columns of a virtual machine', () => {
    const [version] = crdOf('VirtualMachine').spec.versions;
    assert.deepEqual(
      version?.additionalPrinterColumns?.map(({ name, jsonPath }) => `${name} ${jsonPath}`),
      [
        'Age .metadata.creationTimestamp',
        'Status .status.printableStatus',
        "Ready .status.conditions[?(@.type=='Ready')].status",
      ],
    );
  });
  it('refuses a type that no table has', () => {
    assert.throws(() => definitionSchema('PodSpec'), /no type PodSpec in kinds\/tables/);
  });
});
