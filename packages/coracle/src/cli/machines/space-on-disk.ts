/** What machines take on the disk of their server. */

import { readdir, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { PERSISTENT_VOLUME_CLAIMS } from '@coracle/apimachinery/types/resource-types';
import type { PersistentVolumeClaim } from '@coracle/apimachinery/types/types';
import type { Client } from '@coracle/client/client';
import { STATE_LABEL } from '@coracle/kubevirt/rules/backend-storage/backend-storage';
import { claimNames } from '@coracle/kubevirt/rules/machine/claim-names';
import type { DataDir } from '../../config/data-dir.ts';
import type { FoundMachine } from './find-machine.ts';

/** Files that are counted at most; a directory with more is said to be as large as those. */
const MOST_FILES = 100_000;
const BLOCK_BYTES = 512;

export interface SpaceOnDisk {
  /** Of all machines and claims. */
  readonly bytes: number;
  /**
   * Of one machine: its claims, the one with its firmware state among them, and what its guest writes beside them (layers over
   * images, logs). What it shares with others counts where it was made: an image not at all, a layer with its first claim.
   */
  bytesOf(machine: FoundMachine): number;
}

/** Walks the data directory once. */
export async function spaceOnDisk(dir: DataDir, client: Client, signal: AbortSignal): Promise<SpaceOnDisk> {
  const [volumes, guests, { items }] = await Promise.all([
    bytesBelow(join(dir.root, 'claims'), 0),
    // NODE/vms/UID
    bytesBelow(dir.nodes, 2),
    client.list<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, { signal }),
  ]);
  const claims = new Map<string, string>();
  const states = new Map<string, string>();
  for (const { metadata } of items) {
    claims.set(`${metadata.namespace}/${metadata.name}`, metadata.uid ?? '');
    const machine = metadata.labels?.[STATE_LABEL];
    if (machine !== undefined) states.set(`${metadata.namespace}/${machine}`, metadata.uid ?? '');
  }
  const sum = (found: ReadonlyMap<string, number>): number => [...found.values()].reduce((all, one) => all + one, 0);
  return {
    bytes: sum(volumes) + sum(guests),
    bytesOf({ key: { namespace, name }, vm, vmi }) {
      const names = [...claimNames(vm?.spec.template.spec), ...claimNames(vmi?.spec)];
      const uids = new Set([
        ...names.map((one) => claims.get(`${namespace}/${one}`)),
        states.get(`${namespace}/${name}`),
      ]);
      const lasting = [...uids].reduce((all, uid) => all + (uid ? (volumes.get(uid) ?? 0) : 0), 0);
      return lasting + (vmi?.metadata.uid ? (guests.get(vmi.metadata.uid) ?? 0) : 0);
    },
  };
}

/** What the files below a directory take on the disk, by one part of their path. Files of several names count once. */
async function bytesBelow(directory: string, part: number): Promise<ReadonlyMap<string, number>> {
  const counted = new Set<number>();
  const found = new Map<string, number>();
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries.slice(0, MOST_FILES)) {
    if (!entry.isFile()) continue;
    const at = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    // Images of the store are linked into the directories of machines: those are counted as images.
    if (!at || counted.has(at.ino) || /\.base$/.test(entry.name)) continue;
    counted.add(at.ino);
    const of = relative(directory, entry.parentPath).split(sep)[part] ?? '';
    found.set(of, (found.get(of) ?? 0) + at.blocks * BLOCK_BYTES);
  }
  return found;
}
