/** QEMU's stream of memory and devices to a file, through a unix socket in the directory of the VM. */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createDeferred } from '../../../base/signal/deferred.ts';
import { VM_FILES } from '../../qemu/argv.ts';
import { listenUnix } from '../migration/unix-listener.ts';

/** Written at once; what is on its way between QEMU and the file is a few of these. */
const CHUNK_BYTES = 1024 * 1024;

export interface ReceivedStream {
  /** For QEMU's `migrate`. */
  readonly uri: string;
  /** All is in the file, and on the disk. */
  readonly done: Promise<void>;
  /** Rejects when it cannot be written. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

/** Takes one stream into the new file `path`, mode 0600, `limit` bytes at most. */
export async function receiveStream(
  directory: string,
  { path, limit }: { readonly path: string; readonly limit: number },
): Promise<ReceivedStream> {
  const done = createDeferred();
  const failed = createDeferred<never>();
  done.promise.catch(() => {});
  failed.promise.catch(() => {});
  let taken = false;
  const listener = await listenUnix(directory, VM_FILES.saveOut, (socket) => {
    if (taken) {
      socket.destroy();
      return;
    }
    taken = true;
    let bytes = 0;
    const counted = async function* (): AsyncGenerator<Buffer> {
      for await (const chunk of socket as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > limit) throw new Error(`QEMU writes more than the ${limit} bytes that its guest can be`);
        yield chunk;
      }
    };
    const file = createWriteStream(path, { flags: 'wx', mode: 0o600, highWaterMark: CHUNK_BYTES });
    pipeline(counted, file).then(
      () => done.resolve(),
      (error: Error) => {
        done.reject(error);
        failed.reject(error);
      },
    );
  });
  return {
    uri: `unix:${VM_FILES.saveOut}`,
    done: done.promise,
    failed: failed.promise,
    async close() {
      await listener.close();
      done.reject(new Error('the stream was given up'));
    },
  };
}
