/**
 * The disk of a volume as a guest sees it, read through all its layers: by a qemu-nbd with limits of memory that opens them
 * read-only and ends with our connection, also when this process is killed. Nothing is written, and nothing is left.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import { programPath } from '@coracle/runtime/process/program';
import { runConfined } from '@coracle/runtime/process/run-confined';
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import type { VolumeDisk } from '../storage/pool.ts';
import { PoolError } from '../storage/pool-error.ts';
import { connectNbd, type NbdClient } from './nbd-client.ts';

/** Of one read: what is in memory for one who downloads. */
const CHUNK_BYTES = 512 * 1024;
const MAX_MEMORY = 1024 ** 3;
/** A slow download of a large disk. */
const LONGEST_MS = 24 * 3_600_000;
const START_MS = 10_000;
const POLL_MS = 10;

export interface OpenDisk {
  readonly bytes: number;
  /** All of it from there on. */
  chunks(from: number): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/** Formats are those of our metadata. The pool says who may write; locks would keep a guest from starting. */
const layers = ({ file, format, backing }: VolumeDisk): object => ({
  driver: format,
  'read-only': true,
  file: { driver: 'file', filename: file, locking: 'off', 'read-only': true },
  ...(format === 'qcow2' && { backing: backing ? layers(backing) : null }),
});

/** Opens it. Throws PoolError `Conflict` where it cannot be read, or the signal's reason. */
export async function openDisk(
  disk: VolumeDisk,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<OpenDisk> {
  const tool = programPath('qemu-nbd');
  if (tool === undefined) throw new PoolError('Conflict', 'this node has no program "qemu-nbd"');
  const directory = await mkdtemp(join(tmpdir(), 'coracle-export-'));
  const path = join(directory, 'disk');
  const life = createLinkedController(signal);
  const server = runConfined(
    [tool, '--read-only', '--shared=1', '--socket', path, '--cache=writeback', `json:${JSON.stringify(layers(disk))}`],
    { cwd: directory, signal: life.signal, timeoutMs: LONGEST_MS, maxMemory: MAX_MEMORY },
  );
  let client: NbdClient | undefined;
  const close = async (): Promise<void> => {
    client?.close();
    life.abort(new Error('the reader is not needed any more'));
    await server;
    life.release();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    let failure: string | undefined;
    void server.then((result) => {
      if (!result.ok) failure = result.message;
    });
    client = await connectNbd(await connected(path, { clock, signal: life.signal, failed: () => failure }));
    // A name that nobody needs any more: were we killed now, nothing would be left.
    await rm(directory, { recursive: true, force: true });
  } catch (error) {
    await close();
    signal.throwIfAborted();
    throw new PoolError('Conflict', `the disk cannot be read: ${(error as Error).message}`);
  }
  const { size, read } = client;
  return {
    bytes: size,
    close,
    async *chunks(from) {
      for (let at = from; at < size; at += CHUNK_BYTES) {
        signal.throwIfAborted();
        yield await read(at, Math.min(CHUNK_BYTES, size - at));
      }
    },
  };
}

async function connected(
  path: string,
  { clock, signal, failed }: { clock: Clock; signal: AbortSignal; failed: () => string | undefined },
): Promise<Socket> {
  const deadline = clock.monotonic() + START_MS;
  for (;;) {
    const socket = connect({ path });
    const error = await new Promise<Error | undefined>((resolve) => {
      socket.once('connect', () => resolve(undefined));
      socket.once('error', resolve);
    });
    if (!error) return socket.on('error', () => {});
    const said = failed();
    if (said !== undefined) throw new Error(said);
    if (clock.monotonic() > deadline) throw error;
    await clock.sleep(POLL_MS, signal);
  }
}
