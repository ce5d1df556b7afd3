/** A backup that cannot be made, read or restored: one line for whoever asked. */
export class BackupError extends Error {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = 'BackupError';
  }
}
