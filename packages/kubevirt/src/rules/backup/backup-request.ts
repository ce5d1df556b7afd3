/**
 * What the controller of backups asks of the agent that has the guest, by `PUT virtualmachineinstances/NAME/backup`:
 * upstream's BackupOptions, and what an agent here needs beside them.
 */
export interface BackupRequest {
  readonly backupName: string;
  /** UID of the VirtualMachineBackup: what its files are named by. */
  readonly backupUid?: string;
  readonly cmd: 'Start' | 'Abort';
  readonly mode?: 'Push';
  /** RFC 3339. */
  readonly backupStartTime?: string;
  /** Checkpoint that the backup builds on. */
  readonly incremental?: string;
  readonly skipQuiesce?: boolean;
  /** Handle of the volume that receives the backup: UID of its claim. */
  readonly targetPath?: string;
  /** Name of the checkpoint that this backup makes. */
  readonly checkpoint?: string;
  /** The checkpoint is kept for the next backup, and the one it builds on goes. */
  readonly keepsCheckpoint?: boolean;
  /** Most bytes that the backup may take: what the claim was given. */
  readonly maxBytes?: number;
}

/** Name of the checkpoint of a backup: it is the same however often it is asked for. */
export const checkpointNameOf = (backup: { readonly name: string; readonly uid: string }): string =>
  `${backup.name}-${backup.uid}`;
