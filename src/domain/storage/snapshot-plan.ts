/** Names of snapshots: of contents that are made for VolumeSnapshots, and of snapshots in pools. */

/** `POOL/HANDLE`: what `snapshotHandle` of a VolumeSnapshotContent holds. */
export const snapshotHandleIn = (pool: string, handle: string): string => `${pool}/${handle}`;

/** Pool and handle of a `snapshotHandle`; undefined for one that is not ours. */
export function poolOfHandle(snapshotHandle: string | undefined): { pool: string; handle: string } | undefined {
  const [pool = '', handle = '', ...more] = (snapshotHandle ?? '').split('/');
  return pool === '' || handle === '' || more.length > 0 ? undefined : { pool, handle };
}
