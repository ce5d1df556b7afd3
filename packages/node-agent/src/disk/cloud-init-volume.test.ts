import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLOUD_INIT_INSTANCE, cloudInitInstanceId } from '../../../kubevirt/src/rules/identity/cloud-init-instance.ts';
import type { MachinePlan } from '../../../kubevirt/src/rules/machine/machine-plan.ts';
import { cloudInitVolume } from './cloud-init-volume.ts';
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
    const request = { vmi, directory, signal } as unknown as VolumeRequest;
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
