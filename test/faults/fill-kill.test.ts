/** Fills killed at every step, in every form: they go on, and leave one whole volume and nothing beside it. */
// test:full: a matrix of kills.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { FILL_STEPS, type FillBench, killAndGoOn, openFillBench } from '../testkit/killed-fills.ts';

let bench: FillBench;
before(async () => {
  bench = await openFillBench();
});
after(() => bench?.close());

// S-1115
for (const form of ['raw', 'gz', 'qcow2', 'qcow2.gz'])
  for (const step of FILL_STEPS)
    test(`${form}, killed at "${step}"`, async () => {
      if (step.startsWith('bytes:')) bench.server.stall.push(2_000_000);
      const cameThere = await killAndGoOn(bench, form, step);
      bench.server.stall.length = 0;
      assert.equal(cameThere, step !== 'unpacked' || form.includes('gz'));
    });
