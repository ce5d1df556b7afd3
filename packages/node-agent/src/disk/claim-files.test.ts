import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatHeldClaims, parseHeldClaims } from '../../../cluster-rules/src/claims/held-claims.ts';
import { systemClock } from '../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../runtime/src/log/log.ts';
import { openPool } from '../storage/pool.ts';
import { listClaimFiles, noteClaim, removeClaimFiles } from './claim-files.ts';

const uid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;

// S-500
// S-548: Files of claims that nobody provisions go with their claim, when no guest has them; those of provisioned
//   volumes go by the provisioner alone.
test('files of a claim go when it is named, and only those: not in use, not retained, not half', async (t) => {
  const claims = await mkdtemp(join(tmpdir(), 'coracle-claims-'));
  t.after(() => rm(claims, { recursive: true, force: true }));
  for (const n of [1, 2, 3, 4]) {
    await mkdir(join(claims, uid(n)));
    await writeFile(join(claims, uid(n), 'disk.img'), 'x');
    // The fourth is of a volume to retain, or of an older version: nothing was written down.
    if (n < 4) await noteClaim(join(claims, uid(n)), n === 3 ? 'fast' : '');
  }
  // What a crash left of an earlier removal.
  await mkdir(join(claims, `.gone-${uid(9)}`));
  await writeFile(join(claims, `.gone-${uid(9)}`, 'disk.img'), 'x');
  const signal = new AbortController().signal;
  const pool = await openPool({ directory: claims, clock: systemClock, log: silentLogger, signal });
  t.after(() => pool.close());
  const held = await listClaimFiles(claims);
  const text = formatHeldClaims(held);
  assert.equal(text, [uid(1), uid(2), `${uid(3)}/fast`].join());
  assert.deepEqual(parseHeldClaims(text), held);
  const removed = await removeClaimFiles(
    pool,
    [uid(1), uid(2), uid(4), '../x', uid(7)],
    (directory) => directory === join(claims, uid(2)),
  );
  assert.deepEqual(removed, [uid(1)]);
  assert.deepEqual((await readdir(claims)).sort(), [uid(2), uid(3), uid(4), 'pool.json']);
  assert.deepEqual(await removeClaimFiles(pool, [uid(2)], () => false), [uid(2)]);
  assert.deepEqual(await removeClaimFiles(pool, [uid(2)], () => false), []);
  await noteClaim(join(claims, uid(3)), '');
  await pool.reserve(uid(3), { vmi: uid(8), place: 'n', access: 'write' });
  assert.deepEqual(await removeClaimFiles(pool, [uid(3)], () => false), [], 'the pool knows of a guest');
});

// S-500
test('a Node lists as many claims as fit, and what somebody else wrote there names none', () => {
  const many = Array.from({ length: 5000 }, (_, i) => ({
    uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    storageClass: 'c'.repeat(63),
  }));
  assert.ok(formatHeldClaims(many).length < 200 * 1024);
  assert.deepEqual(parseHeldClaims('../../etc,,x/y,00000000-0000-4000-8000-000000000001 '), []);
  assert.deepEqual(parseHeldClaims(undefined), []);
});
