/**
 * Whose the files of a VM are: the namespace of the VMI, written into its directory before anything else. A Pod may name
 * the uid of any VMI as its owner; files and processes of that uid are touched for it only where the VMI was seen in the
 * Pod's own namespace, now or when the directory was made.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { instanceReference } from '@coracle/kubevirt/rules/launcher/launcher-owner';
import { isUid, vmDirectoryOf } from '../../disk/vm-directory.ts';
import { writeFileAtomic } from '../../image/atomic-file.ts';
import type { LauncherState } from './launcher-state.ts';

const FILE = 'namespace';

/** Notes whose VM the directory is of. */
export const writeNamespace = (directory: string, namespace: string): Promise<void> =>
  writeFileAtomic(join(directory, FILE), namespace);

/** UID of the VMI whose files this launcher may touch; '' when none was seen in the namespace of its Pod. */
export async function ownUid({ vmiUid, pod, environment }: LauncherState): Promise<string> {
  if (vmiUid !== '' || !pod) return vmiUid;
  const uid = instanceReference(pod)?.uid ?? '';
  if (!isUid(uid)) return '';
  const noted = await readFile(join(vmDirectoryOf(environment.vmsDirectory, uid), FILE), 'utf8').catch(() => undefined);
  return noted !== undefined && noted === pod.metadata.namespace ? uid : '';
}
