/**
 * What comes from a socket, into a file, by a process of its own (`dd`): in this one every piece would cost a turn of the
 * event loop and of the thread pool, six times the processor time.
 */
import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { plainEnv } from './run.ts';

/** Written at once; all that is on its way between the two. */
const CHUNK_BYTES = 1024 * 1024;
/** Of what `dd` says, its last words. */
const MAX_SAID = 1000;

/**
 * Copies to the new file `path`, mode 0600, until the other side ends; `socket` is paused, nothing was read from it, and it
 * is closed afterwards. Throws when the file is there already or cannot be written, when `limit` bytes (rounded up to a
 * MiB) or more come, and when the signal aborts; what was written is left then.
 */
export async function socketToFile(
  socket: Socket,
  { path, limit, signal }: { readonly path: string; readonly limit: number; readonly signal: AbortSignal },
): Promise<void> {
  try {
    const file = await open(path, 'wx', 0o600);
    try {
      const most = Math.ceil(limit / CHUNK_BYTES);
      const amount = [`bs=${CHUNK_BYTES}`, 'iflag=fullblock', `count=${most}`, 'status=none'];
      const child = spawn('dd', amount, { env: plainEnv(), stdio: [socket, file.fd, 'pipe'], signal });
      let said = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-MAX_SAID);
      });
      await new Promise<void>((resolve, reject) => {
        child.once('error', reject);
        child.once('spawn', () => socket.destroy());
        child.once('close', (code) =>
          code === 0 ? resolve() : reject(new Error(`dd ended with ${code}${said && `: ${said.trim()}`}`)),
        );
      });
      // It was cut off there.
      if ((await file.stat()).size >= most * CHUNK_BYTES) throw new Error(`there are more than ${limit} bytes`);
    } finally {
      await file.close();
    }
  } finally {
    socket.destroy();
  }
}
