/** The cases of upstream's pkg/virt-api/rest/objectgraph_test.go, and the order of a full graph. */
import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import type { PersistentVolumeClaim, Pod } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine, VirtualMachineInstance } from '../../kinds/kubevirt.ts';
import { buildInstanceGraph, buildMachineGraph } from './build-graph.ts';
import type { ObjectGraphNode } from './graph-node.ts';

const NOTHING = { launchers: [], stateClaims: [] };

const machine = (spec: object = {}, template: object = {}, status: object = {}): VirtualMachine =>
  ({
    metadata: { name: 'vm', namespace: 'ns' },
    spec: { ...spec, template: { spec: { domain: {}, ...template } } },
    status,
  }) as unknown as VirtualMachine;

const pod = (name: string, metadata: object): Pod =>
  ({ metadata: { name, namespace: 'ns', ...metadata } }) as unknown as Pod;
const ofInstance = (name: string) => ({ ownerReferences: [{ kind: 'VirtualMachineInstance', name }] });

const claim = (name: string, metadata: object = {}): PersistentVolumeClaim =>
  ({ metadata: { name, namespace: 'ns', ...metadata } }) as unknown as PersistentVolumeClaim;

/** A graph in a line: `Kind/name(children)`, `?` for what is optional, `@namespace` where it is not the machine's. */
const line = ({ objectReference: { kind, name, namespace }, optional, children = [] }: ObjectGraphNode): string =>
  `${kind}/${name}${namespace === 'ns' ? '' : `@${namespace}`}${optional ? '?' : ''}` +
  (children.length === 0 ? '' : `(${children.map(line).join(' ')})`);
const childrenOf = ({ children = [] }: ObjectGraphNode): string[] => children.map(line);

const secret = (secretName: string) => ({ source: { secret: { secretName } } });

// S-791
test('everything that a machine depends on, in upstream’s order', () => {
  const vm = machine(
    {
      instancetype: { kind: 'VirtualMachineClusterInstancetype', name: 'u1' },
      preference: { kind: 'virtualmachinepreference', name: 'linux', revisionName: 'in-spec' },
    },
    {
      domain: { devices: { tpm: { persistent: true } } },
      accessCredentials: [{ sshPublicKey: secret('ssh') }, { userPassword: secret('password') }],
      volumes: [
        { name: 'a', persistentVolumeClaim: { claimName: 'data' } },
        { name: 'b', dataVolume: { name: 'root' } },
        { name: 'c', configMap: { name: 'settings' } },
        { name: 'd', secret: { secretName: 'keys' } },
        { name: 'e', serviceAccount: { serviceAccountName: 'robot' } },
        { name: 'f', cloudInitNoCloud: { secretRef: { name: 'user' }, networkDataSecretRef: { name: 'net' } } },
        { name: 'g', cloudInitConfigDrive: { userData: 'x', networkDataSecretRef: { name: 'drive-net' } } },
        { name: 'h', containerDisk: { image: 'x' } },
        { name: 'i', sysprep: { secret: { name: 'not-listed' } } },
        { name: 'j', memoryDump: { claimName: 'not-listed' } },
      ],
      networks: [
        { name: 'default', pod: {} },
        { name: 'blue', multus: { networkName: 'blue' } },
        { name: 'red', multus: { networkName: 'other/red' } },
      ],
    },
    { created: true, instancetypeRef: { controllerRevisionRef: { name: 'vm-u1-v1beta1-uid-1' } } },
  );
  const facts = { launchers: [pod('virt-launcher-vm-1', ofInstance('vm'))], stateClaims: [claim('state')] };
  assert.deepEqual(childrenOf(buildMachineGraph(vm, facts)), [
    'VirtualMachineInstance/vm(Pod/virt-launcher-vm-1)',
    'VirtualMachineClusterInstancetype/u1@?',
    'ControllerRevision/vm-u1-v1beta1-uid-1',
    'VirtualMachinePreference/linux?',
    'ControllerRevision/in-spec',
    'Secret/ssh',
    'Secret/password',
    'PersistentVolumeClaim/data',
    'DataVolume/root(PersistentVolumeClaim/root)',
    'ConfigMap/settings',
    'Secret/keys',
    'ServiceAccount/robot',
    'Secret/user',
    'Secret/net',
    'Secret/drive-net',
    'PersistentVolumeClaim/state',
    'NetworkAttachmentDefinition/blue?',
    'NetworkAttachmentDefinition/red@other?',
  ]);
});

test('a node says what it is, as the API writes it', () => {
  const graph = buildMachineGraph(machine({}, { volumes: [{ name: 'root', dataVolume: { name: 'root' } }] }), NOTHING);
  const reference = { apiGroup: '', kind: 'PersistentVolumeClaim', name: 'root', namespace: 'ns' };
  const labels = { 'kubevirt.io/dependency-type': 'storage' };
  assert.equal(
    JSON.stringify(graph),
    JSON.stringify({
      objectReference: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm', namespace: 'ns' },
      labels: { 'kubevirt.io/dependency-type': 'compute' },
      children: [
        {
          objectReference: { ...reference, apiGroup: 'cdi.kubevirt.io', kind: 'DataVolume' },
          labels,
          children: [{ objectReference: reference, labels }],
        },
      ],
    }),
  );
});

