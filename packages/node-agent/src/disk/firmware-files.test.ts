import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, test } from 'node:test';
import { arrivingTpmState, keepTpmState, lastingTpmState, lastingVariables } from './firmware-files.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'coracle-firmware-'));
});
after(() => rm(root, { recursive: true, force: true }));

async function directory(name: string): Promise<string> {
  const path = join(root, name);
  await mkdir(path);
  return path;
}

// S-634
test('the first guest finds the variables of the firmware, the next ones those of the guest before', async () => {
  const files = await directory('variables');
  const template = join(root, 'template.fd');
  await writeFile(template, 'fresh');
  const vars = await lastingVariables(files, template);
  assert.equal(await readFile(vars, 'utf8'), 'fresh');
  await writeFile(vars, 'mine!');
  await lastingVariables(files, template);
  assert.equal(await readFile(vars, 'utf8'), 'mine!');
  await writeFile(template, 'of another size');
  await assert.rejects(lastingVariables(files, template), /take 5 bytes, and the firmware of this node wants 15/);
  assert.equal(await readFile(vars, 'utf8'), 'mine!', 'they are never replaced');
});

// S-634
test('the state of a TPM is found again, and is never replaced by an empty one', async () => {
  const files = await directory('tpm');
  const state = await lastingTpmState(files);
  await writeFile(join(state, 'tpm2-00.permall'), 'secret');
  assert.equal(await lastingTpmState(files), state);
  await writeFile(join(files, 'tpm.json'), '{"version":2,"directory":"tpm-000000000000"}');
  await assert.rejects(lastingTpmState(files), /not of this version/);
  await writeFile(join(files, 'tpm.json'), '{"version":1,"directory":"../../x"}');
  await assert.rejects(lastingTpmState(files), /not of this version/);
  assert.equal(await readFile(join(state, 'tpm2-00.permall'), 'utf8'), 'secret');
});

// S-635
test('the state that a migration brings counts once the guest is here for good; else it goes', async () => {
  const files = await directory('moving');
  const uid = '00000000-0000-4000-8000-000000000001';
  const source = await lastingTpmState(files);
  const arriving = await arrivingTpmState(files, uid);
  assert.notEqual(arriving, source);
  assert.equal(await lastingTpmState(files), source, 'the migration came to nothing');
  assert.deepEqual(
    (await readdir(files)).filter((name) => name.startsWith('tpm-')),
    [basename(source)],
  );

  await arrivingTpmState(files, uid);
  const link = join(root, 'state');
  await symlink(arriving, link);
  await keepTpmState(link);
  // Tried once more after a crash.
  await keepTpmState(link);
  assert.equal(await lastingTpmState(files), arriving);
  assert.deepEqual(
    (await readdir(files)).filter((name) => name.startsWith('tpm-')),
    [basename(arriving)],
  );
  await keepTpmState(join(root, 'no-such-link'));
  await assert.rejects(arrivingTpmState(files, '../x'), /no usable UID/);
});
