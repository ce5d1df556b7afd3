import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { CLOUD_INIT_INSTANCE, cloudInitInstanceId } from '../../../kubevirt/src/rules/identity/cloud-init-instance.ts';
import type { MachinePlan } from '../../../kubevirt/src/rules/machine/machine-plan.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { cloudInitVolume, configDriveFiles, noCloudFiles } from './cloud-init-volume.ts';
import type { VolumeRequest } from './volume-request.ts';

const UUID = '11111111-2222-4333-8444-555555555555';

// S-593
test('cloudInitVolume() names the instance by its firmware UUID, and a clone that shares it by another id', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'coracle-cloud-init-'));
  t.after(() => rm(directory, { recursive: true }));
  const imageOf = async (flavour: 'noCloud' | 'configDrive', annotations?: Record<string, string>): Promise<string> => {
    const vmi = {
      metadata: { name: 'a', namespace: 'ns', ...(annotations && { annotations }) },
      spec: { domain: { devices: {} } },
    };
    const { signal } = new AbortController();
    const request = { vmi, directory, clock: systemClock, signal } as unknown as VolumeRequest;
    const plan = { uuid: UUID, hostname: 'a', interfaces: [], disks: [] } as unknown as MachinePlan;
    const file = `${flavour}.iso`;
    await cloudInitVolume(request, plan, { name: 'seed', file, flavour, source: { userData: 'x' } });
    return (await readFile(join(directory, file))).toString('latin1');
  };
  const annotations = { [CLOUD_INIT_INSTANCE]: 'uid of the clone' };
  const other = cloudInitInstanceId(UUID, annotations);
  for (const [flavour, field] of [
    ['noCloud', 'instance-id'],
    ['configDrive', 'uuid'],
  ] as const) {
    assert.ok((await imageOf(flavour)).includes(`"${field}":"${UUID}"`), flavour);
    const image = await imageOf(flavour, annotations);
    assert.ok(image.includes(`"${field}":"${other}"`) && !image.includes(UUID), flavour);
  }
});

// S-1655: Whatever text stands in a host name, a key, a tag or the data of cloud-init, the disk has the same few files, and the
//   guest reads from them what was written, line breaks and all.
test('no text of a user becomes a path, or another field, of a cloud-init disk', () => {
  const text = fc.string({ unit: 'binary' }).map((one) => one.toWellFormed());
  const bytes = fc.uint8Array();
  const given = fc.record({
    instanceId: text,
    name: text,
    namespace: text,
    hostname: text,
    publicKeys: fc.array(text),
    userData: bytes,
    networkData: bytes,
    devices: fc.array(
      fc.record({
        type: fc.constantFrom('nic' as const, 'disk' as const),
        tag: text,
        detail: fc.record({ mac: text }),
      }),
    ),
  });
  const numbered = (keys: readonly string[]) => (keys.length > 0 ? { ...keys } : undefined);
  fc.assert(
    fc.property(given, (data) => {
      const seed = noCloudFiles(data);
      const drive = configDriveFiles(data);
      assert.deepEqual([...seed.keys()], ['meta-data', 'user-data', 'network-config']);
      const OPENSTACK = ['meta_data.json', 'user_data', 'network_data.json'].map((name) => `openstack/latest/${name}`);
      assert.deepEqual([...drive.keys()], OPENSTACK);
      assert.deepEqual([seed.get('user-data'), seed.get('network-config')], [data.userData, data.networkData]);
      const read = JSON.parse(String(seed.get('meta-data')));
      assert.deepEqual(
        [read['instance-id'], read['local-hostname'], read['public-keys']],
        [data.instanceId, data.hostname, numbered(data.publicKeys)],
      );
      assert.doesNotMatch(String(seed.get('meta-data')), /[\r\n]/);
      const { hostname, public_keys, devices = [] } = JSON.parse(String(drive.get(OPENSTACK[0] ?? '')));
      assert.deepEqual([hostname, public_keys], [data.hostname, numbered(data.publicKeys)]);
      assert.deepEqual(
        devices,
        data.devices.map(({ type, tag, detail }) => ({ type, ...detail, tags: [tag] })),
      );
    }),
  );
});