test('the type of each kind', () => {
  const all = machine(
    { instancetype: { kind: 'VirtualMachineInstancetype', name: 'i', revisionName: 'r' } },
    {
      volumes: [
        { name: 'a', dataVolume: { name: 'a' } },
        { name: 'b', configMap: { name: 'b' } },
        { name: 'c', serviceAccount: { serviceAccountName: 'c' } },
        { name: 'd', secret: { secretName: 'd' } },
      ],
      networks: [{ name: 'e', multus: { networkName: 'e' } }],
    },
    { created: true },
  );
  const types = (buildMachineGraph(all, { ...NOTHING, launchers: [pod('p', ofInstance('vm'))] }).children ?? [])
    .flatMap((node) => [node, ...(node.children ?? [])])
    .map(({ objectReference: { kind }, labels }) => [kind, labels['kubevirt.io/dependency-type']]);
  assert.deepEqual(Object.fromEntries(types), {
    VirtualMachineInstance: 'compute',
    Pod: 'compute',
    VirtualMachineInstancetype: 'config',
    ControllerRevision: 'config',
    DataVolume: 'storage',
    PersistentVolumeClaim: 'storage',
    ConfigMap: 'config',
    ServiceAccount: 'config',
    Secret: 'config',
    NetworkAttachmentDefinition: 'network',
  });
});

describe('the launcher Pod', () => {
  const rows: [what: string, launchers: Pod[], expected: string][] = [
    ['by its owner', [pod('other', ofInstance('b')), pod('mine', ofInstance('vm'))], '(Pod/mine)'],
    ['by its annotation', [pod('mine', { annotations: { 'kubevirt.io/domain': 'vm' } })], '(Pod/mine)'],
    ['the first of two', [pod('a', ofInstance('vm')), pod('b', ofInstance('vm'))], '(Pod/a)'],
    ['none', [], ''],
  ];
  for (const [what, launchers, expected] of rows)
    it(what, () => {
      const graph = buildMachineGraph(machine({}, {}, { created: true }), { launchers, stateClaims: [] });
      assert.deepEqual(childrenOf(graph), [`VirtualMachineInstance/vm${expected}`]);
    });
  it('of a machine that is not created: no instance either', () => {
    const launchers = [pod('mine', ofInstance('vm'))];
    assert.deepEqual(childrenOf(buildMachineGraph(machine(), { launchers, stateClaims: [] })), []);
  });
});

describe('instance type and preference', () => {
  const rows: [what: string, matcher: object, status: object, expected: string[]][] = [
    [
      'the revision of the status before that of the spec',
      { kind: 'VirtualMachineInstancetype', name: 'i', revisionName: 'spec' },
      { instancetypeRef: { controllerRevisionRef: { name: 'status' } } },
      ['VirtualMachineInstancetype/i?', 'ControllerRevision/status'],
    ],
    [
      'a status that names none is believed',
      { kind: 'VirtualMachineInstancetype', name: 'i', revisionName: 'spec' },
      { instancetypeRef: { name: 'i' } },
      ['VirtualMachineInstancetype/i?'],
    ],
    ['no kind: no node, but the revision', { name: 'i', revisionName: 'spec' }, {}, ['ControllerRevision/spec']],
    [
      'kinds whatever their case',
      { kind: 'VIRTUALMACHINECLUSTERINSTANCETYPE', name: 'i' },
      {},
      ['VirtualMachineClusterInstancetype/i@?'],
    ],
  ];
  for (const [what, instancetype, status, expected] of rows)
    it(what, () =>
      assert.deepEqual(childrenOf(buildMachineGraph(machine({ instancetype }, {}, status), NOTHING)), expected),
    );
});

describe('the claim with the firmware state', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z';
  const made = (creationTimestamp: string, more: object = {}) => ({ creationTimestamp, ...more });
  const rows: [what: string, claims: PersistentVolumeClaim[], expected: string[]][] = [
    ['the only one, though it is going', [claim('a', { deletionTimestamp })], ['PersistentVolumeClaim/a']],
    [
      'the newest that stays',
      [
        claim('a', made('2026-01-01T00:00:00Z')),
        claim('b', made('2026-01-03T00:00:00Z')),
        claim('c', made('2026-01-04T00:00:00Z', { deletionTimestamp })),
      ],
      ['PersistentVolumeClaim/b'],
    ],
    ['none yet: the rest is drawn', [], []],
  ];
  const template = {
    domain: { devices: { tpm: { persistent: true } } },
    volumes: [{ name: 'a', configMap: { name: 'rest' } }],
  };
  for (const [what, stateClaims, expected] of rows)
    it(what, () =>
      assert.deepEqual(childrenOf(buildMachineGraph(machine({}, template), { launchers: [], stateClaims })), [
        'ConfigMap/rest',
        ...expected,
      ]),
    );
});

test('an instance: Pod, credentials, volumes, state, networks', () => {
  const vmi = {
    metadata: { name: 'vmi', namespace: 'ns' },
    spec: {
      domain: { firmware: { bootloader: { efi: { persistent: true } } } },
      accessCredentials: [{ sshPublicKey: secret('ssh') }],
      volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
      networks: [{ name: 'blue', multus: { networkName: 'blue' } }],
    },
    status: {
      volumeStatus: [{ name: 'persistent-state-for-this-vm', persistentVolumeClaimInfo: { claimName: 'state' } }],
    },
  } as unknown as VirtualMachineInstance;
  const graph = buildInstanceGraph(vmi, [pod('launcher', ofInstance('vmi'))]);
  assert.equal(graph.objectReference.kind, 'VirtualMachineInstance');
  assert.deepEqual(childrenOf(graph), [
    'Pod/launcher',
    'Secret/ssh',
    'PersistentVolumeClaim/root',
    'PersistentVolumeClaim/state',
    'NetworkAttachmentDefinition/blue?',
  ]);
});
