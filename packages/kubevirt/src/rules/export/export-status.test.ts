import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS } from '../../../../apimachinery/src/types/resource-types.ts';
import { NOW, stored } from '../../../../client/src/run-step.fixture.ts';
import { VIRTUAL_MACHINE_EXPORTS, VIRTUAL_MACHINES } from '../../kinds/kubevirt.ts';
import { machineManifests } from './export-manifests.ts';
import { exportServiceName, exportTokenName, linkForNodes } from './export-names.ts';
import { expiryOf, exportLink, exportStatus, holdsDisk, linkName } from './export-status.ts';

const object = (ttlDuration?: string, kind = 'PersistentVolumeClaim') =>
  stored(VIRTUAL_MACHINE_EXPORTS, 'e', {
    spec: { source: { kind, name: 'c' }, ...(ttlDuration !== undefined && { ttlDuration }) },
  });
const claim = (annotations: Record<string, string> = {}, volumeMode?: 'Block' | 'Filesystem') =>
  stored(PERSISTENT_VOLUME_CLAIMS, 'c', {
    metadata: { annotations },
    spec: { ...(volumeMode && { volumeMode }) },
    status: { phase: 'Bound' },
  });

// S-1386
test('an export ends after its ttl, or two hours', () => {
  const hours = (ttl?: string): number => (expiryOf(object(ttl)) - Date.parse(NOW)) / 3_600_000;
  assert.deepEqual([hours(), hours('30m'), hours('100h')], [2, 0.5, 100]);
});

// S-1382
test('disks and files are distinguished as upstream does', () => {
  const annotated = (value: string) => claim({ 'cdi.kubevirt.io/storage.contentType': value });
  const rows = [
    [holdsDisk(claim(), undefined), false],
    [holdsDisk(claim({}, 'Block'), undefined), true],
    [holdsDisk(annotated('kubevirt'), undefined), true],
    [holdsDisk(annotated(''), undefined), true],
    [holdsDisk(annotated('archive'), undefined), false],
    [holdsDisk(claim(), ''), true],
    [holdsDisk(claim(), 'archive'), false],
  ];
  for (const [at, [found, expected]] of rows.entries()) assert.equal(found, expected, `row ${at}`);
});

// S-1380
test('names that would be too long are cut and stay different', () => {
  const named = (name: string) => stored(VIRTUAL_MACHINE_EXPORTS, name, { spec: { source: { kind: '', name: '' } } });
  assert.equal(exportServiceName(named('a')), 'virt-export-a');
  const [a, b] = ['a', 'b'].map((end) => exportTokenName(named(`${'x'.repeat(62)}${end}`)));
  assert.equal(a?.length, 'export-token-'.length + 8);
  assert.notEqual(a, b);
  assert.ok(exportServiceName(named('y'.repeat(55))).endsWith(`-${'y'.repeat(55)}`) === false);
});

// S-1380
test('the links lead to the proxy, by the names of the source', () => {
  const of = object(undefined, 'VirtualMachineSnapshot');
  const made = stored(PERSISTENT_VOLUME_CLAIMS, 'e-disk', { spec: {} });
  const link = exportLink(
    of,
    { base: 'https://h:1', cert: 'PEM\n', claims: [made], isDisk: () => true, hasMachine: true },
    'external',
  );
  const root = 'https://h:1/api/export.kubevirt.io/v1/namespaces/ns/virtualmachineexports/e';
  assert.deepEqual(link, {
    cert: 'PEM',
    volumes: [
      {
        name: 'disk',
        formats: [
          { format: 'raw', url: `${root}/volumes/e-disk/disk.img` },
          { format: 'gzip', url: `${root}/volumes/e-disk/disk.img.gz` },
        ],
      },
    ],
    manifests: [
      { type: 'all', url: `${root}/external/manifests/all` },
      { type: 'auth-header-secret', url: `${root}/external/manifests/secret` },
    ],
  });
  assert.equal(linkName(object(), 'e-disk'), 'e-disk');
  const inside = exportLink(
    of,
    { base: 'https://h:1', cert: 'PEM\n', claims: [made], isDisk: () => true, hasMachine: false },
    'internal',
  ).volumes?.[0]?.formats?.[0]?.url;
  assert.equal(inside, `${root}/volumes/e-disk/disk.img`.replace('h:1', 'virt-export-e.ns.svc'));
  assert.equal(linkForNodes(inside ?? '', 'https://h:1'), `${root}/volumes/e-disk/disk.img`);
  for (const other of ['https://virt-export-e.ns.svc/else', 'http://virt-export-e.ns.svc/api/export.kubevirt.io/v1'])
    assert.equal(linkForNodes(other, 'https://h:1'), other);
});

