/** gzip by Node's zlib, on the threads of its pool and for speed, as kube-apiserver compresses. */
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, gzip } from 'node:zlib';
import { type Compressor, gzipBlock } from '@coracle/runtime/http/gzip-blocks';

const gzipBytes = promisify(gzip);
const deflateBytes = promisify(deflateRaw);

const LEVEL = constants.Z_BEST_SPEED;
/** Memory zlib writes into at a time; with its usual 16 KiB a block takes several turns of the event loop. */
const CHUNK_BYTES = 64 * 1024;

export const compressor: Compressor = {
  gzip: (bytes) => gzipBytes(bytes, { level: LEVEL, chunkSize: CHUNK_BYTES }),
  async block(bytes) {
    const options = { level: LEVEL, chunkSize: CHUNK_BYTES, finishFlush: constants.Z_SYNC_FLUSH };
    const deflated = await deflateBytes(bytes, options);
    // What zlib gives is a piece of larger memory.
    return gzipBlock({ bytes: new Uint8Array(deflated), size: bytes.length, crc: crc32(bytes) });
  },
};
