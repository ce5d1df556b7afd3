import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cloudConfig, machineManifest, readPublished, readSize, withKeys } from './create-manifest.ts';

const base = {
  name: 'web',
  namespace: undefined,
  root: { kind: 'container-disk', image: 'quay.io/containerdisks/debian:13' },
  cpus: undefined,
  memory: undefined,
  instancetype: undefined,
  preference: undefined,
  userData: '#cloud-config\n',
  ports: [],
} as const;

test('an instance type and a preference stand for amounts and buses', () => {
  const { spec } = machineManifest({ ...base, instancetype: 'u1.small', preference: 'namespaced/ours' });
  assert.deepEqual(spec.instancetype, { name: 'u1.small' });
  assert.deepEqual(spec.preference, { kind: 'VirtualMachinePreference', name: 'ours' });
  const { domain } = spec.template.spec!;
  assert.deepEqual([domain.cpu, domain.memory], [undefined, undefined]);
  assert.deepEqual(domain.devices?.disks?.[0], { name: 'root', disk: {} });
  assert.throws(() => machineManifest({ ...base, instancetype: 'a/b/c' }), /takes NAME, or namespaced/);
});

test('amounts are written where no instance type gives them', () => {
  const { domain } = machineManifest({ ...base, cpus: 2, memory: '2Gi' }).spec.template.spec!;
  assert.deepEqual([domain.cpu, domain.memory], [{ cores: 2 }, { guest: '2Gi' }]);
  assert.deepEqual(domain.devices?.disks?.[0], { name: 'root', disk: { bus: 'virtio' } });
});

test('a disk that lasts is a DataVolume of the machine', () => {
  const root = { kind: 'data-volume', source: { http: 'https://x/y.qcow2' }, size: '10Gi' } as const;
  const { spec } = machineManifest({ ...base, root });
  assert.deepEqual(spec.dataVolumeTemplates, [
    {
      metadata: { name: 'web-root' },
      spec: {
        source: { http: { url: 'https://x/y.qcow2' } },
        storage: { resources: { requests: { storage: '10Gi' } } },
      },
    },
  ]);
  assert.deepEqual(spec.template.spec!.volumes![0], { name: 'root', dataVolume: { name: 'web-root' } });
});

test('published ports stand in the annotation that the node reads, and those by UDP in the spec as well', () => {
  const templateOf = (...ports: string[]) => machineManifest({ ...base, ports: readPublished(ports) }).spec.template;
  const tcp = templateOf('2222:22', '8080:80/TCP');
  assert.deepEqual(tcp.metadata?.annotations, { 'coracle.dev/host-ports': '2222:22,8080:80' });
  assert.equal(tcp.spec!.domain.devices?.interfaces?.[0]?.ports, undefined);
  const udp = templateOf('5353:53/udp');
  assert.deepEqual(udp.metadata?.annotations, { 'coracle.dev/host-ports': '5353:53/udp' });
  assert.deepEqual(udp.spec!.domain.devices?.interfaces?.[0]?.ports, [
    { port: 22 },
    { port: 80 },
    { port: 53, protocol: 'UDP' },
  ]);
  assert.equal(templateOf().metadata, undefined);
  for (const bad of ['22', '0:22', '2222:', '2222:65536', '1:2/sctp', '127.0.0.1:1:2'])
    assert.throws(() => readPublished([bad]), /-p takes HOST:GUEST/, bad);
  assert.throws(() => readPublished(['80:80', '80:81']), /-p gives port 80 of this host twice/);
  assert.equal(readPublished(['80:80', '80:80/udp']).length, 2);
});

test('sizes need their unit, and mean what people write', () => {
  for (const [text, quantity] of [
    ['2Gi', '2Gi'],
    ['2g', '2G'],
    ['512m', '512M'],
    ['512 MiB', '512Mi'],
    ['1.5GiB', '1.5Gi'],
    ['10GB', '10G'],
    ['64kb', '64k'],
  ])
    assert.equal(readSize(text!, 'memory'), quantity);
  for (const text of ['2', '2x', 'Gi', '-1Gi', '0Gi', ''])
    assert.throws(() => readSize(text, 'memory'), /--memory takes a size with its unit/);
  for (const text of ['8192Ti', '9008T', '99999999Gi'])
    assert.throws(() => readSize(text, 'disk'), /--disk takes less than 8192Ti, not "\d+\w+"$/);
  assert.equal(readSize('8191Ti', 'disk'), '8191Ti');
});

test('keys are written into user data, and what was there stays', () => {
  const given = { user: 'me', keys: ['ssh-ed25519 AAAA me@here'] };
  assert.equal(cloudConfig(given), '#cloud-config\nuser: me\nssh_authorized_keys:\n  - ssh-ed25519 AAAA me@here\n');
  const own = '#cloud-config\n# mine\nusers:\n  - name: other\nssh_authorized_keys: [ssh-rsa BBBB]\n';
  const merged = withKeys(own, given)!;
  assert.match(merged, /^#cloud-config\n# mine\nusers:\n {2}- name: other\n/);
  assert.match(merged, /ssh-rsa BBBB, ssh-ed25519 AAAA me@here/);
  assert.doesNotMatch(merged, /user: me/);
  assert.match(withKeys('#cloud-config\n', given)!, /^#cloud-config\n[\s\S]*user: me/);
  assert.equal(withKeys('#!/bin/sh\ntrue\n', given), undefined);
  assert.throws(() => withKeys('#cloud-config\n- a\n', given), /a map of keys/);
});
