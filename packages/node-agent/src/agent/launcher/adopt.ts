/**
 * What an earlier agent left in the directories of VMs: read before anything of the API is believed. Nothing is killed
 * or started here.
 */
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { findProcesses, identify, isRunning, type ProcessIdentity } from '@coracle/runtime/process/identity';
import { listVmDirectories, removeVmDirectory, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { endTpm } from '../../tpm/swtpm.ts';
import { readRecord, type VmRecord, writeRecord } from './vm-record.ts';

/** The QEMU of a VMI by its argument vector, which names the pid file in its directory. */
export async function findQemu(vmsDirectory: string, vmiUid: string): Promise<ProcessIdentity | undefined> {
  const pidFile = join(vmDirectoryOf(vmsDirectory, vmiUid), VM_FILES.pid);
  const [pid] = await findProcesses((argv) => argv.some((word, i) => word === '-pidfile' && argv[i + 1] === pidFile));
  return pid === undefined ? undefined : identify(pid);
}

/** Records to resume: those with a process, a result, or from before a restart of the host. */
export async function findRecords(
  vmsDirectory: string,
  options: { readonly bootId: string; readonly clock: Clock; readonly log: Logger; readonly signal: AbortSignal },
): Promise<VmRecord[]> {
  const records: VmRecord[] = [];
  // Of a start that broke off between its TPM and its QEMU, the TPM still waits.
  const clear = async (uid: string): Promise<void> => {
    await endTpm(vmDirectoryOf(vmsDirectory, uid), options);
    await removeVmDirectory(vmsDirectory, uid);
  };
  for (const uid of await listVmDirectories(vmsDirectory)) {
    const record = await readRecord(vmsDirectory, uid);
    if (record === 'damaged') {
      const orphan = await findQemu(vmsDirectory, uid);
      options.log.error('record of a guest is damaged; it is left alone', { uid, pid: orphan?.pid });
      continue;
    }
    if (record === 'missing') {
      // Preparation broke off before anything was started.
      if (!(await findQemu(vmsDirectory, uid))) await clear(uid);
      else options.log.error('a guest runs without a record; it is left alone', { uid });
      continue;
    }
    const isOver = record.result || record.bootId !== options.bootId;
    if (isOver || (record.process && (await isRunning(record.process)))) {
      records.push(record);
      continue;
    }
    // The agent may have ended between spawn and the record of it.
    const found = record.process ? undefined : await findQemu(vmsDirectory, uid);
    if (found) {
      const completed = { ...record, process: found };
      await writeRecord(vmsDirectory, completed);
      records.push(completed);
    } else if (record.process) records.push(record);
    else await clear(uid);
  }
  return records;
}
