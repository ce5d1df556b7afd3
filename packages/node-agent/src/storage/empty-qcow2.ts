/**
 * An empty qcow2 image, as bytes (QEMU docs/interop/qcow2): what `qemu-img create` makes, without a process and the
 * flushes between its writes, which a snapshot would wait for.
 *
 *     cluster 0       1               2               3 ...
 *     header, names | refcount table | refcount block | L1 table, all zero: nothing is allocated
 */
import type { VolumeFormat } from '@coracle/cluster-rules/storage/pool-calls';

const CLUSTER_BITS = 16;
const CLUSTER = 2 ** CLUSTER_BITS;
/** Bytes of the disk behind one entry of the L1 table: an L2 table of one cluster, 8 bytes for each cluster of data. */
const BYTES_PER_L1_ENTRY = (CLUSTER / 8) * CLUSTER;
/** Most entries of an L1 table that QEMU opens: 32 MiB of them. */
const MAX_L1_ENTRIES = (32 * 1024 * 1024) / 8;
const HEADER_BYTES = 104;
const FORMAT_EXTENSION = 0xe2792aca;
/** Longest name of a backing file, in bytes. */
const MAX_NAME = 1023;

export interface EmptyQcow2 {
  /** What a guest sees. */
  readonly bytes: number;
  /** The image below: its name as it stands in the header, relative to the image itself. */
  readonly backing?: { readonly name: string; readonly format: VolumeFormat };
}

export interface ImageBytes {
  /** Length of the file; what is not written is zero. */
  readonly length: number;
  readonly parts: readonly { readonly at: number; readonly bytes: Uint8Array }[];
}

/** The file. Throws RangeError for a disk or a name that the format has no room for. */
export function emptyQcow2({ bytes, backing }: EmptyQcow2): ImageBytes {
  const l1Entries = Math.ceil(bytes / BYTES_PER_L1_ENTRY);
  if (l1Entries > MAX_L1_ENTRIES) throw new RangeError(`a qcow2 image has no room for ${bytes} bytes`);
  const clusters = 3 + Math.max(1, Math.ceil((l1Entries * 8) / CLUSTER));
  const table = Buffer.alloc(8);
  table.writeBigUInt64BE(BigInt(2 * CLUSTER));
  // 16 bits for each cluster of the file.
  const counts = Buffer.alloc(2 * clusters);
  for (let cluster = 0; cluster < clusters; cluster++) counts.writeUInt16BE(1, 2 * cluster);
  return {
    length: clusters * CLUSTER,
    parts: [
      { at: 0, bytes: headerOf({ bytes, l1Entries, backing }) },
      { at: CLUSTER, bytes: table },
      { at: 2 * CLUSTER, bytes: counts },
    ],
  };
}

function headerOf({
  bytes,
  l1Entries,
  backing,
}: {
  readonly bytes: number;
  readonly l1Entries: number;
  readonly backing: EmptyQcow2['backing'];
}): Buffer {
  const name = Buffer.from(backing?.name ?? '');
  if (name.length > MAX_NAME) throw new RangeError(`the name of a backing file has at most ${MAX_NAME} bytes`);
  const format = Buffer.from(backing?.format ?? '');
  const extensionBytes = backing ? 8 + Math.ceil(format.length / 8) * 8 : 0;
  const nameAt = HEADER_BYTES + extensionBytes + 8;
  const header = Buffer.alloc(nameAt + name.length);
  header.write('QFI\xfb', 0, 'latin1');
  header.writeUInt32BE(3, 4); // version
  if (backing) {
    header.writeBigUInt64BE(BigInt(nameAt), 8);
    header.writeUInt32BE(name.length, 16);
  }
  header.writeUInt32BE(CLUSTER_BITS, 20);
  header.writeBigUInt64BE(BigInt(bytes), 24);
  header.writeUInt32BE(l1Entries, 36);
  header.writeBigUInt64BE(BigInt(3 * CLUSTER), 40); // L1 table
  header.writeBigUInt64BE(BigInt(CLUSTER), 48); // refcount table
  header.writeUInt32BE(1, 56); // clusters of the refcount table
  header.writeUInt32BE(4, 96); // 2^4 bits for a refcount
  header.writeUInt32BE(HEADER_BYTES, 100);
  if (backing) {
    header.writeUInt32BE(FORMAT_EXTENSION, HEADER_BYTES);
    header.writeUInt32BE(format.length, HEADER_BYTES + 4);
    format.copy(header, HEADER_BYTES + 8);
  }
  // Eight zero bytes end the extensions; the name follows.
  name.copy(header, nameAt);
  return header;
}
