/**
 * The screen of a guest: its VNC stream, and one picture of it. As upstream, one client has the screen; the next takes
 * it over, unless it asks to leave a session alone.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rm, stat } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { VM_FILES } from '../../qemu/argv.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';
import type { Guest } from '../guest/guest.ts';
import { pngOfPixmap } from './png.ts';
import { tunnel } from './port-tunnel.ts';

const CONNECT_MS = 5000;
const NORMAL = 1000;
const TRY_AGAIN_LATER = 1013;
/** A client that never finishes its handshake leaves the line, and the screen it reserved, to nobody. */
const CLAIM_MS = 10_000;
/** A screen of 8192 by 4096 is larger than any adapter here shows. */
const MAX_PICTURE_BYTES = 128 * 1024 * 1024;
/** Pictures made at once by one agent: each is in memory up to three times. */
const MAX_PICTURES = 4;

const ACTIVE = 'Active VNC connection. Request denied.';

/** What an agent is asked about the screen of one guest; `hasScreen` says whether it was started with one. */
export type ScreenOwner = Pick<Guest, 'hasScreen' | 'signal' | 'qmp'>;

/** What ends the hold of the client that has the screen of a guest. */
const sessions = new WeakMap<ScreenOwner, (reason: string) => void>();

interface VncOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly preserveSession: boolean;
  /** Matters until the connection to QEMU is made. */
  readonly signal: AbortSignal;
}

/**
 * Opens a session; the result takes the client. Throws ApiError 400 when there is no screen, 503 when another client
 * keeps it, 500 when QEMU does not let us in. The session ends with the client, the guest, or the next client.
 */
export async function openVnc(guest: ScreenOwner, options: VncOptions): Promise<(socket: MessageSocket) => void> {
  const { directory, clock, preserveSession, signal } = options;
  checkScreen(guest);
  if (preserveSession && sessions.has(guest)) throw serviceUnavailable(ACTIVE);
  let client: MessageSocket | undefined;
  let line: Socket | undefined;
  const end = (reason: string): void => {
    client?.close(NORMAL, reason);
    line?.destroy();
  };
  const release = (): void => {
    if (sessions.get(guest) === end) sessions.delete(guest);
  };
  // Of two that both leave others alone, one comes first.
  if (preserveSession) sessions.set(guest, end);
  try {
    line = await connectUnix(join(directory, VM_FILES.vnc), { clock, timeoutMs: CONNECT_MS, signal });
  } catch (error) {
    release();
    signal.throwIfAborted();
    throw unreachable(error);
  }
  const open = line;
  const guestEnded = (): void => end('the guest has ended');
  guest.signal.addEventListener('abort', guestEnded, { once: true });
  const unclaimed = clock.schedule(CLAIM_MS, () => open.destroy());
  open.on('error', () => {});
  open.once('close', () => {
    guest.signal.removeEventListener('abort', guestEnded);
    unclaimed();
    release();
  });
  if (guest.signal.aborted) guestEnded();
  return (socket) => {
    unclaimed();
    const before = sessions.get(guest);
    if (preserveSession && before !== undefined && before !== end) open.destroy();
    if (open.destroyed) return socket.close(TRY_AGAIN_LATER, before === undefined ? 'QEMU has hung up' : ACTIVE);
    if (before !== end) before?.('another client has taken over the screen');
    sessions.set(guest, end);
    client = socket;
    tunnel(socket, open, { clock });
  };
}

const serviceUnavailable = (message: string): ApiError =>
  new ApiError({ code: 503, reason: 'ServiceUnavailable', message });

function unreachable(cause: unknown): ApiError {
  const { code } = cause as NodeJS.ErrnoException;
  const message =
    code === 'ENOENT'
      ? 'this guest was started without a VNC socket, by an older version: stop the machine and start it again to have its screen'
      : `QEMU does not answer on its VNC socket (${code ?? 'no connection in time'})`;
  return new ApiError({ code: 500, reason: 'InternalError', message }, { cause });
}

let picturesBeingMade = 0;

/**
 * A PNG of what the screen shows. Throws ApiError when there is none, or too many are made already, QmpError when QEMU
 * has no picture.
 */
export async function screenshot(
  guest: ScreenOwner,
  { directory, moveCursor }: { readonly directory: string; readonly moveCursor: boolean },
): Promise<Uint8Array> {
  checkScreen(guest);
  if (picturesBeingMade >= MAX_PICTURES)
    throw serviceUnavailable(`this node makes ${MAX_PICTURES} pictures of screens already: try again`);
  const file = join(directory, `screen-${randomUUID()}.ppm`);
  picturesBeingMade++;
  try {
    const qemu = guest.qmp();
    if (moveCursor) {
      // Wakes a screen that went dark. A machine without a pointer stays as it is.
      const events = ['x', 'y'].map((axis) => ({ type: 'rel', data: { axis, value: 1 } }));
      await qemu.execute('input-send-event', { events }).catch(() => {});
    }
    await qemu.execute('screendump', { filename: file });
    // The guest says how large it is.
    if ((await stat(file)).size > MAX_PICTURE_BYTES) throw badRequest('the screen is too large for a picture');
    return await pngOfPixmap(await readFile(file));
  } finally {
    picturesBeingMade--;
    await rm(file, { force: true });
  }
}

function checkScreen(guest: ScreenOwner): void {
  if (!guest.hasScreen) throw badRequest('No graphics devices are present.');
}
