import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseApiVersion } from '../../../meta/gvk.ts';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

type Json = Record<string, unknown>;

/** Errors as `field: message`. */
function errors(resource: string, object: Json, old?: Json): string[] {
  const info = builtinResource({ ...parseApiVersion('storage.k8s.io/v1'), resource }) ?? assert.fail(resource);
  return [...(info.validate?.(object, old) ?? [])].map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}

// S-262
// Compat Types, P2, yes: rules of storage.k8s.io: VolumeAttachment, CSINode, CSIDriver, CSIStorageCapacity,
//   VolumeAttributesClass
test('storage.k8s.io', () => {
  const attachment = (source: Json, attacher = 'a'): Json => ({ spec: { attacher, nodeName: 'n', source } });
  const csiNode = (...drivers: Json[]): Json => ({ spec: { drivers } });
  const driver = { name: 'd.io', nodeID: 'i', topologyKeys: ['a.io/zone'], allocatable: { count: 1 } };
  const attributes = (parameters: Json, driverName = 'd'): Json => ({ driverName, parameters });
  const csiDriver = (spec: Json): Json => ({
    spec: { attachRequired: true, volumeLifecycleModes: ['Persistent'], ...spec },
  });
  const one = 'must specify exactly one of inlineVolumeSpec and persistentVolumeName';
  const cases: [string, Json, Json | undefined, string[]][] = [
    ['volumeattachments', attachment({ persistentVolumeName: 'v' }), undefined, []],
    ['volumeattachments', attachment({}), undefined, [`spec.source: Required value: ${one}`]],
    [
      'volumeattachments',
      attachment({ persistentVolumeName: 'v', inlineVolumeSpec: {} }),
      undefined,
      [`spec.source: Forbidden: ${one}`],
    ],
    ['volumeattachments', attachment({ persistentVolumeName: 'v' }, ''), undefined, ['spec.attacher: Required value']],
    ['csinodes', csiNode({ ...driver, allocatable: { count: 2 } }), csiNode(driver), []],
    ['csinodes', csiNode(driver, driver), undefined, ['spec.drivers[1].name: Duplicate value: "d.io"']],
    [
      'csinodes',
      csiNode({ name: '', nodeID: '' }),
      undefined,
      [
        'spec.drivers[0].name: Required value',
        "spec.drivers[0].name: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.drivers[0].nodeID: Required value',
      ],
    ],
    ['volumeattributesclasses', attributes({ a: 'b' }), undefined, []],
    [
      'volumeattributesclasses',
      attributes({ a: 'c' }),
      attributes({ a: 'b' }),
      ['parameters: Forbidden: updates to parameters are forbidden.'],
    ],
    [
      'volumeattributesclasses',
      attributes({}),
      undefined,
      ['parameters: Required value: must contain at least one key/value pair'],
    ],
    ['csidrivers', csiDriver({ tokenRequests: [{ audience: 'a' }, { audience: 'b' }] }), undefined, []],
    [
      'csidrivers',
      csiDriver({ tokenRequests: [{ audience: 'a', expirationSeconds: 5 }, { audience: 'a' }] }),
      undefined,
      [
        'spec.tokenRequests[0].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes',
        'spec.tokenRequests[1].audience: Duplicate value: "a"',
      ],
    ],
    [
      'csidrivers',
      csiDriver({ attachRequired: false }),
      csiDriver({}),
      ['spec.attachedRequired: Invalid value: false: field is immutable'],
    ],
    ['csistoragecapacities', { storageClassName: 's' }, { storageClassName: 's' }, []],
    [
      'csistoragecapacities',
      { storageClassName: 't' },
      { storageClassName: 's' },
      ['storageClassName: Invalid value: "t": field is immutable'],
    ],
  ];
  for (const [resource, object, old, wanted] of cases)
    assert.deepEqual(errors(resource, object, old), wanted, resource);
  const [moved] = errors('csinodes', csiNode({ ...driver, nodeID: 'j' }), csiNode(driver));
  assert.match(moved!, /^spec\.drivers: Invalid value: .*: field is immutable$/);
});

test('a StorageClass: who makes its volumes, how, and where they may lie', () => {
  const of = (more: Json, old?: Json): string[] => errors('storageclasses', { provisioner: 'p.io/x', ...more }, old);
  const topology = (...matchLabelExpressions: Json[]): Json => ({ matchLabelExpressions });
  const zone = { key: 'zone', values: ['a', 'b'] };
  assert.deepEqual(of({ parameters: { a: 'b' }, allowedTopologies: [topology(zone)] }), []);
  assert.deepEqual(of({ provisioner: '' }), ['provisioner: Required value']);
  assert.match(of({ provisioner: 'a b' })[0] ?? '', /^provisioner: Invalid value: "a b": name part must consist/);
  assert.deepEqual(of({ parameters: { '': 'x' } }), ['parameters: Invalid value: "": field can not be empty.']);
  assert.deepEqual(of({ parameters: { a: 'x'.repeat(256 * 1024) } }), [
    'parameters: Too long: may not be more than 262144 bytes',
  ]);
  const many = Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`k${i}`, 'v']));
  assert.deepEqual(of({ parameters: many }), ['parameters: Too long: may not be more than 512 bytes']);
  assert.deepEqual(
    of({ allowedTopologies: [topology({ key: 'z', values: [] }), topology({ key: 'z', values: ['a', 'a'] })] }),
    [
      'allowedTopologies[0].matchLabelExpressions[0].values: Required value',
      'allowedTopologies[1].matchLabelExpressions[0].values[1]: Duplicate value: "a"',
    ],
  );
  assert.deepEqual(of({ allowedTopologies: [topology(zone, zone)] }), [
    'allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"',
  ]);
  assert.deepEqual(of({ allowedTopologies: [topology(zone), topology({ key: 'zone', values: ['b', 'a'] })] }), [
    'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
  ]);
  assert.deepEqual(of({ parameters: { a: 'c' } }, { provisioner: 'p.io/x', parameters: { a: 'b' } }), [
    'parameters: Forbidden: updates to parameters are forbidden.',
  ]);
});
