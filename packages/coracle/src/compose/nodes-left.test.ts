import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { nodesLeft } from './nodes-left.ts';

// S-298: Nodes that were not asked for and have guests are started.
test('nodesLeft() names nodes that nobody asked for and that have guests', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodes-left-'));
  const uid = '00000000-0000-4000-8000-000000000000';
  try {
    for (const name of ['host', 'host-3', 'host-2', 'Odd'])
      await mkdir(join(directory, name, 'vms', uid), { recursive: true });
    await mkdir(join(directory, 'empty', 'vms'), { recursive: true });
    await writeFile(join(directory, 'qemu-facts.json'), '{}');
    assert.deepEqual(await nodesLeft(directory, ['host']), ['host-2', 'host-3']);
    assert.deepEqual(await nodesLeft(join(directory, 'none'), []), []);
  } finally {
    await rm(directory, { recursive: true });
  }
});
