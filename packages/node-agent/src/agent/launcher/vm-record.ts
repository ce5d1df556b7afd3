/**
 * The record of one VM on disk: written before QEMU is spawned, completed after, read by the next agent. A record that
 * cannot be read is never acted upon.
 */
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskPause } from '@coracle/kubevirt/rules/machine/disk-room';
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';
import type { SourcePhase, TargetPhase } from '@coracle/kubevirt/rules/migration/migration-steps';
import type { ProcessIdentity } from '@coracle/runtime/process/identity';
import { isUid } from '../../disk/vm-directory.ts';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import type { DiskFile } from '../../qemu/argv.ts';
import type { VmResult } from './vm-result.ts';

/**
 * This end of a live migration, written before each step that cannot be taken back; absent while the guest is an ordinary
 * one. What the phases mean: `kubevirt/rules/migration/migration-steps.ts`.
 */
export type MigrationRecord = {
  /** UID of the VirtualMachineInstanceMigration. */
  readonly uid: string;
  readonly peerNode: string;
  /** The guest ran, or was paused by its user, when it was sent. */
  readonly wasRunning: boolean;
  /** The other end holds the same loopback address, on the same host: it is not given back with our files. */
  readonly sharesAddress: boolean;
  /** Goes on to post-copy: the guest is handed over before all of its memory is. */
  readonly postCopy?: boolean;
} & (
  | { readonly role: 'source'; readonly phase: SourcePhase }
  | { readonly role: 'target'; readonly phase: TargetPhase }
);

/** A volume of a pool that a guest has. */
export interface GuestVolume {
  readonly handle: string;
  /** Absolute paths. */
  readonly files: readonly string[];
}

export interface VmRecord {
  readonly version: 1;
  readonly node: string;
  readonly vmiUid: string;
  readonly podUid: string;
  readonly namespace: string;
  /** Name of the VMI. */
  readonly name: string;
  readonly podName: string;
  readonly address: string;
  readonly bootId: string;
  /** ms since the epoch. */
  readonly startedAt: number;
  readonly plan: MachinePlan;
  /** SHA-256 of the argument vector. */
  readonly argvDigest: string;
  /** Image ids by container name, for the Pod's status. */
  readonly imageIds: Readonly<Record<string, string>>;
  /** Declared ports that could not be forwarded. */
  readonly portProblems: readonly string[];
  /** How long the guest may take to shut down; absent in records of versions before it was kept. */
  readonly graceSeconds?: number;
  /** Absolute paths of what the guest has open outside its own directory: images of claims and of the host. */
  readonly files?: readonly string[];
  /** Name of the disk -> the volume of the node's pool, and its layers from the top down as the guest has them open. */
  readonly volumes?: Readonly<Record<string, GuestVolume>>;
  /** Why the agent, and nobody else, has paused the guest. */
  readonly diskPause?: DiskPause;
  /** Its disks by name; absent in records of versions before it was kept. */
  readonly disks?: Readonly<Record<string, DiskFile>>;
  /** Its memory is being saved: it stands still for that, and runs on after it if it ran. */
  readonly saving?: { readonly state: string };
  /** It goes on from a saved state, and does not run yet. */
  readonly resuming?: { readonly state: string; readonly ticket: string };
  /** Absent until QEMU was spawned. */
  readonly process?: ProcessIdentity;
  readonly migration?: MigrationRecord;
  readonly result?: VmResult;
  readonly finishedAt?: number;
}

const FILE = 'record.json';
/** Tombstones kept of Pods that have ended. */
const MAX_ENDED = 2000;

/** Replaces the record in the directory of its VM. */
export const writeRecord = (vmsDirectory: string, record: VmRecord): Promise<void> =>
  writeFileAtomic(join(vmsDirectory, record.vmiUid, FILE), JSON.stringify(record));

/** Replaces the record of a launcher, on disk first. */
export async function keepRecord(
  launcher: { readonly environment: { readonly vmsDirectory: string }; record: VmRecord | undefined },
  record: VmRecord,
): Promise<void> {
  await writeRecord(launcher.environment.vmsDirectory, record);
  launcher.record = record;
}

/** For a guest that never ran: it is started as if for the first time. */
export const removeRecord = (vmsDirectory: string, vmiUid: string): Promise<void> =>
  rm(join(vmsDirectory, vmiUid, FILE), { force: true });

/** 'missing' when there is none, 'damaged' when it is not what we wrote for this VM. */
export async function readRecord(vmsDirectory: string, vmiUid: string): Promise<VmRecord | 'missing' | 'damaged'> {
  let text: string;
  try {
    text = await readFile(join(vmsDirectory, vmiUid, FILE), 'utf8');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'missing' : 'damaged';
  }
  try {
    const record = JSON.parse(text) as VmRecord;
    const sound =
      record.version === 1 &&
      record.vmiUid === vmiUid &&
      isUid(record.podUid) &&
      typeof record.address === 'string' &&
      typeof record.bootId === 'string' &&
      typeof record.plan?.uuid === 'string' &&
      (record.process === undefined ||
        (Number.isInteger(record.process.pid) && typeof record.process.startTime === 'string'));
    return sound ? record : 'damaged';
  } catch {
    return 'damaged';
  }
}

/**
 * Opens (makes) the directory of tombstones, which say of Pods that they have ended here: their UIDs are never started
 * again. The oldest go when there are too many.
 */
export async function openTombstones(directory: string) {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const names = (await readdir(directory)).filter(isUid);
  if (names.length > MAX_ENDED) {
    const aged = await Promise.all(
      names.map(async (name) => ({ name, at: (await stat(join(directory, name))).mtimeMs })),
    );
    aged.sort((a, b) => a.at - b.at);
    for (const { name } of aged.slice(0, aged.length - MAX_ENDED)) await rm(join(directory, name), { force: true });
  }
  return {
    async has(podUid: string): Promise<VmResult | undefined> {
      if (!isUid(podUid)) return undefined;
      try {
        return JSON.parse(await readFile(join(directory, podUid), 'utf8')) as VmResult;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        // Damaged, but there: the Pod has ended.
        return { phase: 'Failed', reason: 'Ended', message: 'the guest has ended before', exitCode: 1 };
      }
    },
    async add(podUid: string, result: VmResult): Promise<void> {
      if (isUid(podUid)) await writeFileAtomic(join(directory, podUid), JSON.stringify(result));
    },
  };
}

export type Tombstones = Awaited<ReturnType<typeof openTombstones>>;
