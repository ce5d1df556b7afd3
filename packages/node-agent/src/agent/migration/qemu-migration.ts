/** Names and settings that both ends of a migration use with their QEMU. */
import { type QmpConnection, QmpError } from '../../qmp/qmp-connection.ts';

/** Of a disk, by the number of its block node. */
export const mirrorExport = (index: number): string => `export-${index}`;
export const mirrorJob = (index: number): string => `mirror-${index}`;
/** The far end of a disk, on the source. */
export const remoteNode = (index: number): string => `remote-${index}`;

/**
 * Events tell where the stream is, the source stops before the switch-over so that mirrors can end, and the target opens
 * its disks only when it is let run.
 */
export async function setCapabilities(
  qmp: QmpConnection,
  options: { readonly autoConverge: boolean; readonly postCopy: boolean },
): Promise<{ readonly obstacle?: never }> {
  await qmp.execute('migrate-set-capabilities', {
    capabilities: [
      { capability: 'events', state: true },
      { capability: 'pause-before-switchover', state: true },
      { capability: 'late-block-activate', state: true },
      { capability: 'auto-converge', state: options.autoConverge },
      { capability: 'postcopy-ram', state: options.postCopy },
    ],
  });
  return {};
}

/**
 * The same where post-copy is requested: without it where QEMU refuses, and then with what QEMU says. The target's
 * refuses where the host does not let it handle page faults (userfaultfd).
 */
export async function tryPostCopy(
  qmp: QmpConnection,
  options: { readonly autoConverge: boolean },
): Promise<{ readonly obstacle?: string }> {
  try {
    await setCapabilities(qmp, { ...options, postCopy: true });
    return {};
  } catch (error) {
    if (!(error instanceof QmpError && error.failure === 'refused')) throw error;
    await setCapabilities(qmp, { ...options, postCopy: false });
    return { obstacle: error.message };
  }
}
