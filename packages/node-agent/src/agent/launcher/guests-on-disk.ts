/**
 * The guests that run from the directories of a host's nodes, whether or not somebody serves them: found from their
 * records and the process list alone, for `status` and `down`. Nothing is changed here.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { listVmDirectories, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { agentAt } from '../registration/agent-lock.ts';
import { findQemu } from './adopt.ts';
import { readRecord, type VmRecord } from './vm-record.ts';

/** A QEMU that runs from the directory of a VM. */
export interface GuestOnDisk {
  readonly node: string;
  readonly nodeDirectory: string;
  /** UID of the VMI. */
  readonly uid: string;
  readonly directory: string;
  readonly process: ProcessIdentity;
  /** Absent where it is missing or cannot be read: no agent looks after such a guest. */
  readonly record?: VmRecord;
  /** The process that works in the node's directory. */
  readonly agent?: ProcessIdentity;
}

/** `NAMESPACE/NAME` of the guest, or its UID where no record tells. */
export const nameOfGuest = ({ record, uid }: GuestOnDisk): string =>
  record ? `${record.namespace}/${record.name}` : `guest ${uid}`;

/** Every QEMU below `nodesDirectory`, in the order of nodes and UIDs. A directory that is missing has none. */
export async function findGuestsOnDisk(nodesDirectory: string): Promise<GuestOnDisk[]> {
  const entries = await readdir(nodesDirectory, { withFileTypes: true }).catch(() => []);
  const found: GuestOnDisk[] = [];
  for (const node of entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort()) {
    const nodeDirectory = join(nodesDirectory, node);
    const vms = join(nodeDirectory, 'vms');
    const agent = await agentAt(nodeDirectory);
    for (const uid of (await listVmDirectories(vms)).sort()) {
      const read = await readRecord(vms, uid);
      const record = typeof read === 'string' ? undefined : read;
      const known = record?.process && (await isRunning(record.process)) ? record.process : undefined;
      // A record may be older than its process, or tell of one that was replaced: the process list decides.
      const process = known ?? (await findQemu(vms, uid));
      if (process)
        found.push({
          node,
          nodeDirectory,
          uid,
          directory: vmDirectoryOf(vms, uid),
          process,
          ...(record && { record }),
          ...(agent && { agent }),
        });
    }
  }
  return found;
}
