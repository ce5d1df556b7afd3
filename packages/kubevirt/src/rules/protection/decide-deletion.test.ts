import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../apimachinery/src/meta/object.ts';
import type { PersistentVolumeClaim } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine, VirtualMachineRestore, VirtualMachineSnapshotContent } from '../../kinds/kubevirt.ts';
import { decideDeletion, isGuardedKind } from './decide-deletion.ts';
import { DELETE_PROTECTION_LABEL, guardsItsParts } from './delete-protection.ts';
import type { DeletionTarget, GuardingMachine, ProtectionLookup } from './deletion-target.ts';
import { referencesOf } from './references.ts';
import { deletionForbidden, refusalText } from './refusal-text.ts';
import { isUnderWay } from './restores.ts';

type Parts = Record<string, unknown>;
interface World {
  readonly vms?: readonly VirtualMachine[];
  readonly claims?: readonly PersistentVolumeClaim[];
  readonly restores?: readonly VirtualMachineRestore[];
  readonly contents?: readonly VirtualMachineSnapshotContent[];
  /** Namespaces with a KubeVirt object. */
  readonly kubevirts?: readonly string[];
}

/** What a case says of an object, and nothing else. */
function object<T extends KubeObject = KubeObject>(kind: string, name: string, parts: Parts = {}): T {
  const metadata = { name, namespace: 'ns', uid: `uid-${name}`, ...(parts.metadata as object) };
  const made: KubeObject = { apiVersion: 'v1', kind, ...parts, metadata };
  return made as T;
}
const vm = (name: string, volumes: readonly Parts[] = [], parts: Parts = {}): VirtualMachine =>
  object<VirtualMachine>('VirtualMachine', name, {
    spec: { template: { spec: { volumes } } },
    ...parts,
    metadata: { labels: { [DELETE_PROTECTION_LABEL]: 'true' }, ...(parts.metadata as object) },
  });
const claimVolume = (claimName: string): Parts => ({ name: 'disk', persistentVolumeClaim: { claimName } });
const claim = (name: string, parts: Parts = {}): PersistentVolumeClaim =>
  object<PersistentVolumeClaim>('PersistentVolumeClaim', name, parts);
const state = (name: string, of: string, creationTimestamp: string): PersistentVolumeClaim =>
  claim(name, { metadata: { labels: { 'persistent-state-for': of }, creationTimestamp } });

function lookupOf({ vms = [], claims = [], restores = [], contents = [], kubevirts = [] }: World): ProtectionLookup {
  const machines = (namespace?: string): GuardingMachine[] =>
    vms
      .filter((each) => guardsItsParts(each) && (namespace === undefined || each.metadata.namespace === namespace))
      .map((each) => ({ namespace: each.metadata.namespace!, name: each.metadata.name!, object: each }));
  return {
    referring: ({ group, resource }, { namespace, name }) =>
      new Set(
        machines(namespace).filter((each) =>
          referencesOf(each.object).some(
            (ref) => ref.group === group && ref.resource === resource && ref.name === name,
          ),
        ),
      ),
    referringToKind: ({ group, resource }) =>
      new Set(
        machines().filter((each) =>
          referencesOf(each.object).some((ref) => ref.group === group && ref.resource === resource),
        ),
      ),
    machines: (namespace) => new Set(machines(namespace)),
    machine: (namespace, name) => machines(namespace).find((each) => each.name === name),
    claim: (_, name) => claims.find((each) => each.metadata.name === name),
    stateClaims: (_, machine) => claims.filter((each) => each.metadata.labels?.['persistent-state-for'] === machine),
    kubevirts: (namespace) => (kubevirts.includes(namespace) ? ['kubevirt'] : []),
    restores: () => restores.filter(isUnderWay),
    content: (_, snapshot) => contents.find((each) => each.spec.virtualMachineSnapshotName === snapshot),
  };
}

const RESOURCES: Record<string, string> = {
  ConfigMap: '/configmaps',
  ControllerRevision: 'apps/controllerrevisions',
  CustomResourceDefinition: 'apiextensions.k8s.io/customresourcedefinitions',
  DataVolume: 'cdi.kubevirt.io/datavolumes',
  KubeVirt: 'kubevirt.io/kubevirts',
  Namespace: '/namespaces',
  PersistentVolume: '/persistentvolumes',
  PersistentVolumeClaim: '/persistentvolumeclaims',
  Pod: '/pods',
  Secret: '/secrets',
  VirtualMachine: 'kubevirt.io/virtualmachines',
  VirtualMachineSnapshot: 'snapshot.kubevirt.io/virtualmachinesnapshots',
  VirtualMachineSnapshotContent: 'snapshot.kubevirt.io/virtualmachinesnapshotcontents',
  VolumeSnapshot: 'snapshot.storage.k8s.io/volumesnapshots',
};

