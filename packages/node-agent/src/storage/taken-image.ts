/** A file below the pool's directory that nobody writes to any more. */
export interface TakenImage {
  readonly file: string;
  readonly format: 'raw' | 'qcow2';
  readonly bytes: number;
  readonly mode: 'Filesystem' | 'Block';
}
