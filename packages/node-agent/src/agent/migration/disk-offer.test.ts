import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { MachinePlan } from '../../../../kubevirt/src/rules/machine/machine-plan.ts';
import type { PreparedVm } from '../launcher/start-vm.ts';
import type { DiskOffer, Hello } from './channel.ts';
import { offerProblem } from './disk-offer.ts';

const DIGEST = `sha256:${'1'.repeat(64)}`;

test('offerProblem(): an image is the same by its digest, any other file below an overlay by itself', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'coracle-offer-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  const [directory, base] = [join(root, 'vm'), join(root, 'base.qcow2')];
  await mkdir(directory);
  await writeFile(join(directory, 'disk-0.qcow2'), '');
  await writeFile(base, '');
  const plan = { disks: [{ name: 'root', hasVolume: true }] } as unknown as MachinePlan;
  // Of another host: its number is another one.
  const offer: DiskOffer = { index: 0, virtualSize: 1, move: 'mirror', shared: { dev: 1, ino: 1, size: 0 } };
  const problem = (theirs: Record<string, string>, ours: Record<string, string>): Promise<string | undefined> =>
    offerProblem(
      { plan, imageIds: theirs, disks: [offer] } as unknown as Hello,
      {
        plan,
        directory,
        imageIds: ours,
        volumes: { disks: new Map([['root', { file: 'disk-0.qcow2', backing: { file: base } }]]) },
      } as unknown as PreparedVm,
    );
  const image = { volumeroot: `localhost/tiny@${DIGEST}` };
  assert.equal(await problem(image, { volumeroot: `elsewhere/tiny@${DIGEST}` }), undefined);
  assert.match(
    (await problem(image, { volumeroot: 'localhost/tiny@sha256:2' })) ?? '',
    /^volumeroot: the guest runs from/,
  );
  assert.equal(await problem({}, {}), 'disk root: the two nodes do not share its file');
});
