import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { ControllerRevision } from '../../../../apimachinery/src/types/types.ts';
import type { VirtualMachine, VirtualMachineInstancetype } from '../../kinds/kubevirt.ts';
import { sha256 } from '../identity/sha256.ts';
import { decodeRevision } from './decode-revision.ts';
import {
  buildRevision,
  isLatestVersion,
  isSameCapture,
  nextStatusRef,
  REVISION_LABELS,
  renewRevision,
  revisionName,
  type StatusRef,
} from './revision.ts';
import { labelValue } from './short-name.ts';

const vm = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'here', uid: 'vm-uid' },
  spec: { instancetype: { name: 'small' }, template: {} },
} as unknown as VirtualMachine;

const small: VirtualMachineInstancetype = {
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind: 'VirtualMachineClusterInstancetype',
  metadata: {
    name: 'small',
    uid: 'u-1',
    generation: 3,
    resourceVersion: '7',
    creationTimestamp: '2030-01-01T00:00:00Z',
    labels: { a: 'b' },
    annotations: { c: 'd' },
    finalizers: ['f'],
    ownerReferences: [],
    managedFields: [],
  },
  spec: { cpu: { guest: 2 }, memory: { guest: '1Gi' } },
};

const revisionOf = (data: Record<string, unknown>, labels: Record<string, string> = {}): ControllerRevision => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: { name: 'old', namespace: 'here', uid: 'rev-uid', labels },
  data,
  revision: 0,
});
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

it('buildRevision() keeps the object without what others hang on it', () => {
  assert.deepEqual(buildRevision(vm, small), {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: 'vm-small-v1beta1-u-1-3',
      namespace: 'here',
      labels: {
        'instancetype.kubevirt.io/object-generation': '3',
        'instancetype.kubevirt.io/object-kind': 'VirtualMachineClusterInstancetype',
        'instancetype.kubevirt.io/object-name': 'small',
        'instancetype.kubevirt.io/object-uid': 'u-1',
        'instancetype.kubevirt.io/object-version': 'v1beta1',
      },
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachine',
          name: 'vm',
          uid: 'vm-uid',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data: {
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      kind: 'VirtualMachineClusterInstancetype',
      metadata: {
        name: 'small',
        uid: 'u-1',
        generation: 3,
        resourceVersion: '7',
        creationTimestamp: '2030-01-01T00:00:00Z',
      },
      spec: small.spec,
    },
    revision: 0,
  });
});

describe('names', () => {
  it('sha256() agrees with node:crypto', () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 500]) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 37) & 255);
      assert.equal(sha256(bytes), createHash('sha256').update(bytes).digest('hex'));
    }
  });
  it('are cut where they would be too long, and stay apart', () => {
    const long = 'x'.repeat(70);
    assert.equal(labelValue('x'.repeat(63)), 'x'.repeat(63));
    assert.equal(labelValue(long).length, 63);
    assert.notEqual(labelValue(long), labelValue(`${long}x`));
    const name = revisionName('v'.repeat(63), { ...small, metadata: { ...small.metadata, name: 'n'.repeat(250) } });
    assert.equal(name.length, 253);
    const revision = buildRevision(vm, { ...small, metadata: { ...small.metadata, name: long } });
    assert.equal(revision.metadata.labels?.[REVISION_LABELS.name], labelValue(long));
  });
});

