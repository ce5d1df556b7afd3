import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeVirt } from '../../kinds/kubevirt.ts';
import { obsoleteCpuModels } from './obsolete-cpu-models.ts';

// S-401: Processor models of `obsoleteCPUModels` have no label on nodes, and labels of what is no longer offered go.
test('obsoleteCpuModels(): the defaults, and what the KubeVirt object says of single models', () => {
  const of = (obsoleteCPUModels?: Record<string, boolean>): ReadonlySet<string> =>
    obsoleteCpuModels({ spec: { configuration: { obsoleteCPUModels } } } as unknown as KubeVirt);
  assert.equal(obsoleteCpuModels(undefined).size, 17);
  assert.ok(of().has('Conroe'));
  assert.ok(!of().has('Penryn'));
  const changed = of({ Penryn: true, Conroe: false });
  assert.deepEqual([changed.has('Penryn'), changed.has('Conroe'), changed.has('486')], [true, false, true]);
});
