/** Directories of VMs: named by UID only, owned by us, closed to everybody else. */
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** True for UIDs as the API server makes them: the only text that may name a directory here. */
export const isUid = (text: string): boolean => UID.test(text);

/** The directory of a VM, without making it. Throws on anything that is not a UID. */
export function vmDirectoryOf(root: string, uid: string): string {
  if (!isUid(uid)) throw new Error(`${JSON.stringify(uid.slice(0, 64))} is not a UID`);
  return join(root, uid);
}

/** Makes the directory of a VM, mode 0700; one that is there must be a real directory of ours. */
export async function openVmDirectory(root: string, uid: string): Promise<string> {
  const path = vmDirectoryOf(root, uid);
  await mkdir(root, { recursive: true, mode: 0o700 });
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o077) !== 0)
    throw new Error(`${path} is not a directory owned by this user with mode 0700; it is not used`);
  return path;
}

/** UIDs that have a directory. */
export async function listVmDirectories(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => [] as string[]);
  return names.filter(isUid);
}

/** Removes the directory of a VM with all its disks. */
export async function removeVmDirectory(root: string, uid: string): Promise<void> {
  await rm(vmDirectoryOf(root, uid), { recursive: true, force: true });
}
