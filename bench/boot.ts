/**
 * From an applied VM to its guest's first byte on the console, next to the same QEMU command started by hand. Needs a
 * node agent that runs guests.
 */
import { NODES } from '../src/api/kinds/builtin/resource-types.ts';
import { adminOf, startProcess } from '../test/testkit/control-plane-process.ts';
import { newDataDir, removeDataDir } from './api/plane.ts';
import type { BenchContext, Outcome } from './figure.ts';

export async function benchBoot(_context: BenchContext): Promise<Outcome> {
  const dir = newDataDir();
  try {
    const plane = await startProcess(dir, { nodes: 1 });
    const admin = adminOf(dir);
    try {
      const { items } = await admin.client.list(NODES);
      if (items.length === 0) return { state: 'skipped', reason: 'no node agent registers a Node' };
      return { state: 'skipped', reason: 'not measured yet' };
    } finally {
      await admin.close();
      await plane.kill('SIGTERM');
    }
  } finally {
    removeDataDir(dir);
  }
}