function target(of: KubeObject, component = false): DeletionTarget {
  const [group = '', resource = ''] = RESOURCES[of.kind]!.split('/');
  const { namespace = '', name = '' } = of.metadata;
  return { group, resource, namespace, name, object: of, component };
}

const definition = (group: string, plural: string): KubeObject =>
  object('CustomResourceDefinition', `${plural}.${group}`, {
    spec: { group, names: { plural } },
    metadata: { namespace: '' },
  });
const volume = (uid: string): KubeObject =>
  object('PersistentVolume', 'pv', { spec: { claimRef: { namespace: 'ns', name: 'data', uid } } });

const running = (spec: Parts, status: Parts = {}): VirtualMachineRestore =>
  object<VirtualMachineRestore>('VirtualMachineRestore', 'restore', {
    spec: { target: { kind: 'VirtualMachine', name: 'vm' }, virtualMachineSnapshotName: 'snap', ...spec },
    status: { complete: false, ...status },
  });
const content = object<VirtualMachineSnapshotContent>('VirtualMachineSnapshotContent', 'content', {
  spec: {
    virtualMachineSnapshotName: 'snap',
    source: { virtualMachine: { spec: { instancetype: { revisionName: 'kept-snap' } } } },
    volumeBackups: [{ volumeName: 'disk', volumeSnapshotName: 'vs' }],
  },
});
const inPlace = running(
  { volumeRestorePolicy: 'InPlace' },
  { restores: [{ volumeName: 'disk', persistentVolumeClaim: 'data' }] },
);
const restoring = vm('vm', [claimVolume('data')], {
  status: { restoreInProgress: 'restore', instancetypeRef: { controllerRevisionRef: { name: 'kept-vm' } } },
});
const markedClaim = claim('data', {
  metadata: { annotations: { 'restore.kubevirt.io/lastRestoreUID': 'restore-uid-restore' } },
});

const F = 'spec.template.spec.volumes[0].persistentVolumeClaim.claimName';
const world = (...vms: VirtualMachine[]): World => ({ vms });
const one = world(vm('vm', [claimVolume('data')]));

