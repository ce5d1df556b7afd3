/** What is refused of DataVolumes, and to whom. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  for (const name of ['tenant', 'golden']) await plane.admin('POST /api/v1/namespaces', { metadata: { name } });
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/namespaces/tenant/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'ann-edits' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ann' }],
  });
});
after(() => plane.stop());

const storage = { resources: { requests: { storage: '1Gi' } } };
let serial = 0;
const make = (spec: object, as: readonly [string, ...string[]] = ['admin', 'system:masters'], namespace = 'tenant') =>
  plane.ask(`POST /apis/cdi.kubevirt.io/v1beta1/namespaces/${namespace}/datavolumes`, {
    as,
    body: {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: `dv-${++serial}` },
      spec: { storage, ...spec },
    },
  });
const URL_OUT = 'https://images.example.com/disk.qcow2';

const REFUSED: readonly (readonly [what: string, spec: object, field: string, message: RegExp])[] = [
  ['no source', {}, 'spec', /either Source, SourceRef/],
  ['two sources', { source: { blank: {}, http: { url: URL_OUT } } }, 'spec.source', /Multiple Data volume sources/],
  ['no size', { source: { blank: {} }, storage: {} }, 'spec.storage.resources.requests', /size is missing/],
  ['no claim', { source: { blank: {} }, storage: null }, 'spec', /Missing Data volume PVC/],
  [
    'an unknown checksum',
    { source: { http: { url: URL_OUT, checksum: 'crc32:00' } } },
    'spec.source.http.checksum',
    /md5, sha1, sha256 or sha512/,
  ],
  ['a file', { source: { http: { url: 'file:///etc/shadow' } } }, 'spec.source.http.url', /not a URL of http/],
  [
    'credentials in a URL',
    { source: { http: { url: 'https://a:b@images.example.com/x' } } },
    'spec.source.http.url',
    /secretRef/,
  ],
  ['S3', { source: { s3: { url: 'https://s3.example.com/a/b' } } }, 'spec.source.s3', /s3 is not served/],
  ['GCS', { source: { gcs: { url: 'gs://a/b' } } }, 'spec.source.gcs', /gcs is not served/],
  [
    'ImageIO',
    { source: { imageio: { url: 'https://o.example.com', diskId: 'd' } } },
    'spec.source.imageio',
    /imageio is not served/,
  ],
  [
    'certificates of a registry',
    { source: { registry: { url: 'docker://a/b', certConfigMap: 'c' } } },
    'spec.source.registry.certConfigMap',
    /not served/,
  ],
  [
    'an archive that is uploaded',
    { source: { upload: {} }, contentType: 'archive' },
    'spec.contentType',
    /a claim here holds one disk image/,
  ],
  [
    'the end of checkpoints',
    { source: { http: { url: URL_OUT } }, finalCheckpoint: true },
    'spec.finalCheckpoint',
    /several stages/,
  ],
  [
    'a volume by its labels',
    { source: { blank: {} }, storage: { ...storage, selector: { matchLabels: { a: 'b' } } } },
    'spec.storage.selector',
    /made for the claim/,
  ],
  [
    'a volume by its name',
    { source: { upload: {} }, storage: null, pvc: { ...storage, accessModes: ['ReadWriteOnce'], volumeName: 'v' } },
    'spec.pvc.volumeName',
    /made for the claim/,
  ],
  [
    'a class of attributes',
    {
      source: { blank: {} },
      storage: null,
      pvc: { ...storage, accessModes: ['ReadWriteOnce'], volumeAttributesClassName: 'fast' },
    },
    'spec.pvc.volumeAttributesClassName',
    /have no VolumeAttributesClasses/,
  ],
  ['VDDK', { source: { vddk: { url: 'https://v.example.com' } } }, 'spec.source.vddk', /vddk is not served/],
  ['an image stream', { source: { registry: { imageStream: 'a' } } }, 'spec.source.registry.imageStream', /OpenShift/],
  [
    'an archive',
    { source: { http: { url: URL_OUT } }, contentType: 'archive' },
    'spec.contentType',
    /archive is not served/,
  ],
  [
    'checkpoints',
    { source: { http: { url: URL_OUT } }, checkpoints: [{ previous: 'a', current: 'b' }] },
    'spec.checkpoints',
    /several stages/,
  ],
  [
    'another architecture',
    {
      source: { registry: { url: 'docker://a/b', platform: { architecture: 's390x' } } },
    },
    'spec.source.registry.platform.architecture',
    /amd64/,
  ],
];
// S-1107: A DataVolume that CDI would refuse, or that nothing here can fill, is refused when it is made, with the field and
//   what to do, alone and in a machine.
for (const [what, spec, field, message] of REFUSED)
  test(`${what} is refused`, async () => {
    const { status, json } = await make(spec);
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(json.message, message);
    assert.equal(json.details.causes[0].field, field);
  });

// S-1245: A field of a DataVolume, DataImportCron or StorageProfile that has no effect here says so in a warning when it is set.
test('what has no effect is warned about', async () => {
  const profile = await plane.ask('POST /apis/cdi.kubevirt.io/v1beta1/storageprofiles', {
    as: ['admin', 'system:masters'],
    body: {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'StorageProfile',
      metadata: { name: 'fast' },
      spec: { cloneStrategy: 'copy', snapshotClass: 'other' },
    },
  });
  assert.equal(profile.status, 201);
  assert.match(
    profile.headers['warning'] ?? '',
    /spec\.cloneStrategy has no effect.*spec\.snapshotClass has no effect/,
  );
  for (const [field, value] of [
    ['preallocation', true],
    ['priorityClassName', 'high'],
  ] as const) {
    const { status, headers } = await make({ source: { blank: {} }, [field]: value });
    assert.equal(status, 201);
    assert.match(headers['warning'] ?? '', new RegExp(`spec.${field} has no effect here`));
  }
});

// S-1107
test('so is a machine with such a template', async () => {
  const { status, json } = await plane.ask('POST /apis/kubevirt.io/v1/namespaces/tenant/virtualmachines', {
    as: ['admin', 'system:masters'],
    body: {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'vm' },
      spec: {
        runStrategy: 'Halted',
        dataVolumeTemplates: [
          { metadata: { name: 'd' }, spec: { storage, source: { http: { url: URL_OUT, checksum: 'x' } } } },
        ],
        template: {
          spec: {
            domain: { devices: { disks: [{ name: 'd', disk: {} }] }, memory: { guest: '64Mi' } },
            volumes: [{ name: 'd', dataVolume: { name: 'd' } }],
          },
        },
      },
    },
  });
  assert.equal(status, 422, JSON.stringify(json));
  assert.equal(json.details.causes[0].field, 'spec.dataVolumeTemplates[0].spec.source.http.checksum');
});

// S-1108: To copy what lies in another namespace takes the right to create datavolumes/source there, also by the way of a
//   DataSource; to fetch from the host's own services takes the right to get nodes/proxy.
test('rights on sources', async () => {
  const copy = { source: { pvc: { namespace: 'golden', name: 'disk' } } };
  const refused = await make(copy, ['ann']);
  assert.equal(refused.status, 403, JSON.stringify(refused.json));
  assert.match(refused.json.message, /datavolumes\/source/);
  const point = {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataSource',
    metadata: { name: 'golden' },
    spec: { source: { pvc: { namespace: 'golden', name: 'disk' } } },
  };
  const sources = 'POST /apis/cdi.kubevirt.io/v1beta1/namespaces/tenant/datasources';
  assert.equal((await plane.ask(sources, { as: ['ann'], body: point })).status, 403);
  await plane.admin(sources, point);
  const byName = { sourceRef: { kind: 'DataSource', name: 'golden' }, storage: {} };
  assert.equal((await make(byName, ['ann'])).status, 403);
  const local = { source: { http: { url: 'http://127.0.0.1:10250/pods' } } };
  const own = await make(local, ['ann']);
  assert.equal(own.status, 403);
  assert.match(own.json.message, /nodes\/proxy/);
  assert.equal((await make(local)).status, 201);
  await plane.admin('POST /apis/rbac.authorization.k8s.io/v1/namespaces/golden/rolebindings', {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'ann-copies' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cdi.kubevirt.io:edit' },
    subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'ann' }],
  });
  assert.equal((await make(copy, ['ann'])).status, 201);
  assert.equal((await make(byName, ['ann'])).status, 201);
});

// S-1107
test('the spec does not change', async () => {
  const { json } = await make({ source: { blank: {} } });
  const changed = await plane.ask(
    `PATCH /apis/cdi.kubevirt.io/v1beta1/namespaces/tenant/datavolumes/${json.metadata.name}`,
    { as: ['admin', 'system:masters'], body: { spec: { source: { blank: null, http: { url: URL_OUT } } } } },
  );
  assert.equal(changed.status, 422, JSON.stringify(changed.json));
  assert.match(changed.json.message, /Cannot update DataVolume Spec/);
});
