import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitRanger } from './limit-ranger.ts';
import type { AdmissionAttributes } from './plugin.ts';

const ranges = (count: number, limit: object) => ({
  count: () => count,
  list: () => ({ items: Array.from({ length: count }, () => ({ object: { spec: { limits: [limit] } } })) }) as never,
});
const pod = (containers: number): AdmissionAttributes =>
  ({
    operation: 'CREATE',
    requestVerb: 'create',
    info: { group: '', resource: 'pods' },
    namespace: 'a',
    name: 'p',
    object: {
      metadata: { name: 'p' },
      spec: {
        containers: Array.from({ length: containers }, (_, i) => ({ name: `c${i}` })),
        initContainers: [{ name: 'first' }],
      },
    },
  }) as unknown as AdmissionAttributes;
const LIMIT = { type: 'Container', default: { cpu: '2' }, defaultRequest: { cpu: '1' }, max: { cpu: '3' } };

test('a Pod of many containers under many ranges is filled in and validated with others served in between', async () => {
  for (const [containers, count, isMuch] of [
    [2, 3, false],
    [400, 20, true],
  ] as const) {
    const plugin = limitRanger(ranges(count, LIMIT));
    const attributes = pod(containers);
    const filling = plugin.mutate!(attributes);
    let turns = 0;
    let busy = true;
    const others = (): void => {
      turns++;
      if (busy) setImmediate(others);
    };
    setImmediate(others);
    await filling;
    const spec = attributes.object!['spec'] as { containers: { resources: object }[]; initContainers: object[] };
    for (const container of [...spec.containers, ...spec.initContainers]) {
      assert.deepEqual((container as { resources: object }).resources, {
        requests: { cpu: '1' },
        limits: { cpu: '2' },
      });
    }
    const checking = plugin.validate!(attributes);
    await checking;
    const strict = limitRanger(ranges(count, { type: 'Container', max: { cpu: '1500m' } }));
    await assert.rejects(
      async () => strict.validate!(attributes),
      /pods "p" is forbidden: maximum cpu usage per Container is 1500m, but limit is 2/,
    );
    busy = false;
    assert.equal(turns > 5, isMuch);
  }
});
