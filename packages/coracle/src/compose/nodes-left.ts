/** Nodes of a data directory that were not asked for and still have guests: of an earlier start with more, or another host name. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { listVmDirectories } from '@coracle/node-agent/disk/vm-directory';

const NODE_NAME = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Their names in order. Without an agent such a guest could neither be reached nor ended, and its machine not be started anew. */
export async function nodesLeft(nodesDirectory: string, asked: readonly string[]): Promise<string[]> {
  const entries = await readdir(nodesDirectory, { withFileTypes: true }).catch(() => []);
  const left: string[] = [];
  for (const entry of entries) {
    if (!entry.isDirectory() || !NODE_NAME.test(entry.name) || asked.includes(entry.name)) continue;
    const guests = await listVmDirectories(join(nodesDirectory, entry.name, 'vms'));
    if (guests.length > 0) left.push(entry.name);
  }
  return left.sort();
}
