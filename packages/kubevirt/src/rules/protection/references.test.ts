import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partly } from '../../../../../test/testkit/partly.ts';
import type { VirtualMachine } from '../../kinds/kubevirt.ts';
import { referencesOf } from './references.ts';

const vm = (parts: object): VirtualMachine =>
  partly({ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', metadata: { name: 'vm', namespace: 'ns' }, ...parts });
const instance = (spec: Record<string, unknown>): VirtualMachine => vm({ spec: { template: { spec } } });
const volume = (source: Record<string, unknown>): VirtualMachine =>
  instance({ volumes: [{ name: 'disk', ...source }] });

const V = 'spec.template.spec.volumes[0].';

/** Objects as `resource/name`, with the field that names them. */
const CASES: readonly [what: string, VirtualMachine, Record<string, string>][] = [
  [
    'claim',
    volume({ persistentVolumeClaim: { claimName: 'a' } }),
    { 'persistentvolumeclaims/a': `${V}persistentVolumeClaim.claimName` },
  ],
  [
    'DataVolume and its claim',
    volume({ dataVolume: { name: 'a' } }),
    { 'datavolumes/a': `${V}dataVolume.name`, 'persistentvolumeclaims/a': `${V}dataVolume.name` },
  ],
  [
    'claim below a layer',
    volume({ ephemeral: { persistentVolumeClaim: { claimName: 'a' } } }),
    { 'persistentvolumeclaims/a': `${V}ephemeral.persistentVolumeClaim.claimName` },
  ],
  [
    'memory dump',
    volume({ memoryDump: { claimName: 'a' } }),
    { 'persistentvolumeclaims/a': `${V}memoryDump.claimName` },
  ],
  ['ConfigMap', volume({ configMap: { name: 'a' } }), { 'configmaps/a': `${V}configMap.name` }],
  ['Secret', volume({ secret: { secretName: 'a' } }), { 'secrets/a': `${V}secret.secretName` }],
  ['Secret of sysprep', volume({ sysprep: { secret: { name: 'a' } } }), { 'secrets/a': `${V}sysprep.secret.name` }],
  [
    'ConfigMap of sysprep',
    volume({ sysprep: { configMap: { name: 'a' } } }),
    { 'configmaps/a': `${V}sysprep.configMap.name` },
  ],
  [
    'service account',
    volume({ serviceAccount: { serviceAccountName: 'a' } }),
    { 'serviceaccounts/a': `${V}serviceAccount.serviceAccountName` },
  ],
  [
    'pull secret',
    volume({ containerDisk: { image: 'i', imagePullSecret: 'a' } }),
    { 'secrets/a': `${V}containerDisk.imagePullSecret` },
  ],
  [
    'cloud-init, NoCloud',
    volume({ cloudInitNoCloud: { secretRef: { name: 'a' }, networkDataSecretRef: { name: 'b' } } }),
    {
      'secrets/a': `${V}cloudInitNoCloud.secretRef.name`,
      'secrets/b': `${V}cloudInitNoCloud.networkDataSecretRef.name`,
    },
  ],
  [
    'cloud-init, config drive',
    volume({ cloudInitConfigDrive: { secretRef: { name: 'a' }, networkDataSecretRef: { name: 'b' } } }),
    {
      'secrets/a': `${V}cloudInitConfigDrive.secretRef.name`,
      'secrets/b': `${V}cloudInitConfigDrive.networkDataSecretRef.name`,
    },
  ],
  ['volume of no object', volume({ emptyDisk: { capacity: '1Gi' } }), {}],
  [
    'utility volume',
    instance({ utilityVolumes: [{ name: 'u', claimName: 'a' }] }),
    { 'persistentvolumeclaims/a': 'spec.template.spec.utilityVolumes[0].claimName' },
  ],
  [
    'credentials',
    instance({
      accessCredentials: [
        { sshPublicKey: { source: { secret: { secretName: 'a' } } } },
        { userPassword: { source: { secret: { secretName: 'b' } } } },
      ],
    }),
    {
      'secrets/a': 'spec.template.spec.accessCredentials[0].sshPublicKey.source.secret.secretName',
      'secrets/b': 'spec.template.spec.accessCredentials[1].userPassword.source.secret.secretName',
    },
  ],
  [
    'networks of its own namespace',
    instance({
      networks: [
        { name: 'p', pod: {} },
        { name: 'm', multus: { networkName: 'a' } },
        { name: 'n', multus: { networkName: 'ns/b' } },
        { name: 'o', multus: { networkName: 'other/c' } },
      ],
    }),
    {
      'network-attachment-definitions/a': 'spec.template.spec.networks[1].multus.networkName',
      'network-attachment-definitions/b': 'spec.template.spec.networks[2].multus.networkName',
    },
  ],
  [
    'resource claims',
    instance({
      resourceClaims: [
        { name: 'x', resourceClaimName: 'a' },
        { name: 'y', resourceClaimTemplateName: 'b' },
      ],
    }),
    {
      'resourceclaims/a': 'spec.template.spec.resourceClaims[0].resourceClaimName',
      'resourceclaimtemplates/b': 'spec.template.spec.resourceClaims[1].resourceClaimTemplateName',
    },
  ],
  [
    'account and kernel of the launcher',
    instance({
      serviceAccountName: 'a',
      domain: { firmware: { kernelBoot: { container: { image: 'i', imagePullSecret: 'b' } } } },
    }),
    {
      'serviceaccounts/a': 'spec.template.spec.serviceAccountName',
      'secrets/b': 'spec.template.spec.domain.firmware.kernelBoot.container.imagePullSecret',
    },
  ],
  [
    'template of a DataVolume, not what fills it',
    vm({
      spec: {
        dataVolumeTemplates: [
          { metadata: { name: 'a' }, spec: { source: { pvc: { namespace: 'ns', name: 'golden' } } } },
        ],
      },
    }),
    {
      'datavolumes/a': 'spec.dataVolumeTemplates[0].metadata.name',
      'persistentvolumeclaims/a': 'spec.dataVolumeTemplates[0].metadata.name',
    },
  ],
  [
    'revisions of the spec',
    vm({ spec: { instancetype: { revisionName: 'a' }, preference: { revisionName: 'b' } } }),
    {
      'controllerrevisions/a': 'spec.instancetype.revisionName',
      'controllerrevisions/b': 'spec.preference.revisionName',
    },
  ],
  [
    'revisions of the status',
    vm({
      status: {
        instancetypeRef: { controllerRevisionRef: { name: 'a' } },
        preferenceRef: { controllerRevisionRef: { name: 'b' } },
      },
    }),
    {
      'controllerrevisions/a': 'status.instancetypeRef.controllerRevisionRef.name',
      'controllerrevisions/b': 'status.preferenceRef.controllerRevisionRef.name',
    },
  ],
  [
    'instance type of the namespace, until a copy is kept',
    vm({
      spec: {
        instancetype: { kind: 'VirtualMachineInstancetype', name: 'a' },
        preference: { kind: 'virtualmachinepreferences', name: 'b' },
      },
    }),
    {
      'virtualmachineinstancetypes/a': 'spec.instancetype.name',
      'virtualmachinepreferences/b': 'spec.preference.name',
    },
  ],
  [
    'instance type with a copy',
    vm({
      spec: { instancetype: { kind: 'VirtualMachineInstancetype', name: 'a' } },
      status: { instancetypeRef: { controllerRevisionRef: { name: 'copy' } } },
    }),
    { 'controllerrevisions/copy': 'status.instancetypeRef.controllerRevisionRef.name' },
  ],
  ['instance type of the cluster', vm({ spec: { instancetype: { name: 'a' } } }), {}],
  [
    'what is asked for',
    vm({
      status: {
        memoryDumpRequest: { claimName: 'a', phase: 'Associating' },
        volumeRequests: [
          { addVolumeOptions: { name: 'x', volumeSource: { persistentVolumeClaim: { claimName: 'b' } } } },
          { addVolumeOptions: { name: 'y', volumeSource: { dataVolume: { name: 'c' } } } },
          { removeVolumeOptions: { name: 'z' } },
        ],
      },
    }),
    {
      'persistentvolumeclaims/a': 'status.memoryDumpRequest.claimName',
      'persistentvolumeclaims/b':
        'status.volumeRequests[0].addVolumeOptions.volumeSource.persistentVolumeClaim.claimName',
      'datavolumes/c': 'status.volumeRequests[1].addVolumeOptions.volumeSource.dataVolume.name',
      'persistentvolumeclaims/c': 'status.volumeRequests[1].addVolumeOptions.volumeSource.dataVolume.name',
    },
  ],
];

for (const [what, machine, expected] of CASES) {
  test(`referencesOf(): ${what}`, () => {
    const found = referencesOf(machine).map(({ resource, namespace, name, field }) => {
      assert.equal(namespace, 'ns');
      return [`${resource}/${name}`, field];
    });
    assert.deepEqual(Object.fromEntries(found), expected);
  });
}

test('referencesOf() takes a machine of which anything is missing, or is something else than it should be', () => {
  const broken: readonly object[] = [
    {},
    { spec: null },
    { spec: { template: null, dataVolumeTemplates: 'x' } },
    {
      spec: {
        template: { spec: { volumes: [null, 1, {}, { persistentVolumeClaim: null }, { secret: { secretName: 7 } }] } },
      },
    },
    { spec: { instancetype: { kind: 'Nonsense', name: 'a' }, preference: { kind: 3 } } },
    { spec: { dataVolumeTemplates: [{ metadata: null }, { metadata: { name: '' } }] } },
    { status: { instancetypeRef: null, volumeRequests: [{}] } },
  ];
  for (const parts of broken) assert.deepEqual(referencesOf(vm(parts)), []);
});
