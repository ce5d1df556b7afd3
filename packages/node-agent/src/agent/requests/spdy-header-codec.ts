/** The header blocks of a SPDY session, compressed and not. */
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from 'node:zlib';
import { SPDY_DICTIONARY } from './spdy-dictionary.ts';

/** Header blocks of each direction are one zlib stream, flushed after each block. */
export function createHeaderCodec() {
  const inflate = createInflate({ dictionary: SPDY_DICTIONARY });
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY, flush: constants.Z_SYNC_FLUSH });
  return {
    read: (block: Uint8Array): Promise<Buffer> => pass(inflate, block),
    write: (block: Uint8Array): Promise<Buffer> => pass(deflate, block),
    close: (): void => {
      inflate.destroy();
      deflate.destroy();
    },
  };
}

/** Bytes one header block may become: a short one must not fill the memory. */
const MAX_HEADERS = 64 * 1024;

function pass(codec: Inflate | Deflate, block: Uint8Array): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_HEADERS) codec.destroy(new Error('headers are too long'));
    };
    const done = (error?: Error | null): void => {
      codec.off('data', onData);
      codec.off('error', done);
      codec.off('close', closed);
      if (error) reject(error);
      else resolve(Buffer.concat(chunks));
    };
    const closed = (): void => done(new Error('the session has ended'));
    codec.on('data', onData);
    codec.once('error', done);
    codec.once('close', closed);
    codec.write(block, (error) => {
      if (error) done(error);
      else codec.flush(constants.Z_SYNC_FLUSH, () => done());
    });
  });
}
