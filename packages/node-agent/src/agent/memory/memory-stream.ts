/**
 * QEMU's stream of memory and devices to a file, through a unix socket in the directory of the VM: QEMU's sandbox forbids
 * it to start a program, and we can hand it none of our descriptors.
 */
import { socketToFile } from '@coracle/runtime/process/socket-to-file';
import { createDeferred } from '@coracle/runtime/signal/deferred';
import { VM_FILES } from '../../qemu/argv.ts';
import { listenUnix } from '../migration/unix-listener.ts';

export interface ReceivedStream {
  /** For QEMU's `migrate`. */
  readonly uri: string;
  /** All is in the file. */
  readonly done: Promise<void>;
  /** Rejects when it cannot be written. */
  readonly failed: Promise<never>;
  close(): Promise<void>;
}

/** Takes one stream into the new file `path`, mode 0600, less than `limit` bytes (rounded up to a MiB). */
export async function receiveStream(
  directory: string,
  { path, limit }: { readonly path: string; readonly limit: number },
): Promise<ReceivedStream> {
  const done = createDeferred();
  const failed = createDeferred<never>();
  const over = new AbortController();
  const fail = (error: Error): void => {
    done.reject(error);
    failed.reject(error);
  };
  let taken = false;
  const listener = await listenUnix(
    directory,
    VM_FILES.saveOut,
    (socket) => {
      if (taken) {
        socket.destroy();
        return;
      }
      taken = true;
      socketToFile(socket, { path, limit, signal: over.signal }).then(
        () => done.resolve(),
        (error: Error) => fail(new Error(`what QEMU writes is not saved: ${error.message}`)),
      );
    },
    { paused: true },
  );
  return {
    uri: `unix:${VM_FILES.saveOut}`,
    done: done.promise,
    failed: failed.promise,
    async close() {
      fail(new Error('the stream was given up'));
      over.abort();
      await listener.close();
    },
  };
}
