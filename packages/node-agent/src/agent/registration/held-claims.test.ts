import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Node } from '../../../../apimachinery/src/types/types.ts';
import { systemClock } from '../../../../runtime/src/clock/clock.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { noteClaim } from '../../disk/claim-files.ts';
import { openPool } from '../../storage/pool.ts';
import type { VmRecord } from '../launcher/vm-record.ts';
import { createHeldClaims } from './held-claims.ts';

const CLAIM = '00000000-0000-4000-8000-000000000001';

// S-500
test('an agent removes what its Node names, once no guest has it open, and takes it off the list', async (t) => {
  const claimsDirectory = await mkdtemp(join(tmpdir(), 'coracle-held-'));
  t.after(() => rm(claimsDirectory, { recursive: true, force: true }));
  let records: VmRecord[] = [];
  const signal = new AbortController().signal;
  const pool = await openPool({ directory: claimsDirectory, clock: systemClock, log: silentLogger, signal });
  t.after(() => pool.close());
  const held = createHeldClaims({ pool, records: () => records, log: silentLogger });
  assert.equal(await held.list(), undefined, 'a node that never held any says nothing');
  const directory = join(claimsDirectory, CLAIM);
  await mkdir(directory);
  await writeFile(join(directory, 'disk.img'), 'x');
  await noteClaim(directory, '');
  assert.equal(await held.list(), CLAIM);

  const node = (gone?: string) =>
    ({
      metadata: {
        name: 'n',
        annotations: { 'coracle.dev/claims': CLAIM, ...(gone && { 'coracle.dev/gone-claims': gone }) },
      },
    }) as unknown as Node;
  await held.observe(node());
  records = [{ files: [join(directory, 'disk.img')] } as unknown as VmRecord];
  await held.observe(node(CLAIM));
  assert.deepEqual(await readdir(claimsDirectory), [CLAIM, 'pool.json'], 'a guest has it open');
  records = [{} as VmRecord];
  await held.observe(node(CLAIM));
  assert.deepEqual(await readdir(claimsDirectory), [CLAIM, 'pool.json'], 'a guest of an older version may have');
  records = [];
  await held.observe(node(CLAIM));
  assert.deepEqual(await readdir(claimsDirectory), ['pool.json']);
  assert.equal(await held.list(), '', 'an empty list, so that the one on the Node goes');
});
