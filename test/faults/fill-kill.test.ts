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

// S-1115: Killed at any step, a fill goes on after the restart and ends with one volume, whole, and nothing beside it.
for (const form of ['raw', 'gz', 'qcow2', 'qcow2.gz'])
  for (const step of FILL_STEPS.filter((each) => each !== 'received'))
    test(`${form}, killed at "${step}"`, async () => {
      if (step.startsWith('bytes:')) bench.server.stall.push(2_000_000);
      const cameThere = await killAndGoOn(bench, { form, by: 'http' }, step);
      bench.server.stall.length = 0;
      assert.equal(cameThere, step !== 'unpacked' || form.includes('gz'));
    });

// S-1244: An upload whose node is killed in the middle is sent again; one that was received whole goes on by itself. Either way
//   there is one volume in the end, whole, and nothing beside it.
for (const form of ['raw', 'gz', 'qcow2', 'qcow2.gz'])
  for (const step of FILL_STEPS.map((each) => each.replace(/^bytes:.*/, 'bytes:1')))
    test(`${form} that is sent, killed at "${step}"`, async () => {
      const cameThere = await killAndGoOn(bench, { form, by: 'upload' }, step);
      assert.equal(cameThere, step !== 'unpacked' || form.includes('gz'));
    });
