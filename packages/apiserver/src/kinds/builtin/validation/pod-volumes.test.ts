import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

const validateOne = (resource: string, object: object, old?: object): string[] =>
  validationErrors('v1', resource, object, old);
const pod = (volumes: object[]): object => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i' }], volumes },
});
const at = 'spec.volumes[0]';
const SECOND = 'Forbidden: may not specify more than 1 volume type';

for (const [source, wanted] of [
  [{}, [`${at}: Required value: must specify a volume type`]],
  [{ emptyDir: {} }, []],
  [{ emptyDir: {}, hostPath: { path: '/x' } }, [`${at}.hostPath: ${SECOND}`]],
  [{ downwardAPI: {}, cephfs: { monitors: ['m'] } }, [`${at}.downwarAPI: ${SECOND}`]],
  [
    { emptyDir: { sizeLimit: '-1' } },
    [`${at}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity`],
  ],
  [{ hostPath: { path: '' } }, [`${at}.hostPath.path: Required value`]],
  [{ hostPath: { path: '/a/../b' } }, [`${at}.hostPath.path: Invalid value: "/a/../b": must not contain '..'`]],
  [
    { hostPath: { path: '/a', type: 'X' } },
    [
      `${at}.hostPath.type: Unsupported value: "X": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`,
    ],
  ],
  [{ secret: {} }, [`${at}.secret.secretName: Required value`]],
  // The files that a kubelet makes of a source are not looked at: there is none.
  [{ secret: { secretName: 's', defaultMode: 512, items: [{ key: 'k', path: '../x' }] } }, []],
  [{ configMap: {} }, [`${at}.configMap.name: Required value`]],
  [{ persistentVolumeClaim: { claimName: '' } }, [`${at}.persistentVolumeClaim.claimName: Required value`]],
  [
    { nfs: { server: '', path: 'x' } },
    [`${at}.nfs.server: Required value`, `${at}.nfs.path: Invalid value: "x": must be an absolute path`],
  ],
  [
    { iscsi: { targetPortal: 'p', iqn: 'x', lun: 256 } },
    [
      `${at}.iscsi.iqn: Invalid value: "x": must be valid format starting with iqn, eui, or naa`,
      `${at}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`,
    ],
  ],
  [{ gcePersistentDisk: { pdName: '' } }, [`${at}.persistentDisk.pdName: Required value`]],
  [
    { csi: { driver: '' } },
    [
      `${at}.csi.driver: Required value`,
      `${at}.csi.driver: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ],
  ],
  [{ projected: {} }, []],
  [{ ephemeral: {} }, [`${at}.ephemeral.volumeClaimTemplate: Required value`]],
] as const) {
  test(`a volume of ${JSON.stringify(source).slice(0, 60)}`, () => {
    const object = pod([{ name: 'v', ...source }]);
    assert.deepEqual(validateOne('pods', object), wanted);
    // What was let in before does not keep a Pod from having a status.
    const status = { ...object, status: { phase: 'Running' } };
    assert.deepEqual(validateOne('pods', status, object), []);
  });
}

const volume = (spec: object): object => ({
  metadata: { name: 'v' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
});

// S-348: Volumes and claims are validated before they are stored.
// Compat Types, P1, yes: rules of volumes and of what their sources lead to; of PersistentVolumes and claims
test('a PersistentVolume: its capacity, its driver, where it lies', () => {
  const csi = { driver: 'd', volumeHandle: 'h' };
  assert.deepEqual(validateOne('persistentvolumes', volume({ csi })), []);
  assert.deepEqual(validateOne('persistentvolumes', volume({ csi: { driver: 'd' } })), [
    'spec.csi.volumeHandle: Required value',
  ]);
  assert.deepEqual(validateOne('persistentvolumes', volume({ csi, capacity: { storage: '0' } })), [
    'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
  ]);
  assert.deepEqual(
    validateOne('persistentvolumes', volume({ csi, accessModes: ['ReadWriteOncePod', 'ReadWriteMany', 'X'] })),
    [
      'spec.accessModes: Unsupported value: "X": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      'spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes',
    ],
  );
  assert.deepEqual(
    validateOne('persistentvolumes', volume({ hostPath: { path: '/.' }, persistentVolumeReclaimPolicy: 'Recycle' })),
    ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
  );
  const grown = { ...csi, controllerExpandSecretRef: { name: 's', namespace: 'n' } };
  assert.deepEqual(validateOne('persistentvolumes', volume({ csi: grown }), volume({ csi })), []);
  const nodes = (key: string): object => ({
    csi,
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator: 'Exists' }] }] } },
  });
  assert.deepEqual(validateOne('persistentvolumes', volume(nodes('a')), volume({ csi })), []);
  const [beta, now] = ['failure-domain.beta.kubernetes.io/zone', 'topology.kubernetes.io/zone'];
  assert.deepEqual(validateOne('persistentvolumes', volume(nodes(now)), volume(nodes(beta))), []);
  const [changed] = validateOne('persistentvolumes', volume(nodes('b')), volume(nodes('a')));
  assert.match(changed ?? '', /^nodeAffinity: Invalid value: .*field is immutable, except for updating/);
});

// S-348
test('a claim: what it asks for, and what of it may change', () => {
  const claim = (spec: object, phase = 'Pending', storage = '1Gi'): object => ({
    metadata: { name: 'c' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
    status: { phase, capacity: { storage: '1Gi' } },
  });
  const of = (object: object, old?: object): string[] => validateOne('persistentvolumeclaims', object, old);
  const fixed =
    'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
  assert.deepEqual(of(claim({})), []);
  assert.deepEqual(of(claim({}, 'Pending', '0')), [
    'spec.resources[storage]: Invalid value: "0": must be greater than zero',
  ]);
  assert.deepEqual(of(claim({ dataSource: { kind: 'X', name: 'n' } })), [
    `spec.dataSource: Invalid value: "X": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
  ]);
  assert.deepEqual(of(claim({}, 'Pending', '2Gi'), claim({})), [fixed]);
  assert.deepEqual(of(claim({}, 'Bound', '2Gi'), claim({}, 'Bound')), []);
  assert.deepEqual(of(claim({}, 'Bound', '1Gi'), claim({}, 'Bound', '3Gi')), [
    'spec.resources.requests.storage: Forbidden: field can not be less than status.capacity',
  ]);
  assert.deepEqual(of(claim({}, 'Bound', '2Gi'), claim({}, 'Bound', '3Gi')), []);
  assert.deepEqual(of(claim({ storageClassName: 'a' }), claim({})), []);
  assert.deepEqual(of(claim({ storageClassName: 'a' }), claim({ storageClassName: '' })), [fixed]);
});
