import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { isRunning } from '../../../runtime/src/process/identity.ts';
import { isProgram } from '../../../runtime/src/process/program.ts';
import { endTpm, findTpm, startTpm, swtpmArgv, TPM_PROGRAM, tpmSocket } from './swtpm.ts';

const skip = isProgram(TPM_PROGRAM) ? false : `not on this host: ${TPM_PROGRAM}`;
const with_ = { clock: systemClock, signal: new AbortController().signal };

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'coracle tpm, '));
});
after(() => rm(root, { recursive: true, force: true }));

async function vmDirectory(name: string): Promise<string> {
  const directory = join(root, name);
  await mkdir(directory, { mode: 0o700 });
  return directory;
}

test('two directories never have the same socket, and no option of swtpm holds a path', () => {
  assert.notEqual(tpmSocket('/a/u'), tpmSocket('/b/u'));
  assert.ok(!swtpmArgv('/a,b/u').some((word) => word.includes('/a')));
});

// S-631
test('a TPM listens for this user alone, is found again, and ends', { skip }, async () => {
  const directory = await vmDirectory('one');
  const identity = await startTpm({ directory, ...with_ });
  const socket = await stat(join(directory, tpmSocket(directory)));
  assert.ok(socket.isSocket());
  assert.equal(socket.mode & 0o077, 0);
  assert.equal((await stat(join(directory, 'tpm'))).mode & 0o077, 0);
  assert.deepEqual(await findTpm(directory), identity);
  await endTpm(directory, with_);
  assert.equal(await isRunning(identity), false);
  assert.equal(await findTpm(directory), undefined);
});

// S-631
test('a kill at any step leaves none: the next start and the end find what nobody wrote down', { skip }, async () => {
  const directory = await vmDirectory('two');
  const first = await startTpm({ directory, ...with_ });
  await rm(join(directory, 'tpm/process.json'));
  assert.deepEqual(await findTpm(directory), first, 'by the name of its socket');
  const second = await startTpm({ directory, ...with_ });
  assert.equal(await isRunning(first), false);
  await rm(join(directory, 'tpm/process.json'));
  await endTpm(directory, with_);
  assert.equal(await isRunning(second), false);
});

test('state lasts only where it shall', { skip }, async () => {
  const directory = await vmDirectory('three');
  const lastingState = join(directory, 'elsewhere');
  await startTpm({ directory, lastingState, ...with_ });
  assert.equal((await stat(lastingState)).mode & 0o077, 0);
  await endTpm(directory, with_);
  await rm(join(directory, 'tpm'), { recursive: true });
  assert.deepEqual(await readdir(lastingState), [], 'the link goes, and not what it leads to');
});