/** Who blocks, as `namespace/name why`; empty when the object may go. */
const CASES: readonly [what: string, DeletionTarget, World, string[]][] = [
  ['a claim that a protected machine names', target(claim('data')), one, [`ns/vm ${F}`]],
  ['a claim that nobody names', target(claim('other')), one, []],
  ['a Secret of the name of the claim', target(object('Secret', 'data')), one, []],
  ['the same from another namespace', target(claim('data', { metadata: { namespace: 'other' } })), one, []],
  [
    'a claim of a machine that is not protected',
    target(claim('data')),
    world(vm('vm', [claimVolume('data')], { metadata: { labels: {} } })),
    [],
  ],
  [
    'a claim of a machine that is being deleted',
    target(claim('data')),
    world(vm('vm', [claimVolume('data')], { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })),
    [],
  ],
  [
    'a claim that is being deleted',
    target(claim('data', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })),
    one,
    [],
  ],
  [
    'a Secret of two machines, of which one is not protected',
    target(object('Secret', 's')),
    world(
      vm('a', [{ name: 'x', secret: { secretName: 's' } }], { metadata: { labels: {} } }),
      vm('b', [{ name: 'x', secret: { secretName: 's' } }]),
    ),
    ['ns/b spec.template.spec.volumes[0].secret.secretName'],
  ],
  [
    'a revision that only belongs to the machine',
    target(
      object('ControllerRevision', 'old', {
        metadata: { ownerReferences: [{ kind: 'VirtualMachine', name: 'vm', uid: 'uid-vm' }] },
      }),
    ),
    one,
    [],
  ],
  [
    'a DataVolume whose claim a machine names',
    target(object('DataVolume', 'data')),
    {
      ...one,
      claims: [
        claim('data', { metadata: { ownerReferences: [{ kind: 'DataVolume', name: 'data', uid: 'uid-data' }] } }),
      ],
    },
    [`ns/vm claim data, ${F}`],
  ],
  [
    'a DataVolume that its claim does not belong to',
    target(object('DataVolume', 'data')),
    { ...one, claims: [claim('data')] },
    [],
  ],
  [
    'the volume of a claim',
    target(volume('uid-data')),
    { ...one, claims: [claim('data')] },
    [`ns/vm claim ns/data, ${F}`],
  ],
  ['the volume of a claim before this one', target(volume('uid-old')), { ...one, claims: [claim('data')] }, []],
  ['the volume of a claim that is gone', target(volume('uid-data')), one, []],
  [
    'the firmware state of a machine',
    target(state('s', 'vm', '2026-01-02T00:00:00Z')),
    world(vm('vm')),
    ['ns/vm label persistent-state-for of the claim'],
  ],
  [
    'firmware state that has moved to a newer claim',
    target(state('s', 'vm', '2026-01-01T00:00:00Z')),
    { ...world(vm('vm')), claims: [state('t', 'vm', '2026-01-02T00:00:00Z')] },
    [],
  ],
  [
    'the newer of two claims of firmware state',
    target(state('t', 'vm', '2026-01-02T00:00:00Z')),
    { ...world(vm('vm')), claims: [state('s', 'vm', '2026-01-01T00:00:00Z')] },
    ['ns/vm label persistent-state-for of the claim'],
  ],
  [
    'firmware state found by its name',
    target(claim('persistent-state-for-vm')),
    world(vm('vm')),
    ['ns/vm label persistent-state-for of the claim'],
  ],
  [
    'firmware state that a restore has put aside',
    target(
      claim('persistent-state-for-vm', { metadata: { labels: { 'restore.kubevirt.io/cleanup-backend-pvc': 'x' } } }),
    ),
    world(vm('vm')),
    [],
  ],
  [
    'the claim that a migration fills',
    target(claim('m', { metadata: { labels: { 'kubevirt.io/migrationName': 'm' } } })),
    world(vm('vm')),
    [],
  ],
  [
    'a namespace with a protected machine',
    target(object('Namespace', 'ns', { metadata: { namespace: '' } })),
    one,
    ['ns/vm'],
  ],
  ['a namespace without one', target(object('Namespace', 'other', { metadata: { namespace: '' } })), one, []],
  [
    'the namespace of the KubeVirt object',
    target(object('Namespace', 'kubevirt', { metadata: { namespace: '' } })),
    { ...one, kubevirts: ['kubevirt'] },
    ['ns/vm run by KubeVirt kubevirt, which is in it'],
  ],
  [
    'the namespace of the KubeVirt object while nothing is protected',
    target(object('Namespace', 'kubevirt', { metadata: { namespace: '' } })),
    { kubevirts: ['kubevirt'] },
    [],
  ],
  [
    'the KubeVirt object',
    target(object('KubeVirt', 'kubevirt', { metadata: { namespace: 'kubevirt' } })),
    one,
    ['ns/vm'],
  ],
  ['the KubeVirt object while nothing is protected', target(object('KubeVirt', 'kubevirt')), {}, []],
  ['the definition of virtual machines', target(definition('kubevirt.io', 'virtualmachines')), one, ['ns/vm']],
  [
    'the definition of what a machine names',
    target(definition('cdi.kubevirt.io', 'datavolumes')),
    world(vm('vm', [{ name: 'd', dataVolume: { name: 'x' } }])),
    ['ns/vm spec.template.spec.volumes[0].dataVolume.name'],
  ],
  ['the definition of what no machine names', target(definition('cdi.kubevirt.io', 'datavolumes')), one, []],
  ['another definition', target(definition('example.com', 'virtualmachines')), one, []],
  ['the machine itself: that is for the policy', target(vm('vm')), one, []],
  ['a Pod', target(object('Pod', 'data')), one, []],
  [
    'the snapshot of a restore',
    target(object('VirtualMachineSnapshot', 'snap')),
    { ...one, restores: [inPlace] },
    ['ns/vm VirtualMachineRestore restore under way'],
  ],
  [
    'the content of a restore',
    target(content),
    { ...one, restores: [inPlace] },
    ['ns/vm VirtualMachineRestore restore under way'],
  ],
  [
    'a VolumeSnapshot of a restore',
    target(object('VolumeSnapshot', 'vs')),
    { ...one, restores: [running({})], contents: [content] },
    ['ns/vm VirtualMachineRestore restore under way'],
  ],
  [
    'a VolumeSnapshot that the restore lists',
    target(object('VolumeSnapshot', 'vs')),
    {
      ...one,
      restores: [
        running({}, { restores: [{ volumeName: 'disk', persistentVolumeClaim: 'x', volumeSnapshotName: 'vs' }] }),
      ],
    },
    ['ns/vm VirtualMachineRestore restore under way'],
  ],
  [
    'a revision that the snapshot keeps',
    target(object('ControllerRevision', 'kept-snap')),
    { ...one, restores: [inPlace], contents: [content] },
    ['ns/vm VirtualMachineRestore restore under way'],
  ],
  ['another snapshot', target(object('VirtualMachineSnapshot', 'older')), { ...one, restores: [inPlace] }, []],
  [
    'the snapshot of a restore that is complete',
    target(object('VirtualMachineSnapshot', 'snap')),
    { ...one, restores: [running({}, { complete: true })] },
    [],
  ],
  [
    'the snapshot of a restore that has failed',
    target(object('VirtualMachineSnapshot', 'snap')),
    { ...one, restores: [running({}, { conditions: [{ type: 'Failure', status: 'True' }] })] },
    [],
  ],
  [
    'a claim that a restore in place replaces, by KubeVirt',
    target(claim('data'), true),
    { ...world(restoring), restores: [inPlace] },
    [],
  ],
  ['the same, by somebody else', target(claim('data')), { ...world(restoring), restores: [inPlace] }, [`ns/vm ${F}`]],
  [
    'the same, once the restored claim is there',
    target(markedClaim, true),
    { ...world(restoring), restores: [inPlace] },
    [`ns/vm ${F}`],
  ],
  [
    'the same, by a restore that the machine does not know of',
    target(claim('data'), true),
    { ...one, restores: [inPlace] },
    [`ns/vm ${F}`],
  ],
  [
    'the same, by a restore that is complete',
    target(claim('data'), true),
    {
      ...world(restoring),
      restores: [running({ volumeRestorePolicy: 'InPlace' }, { complete: true, restores: inPlace })],
    },
    [`ns/vm ${F}`],
  ],
  [
    'a claim by KubeVirt, not in place',
    target(claim('data'), true),
    { ...world(restoring), restores: [running({})] },
    [`ns/vm ${F}`],
  ],
  [
    'a revision that a restore makes anew, by KubeVirt',
    target(object('ControllerRevision', 'kept-vm'), true),
    { ...world(restoring), restores: [inPlace], contents: [content] },
    [],
  ],
  [
    'the same, by somebody else',
    target(object('ControllerRevision', 'kept-vm')),
    { ...world(restoring), restores: [inPlace], contents: [content] },
    ['ns/vm status.instancetypeRef.controllerRevisionRef.name'],
  ],
  ['a claim by KubeVirt, without a restore', target(claim('data'), true), one, [`ns/vm ${F}`]],
];

