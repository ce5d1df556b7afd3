import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validationErrors } from '../strategies/strategy.fixture.ts';

const validateOne = (resource: string, object: object, old?: object): string[] =>
  validationErrors('v1', resource, object, old);
const pod = (volumes: object[], container: object = {}): object => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', image: 'i', ...container }], volumes },
});
const at = 'spec.volumes[0]';
const SECOND = 'Forbidden: may not specify more than 1 volume type';
const OUTSIDE = 'must be a number between 0 and 0777 (octal), both inclusive';

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
  [
    { secret: { secretName: 's', defaultMode: 512, items: [{ key: 'k', path: '../x' }] } },
    [
      `${at}.secret.defaultMode: Invalid value: 512: ${OUTSIDE}`,
      `${at}.secret.items[0].path: Invalid value: "../x": must not contain '..'`,
    ],
  ],
  [
    { configMap: { name: 'm', items: [{ key: '', path: '..x', mode: -1 }] } },
    [
      `${at}.configMap.items[0].key: Required value`,
      `${at}.configMap.items[0].path: Invalid value: "..x": must not start with '..'`,
      `${at}.configMap.items[0].mode: Invalid value: -1: ${OUTSIDE}`,
    ],
  ],
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
  [
    { projected: { sources: [{ secret: { name: 's' }, configMap: { name: 'm' } }, { serviceAccountToken: {} }] } },
    [
      `${at}.projected.sources[0]: Forbidden: may not specify more than 1 volume type per source`,
      `${at}.projected.sources[1].serviceAccountToken.expirationSeconds: Invalid value: 0: may not specify a duration less than 10 minutes`,
      `${at}.projected.path: Required value`,
    ],
  ],
  [
    {
      projected: {
        sources: ['a', 'b'].map((name) => ({ secret: { name, items: [{ key: 'k', path: 'p' }] } })),
      },
    },
    [`${at}.projected: Invalid value: "b": conflicting duplicate paths`],
  ],
  [
    { downwardAPI: { items: [{ path: 'x', fieldRef: { apiVersion: 'v1', fieldPath: 'status.podIP' } }] } },
    [
      `${at}.downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`,
    ],
  ],
  [
    { downwardAPI: { items: [{ path: 'x' }] } },
    [`${at}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required`],
  ],
  [
    { ephemeral: { volumeClaimTemplate: { metadata: { name: 'n' }, spec: { accessModes: ['ReadWriteOnce'] } } } },
    [
      `${at}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set`,
      `${at}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value`,
    ],
  ],
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

const ENV = 'spec.containers[0].env[0].valueFrom';
for (const [env, wanted] of [
  [{ fieldRef: { apiVersion: 'v1', fieldPath: "metadata.labels['a']" } }, []],
  [
    { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.whoops' } },
    [
      `${ENV}.fieldRef.fieldPath: Invalid value: "metadata.whoops": error converting fieldPath: field label not supported: metadata.whoops`,
    ],
  ],
  [
    { fieldRef: { apiVersion: 'v2', fieldPath: 'metadata.name' } },
    [
      `${ENV}.fieldRef.fieldPath: Invalid value: "metadata.name": error converting fieldPath: unsupported pod version: v2`,
    ],
  ],
  [
    { fieldRef: { apiVersion: 'v1', fieldPath: "spec.nodeName['a']" } },
    [
      `${ENV}.fieldRef.fieldPath: Invalid value: "spec.nodeName['a']": error converting fieldPath: field label does not support subscript: spec.nodeName['a']`,
    ],
  ],
  [
    { fieldRef: { apiVersion: 'v1', fieldPath: 'status.phase' } },
    [
      `${ENV}.fieldRef.fieldPath: Unsupported value: "status.phase": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`,
    ],
  ],
  [
    { resourceFieldRef: { resource: 'limits.cpu', divisor: '1Ki' } },
    [
      `${ENV}.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
  ],
  [{ resourceFieldRef: { resource: 'limits.hugepages-2Mi', divisor: '1Mi' } }, []],
  [
    { resourceFieldRef: { resource: 'limits.gpu' } },
    [
      `${ENV}.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"`,
    ],
  ],
  [{ secretKeyRef: { name: 's', key: '' } }, [`${ENV}.secretKeyRef.key: Required value`]],
] as const) {
  test(`a variable from ${JSON.stringify(env)}`, () => {
    assert.deepEqual(validateOne('pods', pod([], { env: [{ name: 'A', valueFrom: env }] })), wanted);
  });
}

test('variables of a whole map', () => {
  const from = (...envFrom: object[]): string[] => validateOne('pods', pod([], { envFrom }));
  const list = 'spec.containers[0].envFrom';
  assert.deepEqual(from({ configMapRef: { name: 'm' } }), []);
  assert.deepEqual(from({}), [`${list}: Invalid value: "": must specify one of: \`configMapRef\` or \`secretRef\``]);
  assert.deepEqual(from({ secretRef: { name: '' } }), [`${list}[0].secretRef.name: Required value`]);
});

// S-348: Volumes and claims are validated before they are stored.
// Compat Types, P1, yes: rules of volumes, of their sources, of variables and mounts; of PersistentVolumes and claims
test('mounts and devices', () => {
  const volumes = [
    { name: 'd', emptyDir: {} },
    { name: 'c', persistentVolumeClaim: { claimName: 'x' } },
  ];
  const mounts = 'spec.containers[0].volumeMounts';
  const devices = 'spec.containers[0].volumeDevices';
  const of = (container: object): string[] => validateOne('pods', pod(volumes, container));
  assert.deepEqual(of({ volumeMounts: [{ name: 'd', mountPath: '/d', mountPropagation: 'Bidirectional' }] }), [
    `${mounts}.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
  ]);
  assert.deepEqual(of({ volumeMounts: [{ name: 'd', mountPath: '/d', recursiveReadOnly: 'Enabled' }] }), [
    `${mounts}.recursiveReadOnly: Forbidden: may only be specified when readOnly is true`,
  ]);
  assert.deepEqual(of({ volumeDevices: [{ name: 'd', devicePath: '/dev/x' }] }), [
    `${devices}[0].name: Invalid value: "d": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
  ]);
  assert.deepEqual(
    of({ volumeDevices: [{ name: 'c', devicePath: '/x' }], volumeMounts: [{ name: 'c', mountPath: '/x' }] }),
    [
      `${mounts}[0].name: Invalid value: "c": must not already exist in volumeDevices`,
      `${mounts}[0].mountPath: Invalid value: "/x": must not already exist as a path in volumeDevices`,
      `${devices}[0].name: Invalid value: "c": must not already exist in volumeMounts`,
      `${devices}[0].devicePath: Invalid value: "/x": must not already exist as a path in volumeMounts`,
    ],
  );
});

const volume = (spec: object): object => ({
  metadata: { name: 'v' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...spec },
});

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
