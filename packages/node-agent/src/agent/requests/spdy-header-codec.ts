/** The header blocks of a SPDY session, compressed and not. */
import { constants, createDeflate, createInflate, type Deflate, type Inflate } from 'node:zlib';

/** Written with their length before them. */
const WORDS = [
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow',
  'authorization cache-control connection content-base content-encoding content-language content-length',
  'content-location content-md5 content-range content-type date etag expect expires from host if-match',
  'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma',
  'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade',
  'user-agent vary via warning www-authenticate method get status',
]
  .join(' ')
  .split(' ')
  .concat(['200 OK', 'version', 'HTTP/1.1', 'url', 'public', 'set-cookie', 'keep-alive', 'origin']);

const TAIL = [
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505',
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized',
  '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable',
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT',
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,',
  'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.',
].join('');

/** The dictionary of the protocol (draft-mbelshe-httpbis-spdy-00, 2.6.10.1), byte for byte: 1423 bytes, Adler-32 e3c6a7c2. */
export const SPDY_DICTIONARY: Buffer = Buffer.concat([
  ...WORDS.map((word) => {
    const bytes = Buffer.alloc(4 + word.length);
    bytes.writeUInt32BE(word.length, 0);
    bytes.write(word, 4, 'latin1');
    return bytes;
  }),
  Buffer.from(TAIL, 'latin1'),
]);

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