for (const [what, asked, known, expected] of CASES) {
  test(`decideDeletion(): ${what}`, () => {
    const blockers = decideDeletion(asked, lookupOf(known))?.blockers ?? [];
    assert.deepEqual(
      blockers.map(({ namespace, name, why }) => `${namespace}/${name} ${why}`.trim()),
      expected,
    );
  });
}

test('every kind that a case refuses is a guarded kind, and kinds of the cluster are not', () => {
  for (const [, asked, known] of CASES)
    if (decideDeletion(asked, lookupOf(known))) assert.ok(isGuardedKind(asked), asked.resource);
  for (const kind of ['Pod', 'VirtualMachine']) assert.equal(isGuardedKind(target(object(kind, 'x'))), false, kind);
});

test('a refusal names ten machines and says how many more there are, in a steady order', () => {
  const names = Array.from({ length: 12 }, (_, index) => `vm-${String(11 - index).padStart(2, '0')}`);
  const asked = target(object('Namespace', 'ns', { metadata: { namespace: '' } }));
  const refused = decideDeletion(asked, lookupOf(world(...names.map((name) => vm(name)))))!;
  const error = deletionForbidden(asked, refused);
  assert.equal(error.code, 403);
  const listed = names
    .toReversed()
    .slice(0, 10)
    .map((name) => `ns/${name}`);
  assert.equal(
    error.message,
    `namespaces "ns" is forbidden: 12 protected VirtualMachines are in it: ${listed.join(', ')}, and 2 more; ` +
      "disable/remove label 'kubevirt.io/vm-delete-protection' from those VirtualMachines before deleting it",
  );
  assert.equal(error.status.details?.causes?.length, 10);
});

test('a refusal says which field of which machine refers to the object', () => {
  const asked = target(claim('data'));
  const refused = decideDeletion(asked, lookupOf(one))!;
  assert.equal(
    refusalText(refused),
    `protected VirtualMachine ns/vm (${F}) refers to it; disable/remove label 'kubevirt.io/vm-delete-protection' ` +
      'from that VirtualMachine before deleting it',
  );
  assert.deepEqual(deletionForbidden(asked, refused).status.details?.causes, [
    { reason: 'ProtectedVirtualMachine', message: `VirtualMachine ns/vm: ${F}` },
  ]);
});
