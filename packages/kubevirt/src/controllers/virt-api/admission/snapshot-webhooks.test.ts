import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { partly } from '../../../../../../test/testkit/partly.ts';
import type { KubeObject, UnstructuredObject } from '../../../../../apimachinery/src/meta/object.ts';
import { ApiError, notFound } from '../../../../../apimachinery/src/meta/status.ts';
import type { Client } from '../../../../../client/src/client.ts';
import { clusterConfigOf } from '../../../rules/machine-defaults/cluster-config.ts';
import { virtAdmission } from './virt-admission.ts';

type Fields = Record<string, unknown>;
const API = { apiVersion: 'snapshot.kubevirt.io/v1beta1' };
const SOURCE = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'a' };

function clientOf(objects: readonly KubeObject[]): Client {
  const of = (kind: string) => objects.filter((object) => object.kind === kind);
  return {
    get: (type: { kind: string; group: string; resource: string }, { name }: { name: string }) => {
      const found = of(type.kind).find(({ metadata }) => metadata.name === name);
      return found ? Promise.resolve(found) : Promise.reject(notFound(type, name));
    },
    list: (type: { kind: string }) => Promise.resolve({ items: of(type.kind) }),
  } as unknown as Client;
}

/** What a client gets: `422 field: message` for each cause, `400 message`, or `accepted`. */
async function answer(
  kind: string,
  spec: Fields,
  { old, objects = [], gates = [] }: { old?: Fields; objects?: readonly KubeObject[]; gates?: readonly string[] } = {},
): Promise<string> {
  const object = (of: Fields): UnstructuredObject => ({
    ...API,
    kind,
    metadata: { name: 'x', namespace: 'n' },
    spec: of,
  });
  const admission = virtAdmission({
    client: clientOf(objects),
    config: () =>
      clusterConfigOf(
        partly({ spec: { configuration: { developerConfiguration: { disabledFeatureGates: [...gates] } } } }),
      ),
    randomUuid: () => 'u',
    now: () => 0,
    presets: () => [],
  });
  try {
    await admission.validate({
      group: 'snapshot.kubevirt.io',
      resource: `${kind.toLowerCase()}s`,
      subresource: '',
      operation: old ? 'UPDATE' : 'CREATE',
      namespace: 'n',
      object: object(spec),
      old: old && object(old),
      user: { username: 'alice', groups: [] },
    });
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof ApiError);
    const causes = error.status.details?.causes ?? [];
    return causes.length > 0
      ? `${error.code} ${causes.map(({ reason, field, message }) => `${reason} ${field}: ${message}`).join('; ')}`
      : `${error.code} ${error.message.replace(/^.*denied the request: /, '')}`;
  }
}

describe('virtualmachinesnapshot-validator', () => {
  const cases: [name: string, spec: Fields, more: Parameters<typeof answer>[2], expected: string][] = [
    ['a machine', { source: SOURCE }, {}, 'accepted'],
    [
      'no group',
      { source: { kind: 'VirtualMachine', name: 'a' } },
      {},
      '422 FieldValueNotFound spec.source.apiGroup: missing apiGroup',
    ],
    [
      'another group',
      { source: { ...SOURCE, apiGroup: 'apps' } },
      {},
      '422 FieldValueInvalid spec.source.apiGroup: invalid apiGroup',
    ],
    [
      'another kind',
      { source: { ...SOURCE, kind: 'Pod' } },
      {},
      '422 FieldValueInvalid spec.source.kind: invalid kind',
    ],
    ['the gate off', { source: SOURCE }, { gates: ['Snapshot'] }, '400 snapshot feature gate not enabled'],
    ['a deadline that is none', { source: SOURCE, failureDeadline: 'soon' }, {}, '400 time: invalid duration "soon"'],
    ['no change', { source: SOURCE }, { old: { source: SOURCE } }, 'accepted'],
    [
      'a change',
      { source: SOURCE, deletionPolicy: 'Retain' },
      { old: { source: SOURCE } },
      '422 FieldValueInvalid spec: spec in immutable after creation',
    ],
  ];
  for (const [name, spec, more, expected] of cases)
    it(name, async () => assert.equal(await answer('VirtualMachineSnapshot', spec, more), expected));
});

describe('virtualmachinesnapshotcontent-validator', () => {
  // S-562: Snapshots and restores are refused in upstream's words; what a snapshot holds cannot be changed.
  it('refuses every change of what a snapshot holds', async () => {
    const content = { source: { virtualMachine: { spec: {} } } };
    const changed = { source: { virtualMachine: { spec: { running: true } } } };
    assert.equal(await answer('VirtualMachineSnapshotContent', content, { old: content }), 'accepted');
    assert.equal(
      await answer('VirtualMachineSnapshotContent', changed, { old: content }),
      '422 FieldValueInvalid spec: spec in immutable after creation',
    );
  });
});