// S-1383
test('a status keeps the times of what has not changed', () => {
  const source = { claims: [claim()] };
  const links = { internal: { cert: 'c' } };
  const later = Date.parse(NOW) + 60_000;
  const first = exportStatus(object(), { source, links, now: Date.parse(NOW) });
  assert.deepEqual([first.phase, first.links, first.tokenSecretRef], ['Ready', links, 'export-token-e']);
  const again = exportStatus({ ...object(), status: first }, { source, links, now: later });
  assert.deepEqual(again.conditions, first.conditions);
  const busy = { ...source, obstacle: { reason: 'InUse', message: 'in use' } };
  const paused = exportStatus({ ...object(), status: first }, { source: busy, links, now: later });
  assert.deepEqual([paused.phase, paused.links], ['Pending', {}]);
  assert.equal(paused.conditions?.[0]?.lastTransitionTime, '2030-01-01T00:01:00Z');
  const empty = { claims: [], isEmpty: true as const, obstacle: busy.obstacle };
  assert.equal(exportStatus(object(), { source: empty, links, now: later }).phase, 'Skipped');
});

// S-1384
test('the manifests fetch each disk once, by its template or by a DataVolume', () => {
  const vm = stored(VIRTUAL_MACHINES, 'vm', {
    metadata: { labels: { a: 'b' } },
    spec: {
      instancetype: { name: 'small' },
      dataVolumeTemplates: [{ metadata: { name: 'root' }, spec: { sourceRef: { kind: 'DataSource', name: 'os' } } }],
      template: {
        spec: {
          domain: { devices: {} },
          volumes: [
            { name: 'root', dataVolume: { name: 'root' } },
            { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
            { name: 'files', persistentVolumeClaim: { claimName: 'files' } },
          ],
        },
      },
    },
    status: { ready: true },
  });
  const urls: Readonly<Record<string, string>> = { root: 'https://r', data: 'https://d' };
  const [ca, machine, ...volumes] = machineManifests({
    exportKey: { namespace: 'ns', name: 'e' },
    cert: 'PEM',
    vm,
    specOf: () => ({ accessModes: ['ReadWriteOnce'], storageClassName: 'fast', volumeName: 'pv-1' }),
    urlOf: (name) => urls[name],
  }) as unknown as Record<string, Record<string, unknown>>[];
  const http = (url: string) => ({
    http: { url, certConfigMap: 'export-ca-cm-e', secretExtraHeaders: ['header-secret-e'] },
  });
  assert.deepEqual(ca?.['data'], { 'ca.pem': 'PEM' });
  assert.deepEqual(machine?.['metadata'], { name: 'vm', namespace: 'ns', labels: { a: 'b' } });
  assert.equal(machine?.['status'], undefined);
  assert.equal(machine?.['spec']?.['instancetype'], undefined);
  assert.deepEqual(machine?.['spec']?.['dataVolumeTemplates'], [
    { metadata: { name: 'root' }, spec: { source: http('https://r') } },
  ]);
  assert.deepEqual(
    volumes.map(({ metadata, spec }) => ({ metadata, spec })),
    [
      {
        metadata: { name: 'data', namespace: 'ns' },
        spec: { source: http('https://d'), pvc: { accessModes: ['ReadWriteOnce'] } },
      },
    ],
  );
});