describe('decodeRevision()', () => {
  const spec = { cpu: { guest: 2 }, memory: { guest: '1Gi' } };
  for (const version of ['v1beta1', 'v1alpha2', 'v1alpha1'])
    it(`reads ${version}`, () => {
      const decoded = decodeRevision(
        revisionOf({
          apiVersion: `instancetype.kubevirt.io/${version}`,
          kind: 'VirtualMachineInstancetype',
          metadata: { name: 'a' },
          spec,
        }),
      );
      assert.deepEqual(decoded, {
        apiVersion: 'instancetype.kubevirt.io/v1beta1',
        kind: 'VirtualMachineInstancetype',
        metadata: { name: 'a' },
        spec,
        field: 'instancetype',
        named: true,
      });
    });
  it('reads the oldest form of both', () => {
    const type = revisionOf({ apiVersion: 'instancetype.kubevirt.io/v1alpha1', spec: base64(spec) });
    assert.deepEqual(decodeRevision(type).spec, spec);
    const preference = { cpu: { preferredCPUTopology: 'preferCores' }, devices: { preferredDiskBus: 'virtio' } };
    const old = revisionOf({ apiVersion: 'instancetype.kubevirt.io/v1alpha1', spec: base64(preference) });
    assert.deepEqual(decodeRevision(old).spec, preference);
    assert.equal(decodeRevision(revisionOf({ apiVersion: 'x', spec: base64({}) })).field, 'preference');
  });
  it('drops the empty topology that older versions wrote', () => {
    const decoded = decodeRevision(
      revisionOf({
        apiVersion: 'instancetype.kubevirt.io/v1alpha2',
        kind: 'VirtualMachinePreference',
        metadata: {},
        spec: { cpu: { preferredCPUTopology: '' } },
      }),
    );
    assert.deepEqual(decoded.spec, { cpu: {} });
  });
  const unreadable: [string, Record<string, unknown>][] = [
    ['another kind', { apiVersion: 'v1', kind: 'Pod', spec: {} }],
    ['another version', { apiVersion: 'instancetype.kubevirt.io/v9', kind: 'VirtualMachinePreference', spec: {} }],
    ['no spec', { apiVersion: 'instancetype.kubevirt.io/v1beta1', kind: 'VirtualMachinePreference' }],
    ['text that is no JSON', { apiVersion: 'x', spec: Buffer.from('{').toString('base64') }],
    ['a spec of neither', { apiVersion: 'x', spec: base64({ what: 1 }) }],
    ['nothing', {}],
  ];
  for (const [name, data] of unreadable)
    it(`refuses ${name}`, () => assert.throws(() => decodeRevision(revisionOf(data)), { name: 'RevisionError' }));
});

describe('renewRevision()', () => {
  const data = { ...small, apiVersion: 'instancetype.kubevirt.io/v1alpha2' } as unknown as Record<string, unknown>;
  it('leaves a current one alone', () => {
    assert.equal(renewRevision(vm, 'instancetype', buildRevision(vm, small)), undefined);
    assert.ok(isLatestVersion(buildRevision(vm, small)));
  });
  it('writes an older version anew', () => {
    const old = revisionOf(data, { 'instancetype.kubevirt.io/object-version': 'v1alpha2' });
    const renewed = renewRevision(vm, 'instancetype', old)!;
    assert.equal(renewed.metadata.name, 'vm-small-v1beta1-u-1-3');
    assert.ok(isLatestVersion(renewed) && isSameCapture(old, renewed));
  });
  it('gives the oldest form the name that the matcher has', () => {
    const old = revisionOf({ apiVersion: 'x', spec: base64(small.spec) });
    const renewed = renewRevision(vm, 'instancetype', old)!;
    assert.equal(renewed.metadata.name, 'vm-small-v1beta1-rev-uid-0');
    assert.equal(renewed.metadata.labels?.[REVISION_LABELS.name], 'small');
    assert.deepEqual(decodeRevision(renewed).spec, small.spec);
  });
});

describe('nextStatusRef()', () => {
  const captured: StatusRef = { name: 'a', kind: 'K', controllerRevisionRef: { name: 'r' } };
  const cases: [
    string,
    Parameters<typeof nextStatusRef>[0],
    StatusRef | undefined,
    ReturnType<typeof nextStatusRef>,
  ][] = [
    ['the first', { name: 'a' }, undefined, { name: 'a' }],
    ['the same', { name: 'a', kind: 'K' }, captured, captured],
    ['a cleared kind keeps the copy', { name: 'a' }, captured, captured],
    ['another name', { name: 'b' }, captured, { name: 'b', kind: 'K' }],
    ['another kind', { name: 'a', kind: 'L' }, captured, { name: 'a', kind: 'L' }],
    [
      'revisionName wins',
      { name: 'a', revisionName: 'pinned' },
      captured,
      { name: 'a', kind: 'K', controllerRevisionRef: { name: 'pinned' } },
    ],
    [
      'another volume',
      { name: 'a', inferFromVolume: 'v', inferFromVolumeFailurePolicy: 'Ignore' },
      captured,
      { name: 'a', kind: 'K', inferFromVolume: 'v', inferFromVolumeFailurePolicy: 'Ignore' },
    ],
  ];
  for (const [name, matcher, old, expected] of cases)
    it(name, () => assert.deepEqual(nextStatusRef(matcher, old), expected));
});