describe('virtualmachinerestore-validator', () => {
  const restore = (more: Fields = {}): Fields => ({ target: SOURCE, virtualMachineSnapshotName: 's', ...more });
  const other = (status: Fields): UnstructuredObject => ({
    ...API,
    kind: 'VirtualMachineRestore',
    metadata: { name: 'r' },
    spec: restore(),
    status,
  });
  const snapshot = (status: Fields): UnstructuredObject => ({
    ...API,
    kind: 'VirtualMachineSnapshot',
    metadata: { name: 's' },
    spec: { source: SOURCE },
    status,
  });
  const vm = (uid: string): UnstructuredObject => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'a', uid },
    spec: {},
  });
  const content = (devices: Fields): UnstructuredObject => ({
    ...API,
    kind: 'VirtualMachineSnapshotContent',
    metadata: { name: 'c' },
    spec: { source: { virtualMachine: { spec: { template: { spec: { domain: { devices } } } } } } },
  });
  const taken = snapshot({ sourceUID: 'u1', virtualMachineSnapshotContentName: 'c' });
  const tpm = content({ tpm: { persistent: true } });
  const elsewhere =
    '422 FieldValueInvalid spec: Restore to a different VM is not supported when snapshotted VM has backend storage (persistent TPM or EFI)';
  const cases: [name: string, spec: Fields, more: Parameters<typeof answer>[2], expected: string][] = [
    ['a snapshot that is not there yet', restore(), {}, 'accepted'],
    [
      'no group',
      restore({ target: { kind: 'VirtualMachine', name: 'a' } }),
      {},
      '422 FieldValueNotFound spec.target.apiGroup: missing apiGroup',
    ],
    ['the gate off', restore(), { gates: ['Snapshot'] }, '400 Snapshot/Restore feature gate not enabled'],
    [
      'another restore of the target',
      restore(),
      { objects: [other({ complete: false })] },
      '422 FieldValueInvalid spec.target: VirtualMachineRestore "r" in progress',
    ],
    ['another restore that is complete', restore(), { objects: [other({ complete: true })] }, 'accepted'],
    [
      'an unknown volume restore policy',
      restore({ volumeRestorePolicy: 'Guess' }),
      {},
      '422 FieldValueInvalid spec.volumeRestorePolicy: volume restore policy "Guess" doesn\'t exist',
    ],
    ['PrefixTargetName', restore({ volumeRestorePolicy: 'PrefixTargetName' }), {}, 'accepted'],
    [
      'an unknown ownership policy',
      restore({ volumeOwnershipPolicy: 'Me' }),
      {},
      '422 FieldValueInvalid spec.volumeOwnershipPolicy: volume ownership policy "Me" doesn\'t exist',
    ],
    [
      'overrides that say nothing',
      restore({ volumeRestoreOverrides: [{}] }),
      {},
      '422 FieldValueRequired spec.volumeRestoreOverrides[0].volumeName: must provide a volume name; FieldValueRequired spec.volumeRestoreOverrides[0]: must provide at least one overriden field',
    ],
    [
      'patches of spec, labels and annotations, whatever their values hold',
      restore({
        patches: [
          '{"op": "replace", "path": "/spec/template/spec/domain/devices/interfaces/0/macAddress", "value": "02:00:00:00:00:01"}',
          '{"op": "add", "path": "/metadata/labels/a", "value": "b,c"}',
          '{"op": "remove", "path": "/metadata/annotations/x"}',
        ],
      }),
      {},
      'accepted',
    ],
    [
      'a patch of the name',
      restore({ patches: ['{"op": "replace", "path": "/metadata/name", "value": "x"}'] }),
      {},
      '422 FieldValueInvalid spec.patches: patching is valid only for elements under /spec/ only: "path": "/metadata/name"',
    ],
    [
      'no patch',
      restore({ patches: ['nonsense'] }),
      {},
      '422 FieldValueInvalid spec.patches: patch format is not valid - one JSON patch operation expected: nonsense',
    ],
    ['firmware state to the same machine', restore(), { objects: [taken, tpm, vm('u1')] }, 'accepted'],
    ['firmware state to a new machine', restore(), { objects: [taken, tpm] }, elsewhere],
    ['firmware state to another machine', restore(), { objects: [taken, tpm, vm('u2')] }, elsewhere],
    ['no firmware state to a new machine', restore(), { objects: [taken, content({})] }, 'accepted'],
    [
      'a new machine from a snapshot without content',
      restore(),
      { objects: [snapshot({})] },
      '400 snapshot content name is nil in vmSnapshot status',
    ],
    [
      'a change',
      restore({ volumeOwnershipPolicy: 'None' }),
      { old: restore() },
      '422 FieldValueInvalid spec: spec in immutable after creation',
    ],
  ];
  for (const [name, spec, more, expected] of cases)
    it(name, async () => assert.equal(await answer('VirtualMachineRestore', spec, more), expected));
});
