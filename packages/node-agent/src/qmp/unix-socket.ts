/**
 * Connects to a unix socket whose path may be longer than the kernel's 107 bytes: a long path is reached through an
 * open handle of its directory (/proc/self/fd/N/name).
 */
import { type FileHandle, open } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';
import type { Clock } from '@coracle/runtime/clock/clock';
import { awaitConnection } from './await-connection.ts';

const MAX_SUN_PATH = 107;

/** Opens a connection; rejects on refusal, timeout or abort. The signal matters only until it is connected. */
export async function connectUnix(
  path: string,
  options: { readonly clock: Clock; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<Socket> {
  options.signal.throwIfAborted();
  let directory: FileHandle | undefined;
  let target = path;
  if (Buffer.byteLength(path) > MAX_SUN_PATH) {
    directory = await open(dirname(path), 'r');
    target = `/proc/self/fd/${directory.fd}/${basename(path)}`;
  }
  try {
    const socket = createConnection({ path: target });
    const late = `${basename(path)}: no connection within ${options.timeoutMs} ms`;
    await awaitConnection(socket, 'connect', { ...options, late });
    return socket;
  } finally {
    await directory?.close();
  }
}
