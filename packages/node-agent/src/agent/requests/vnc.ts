/**
 * The screen of a guest: its VNC stream, and one picture of it. As upstream, one client has the screen; the next takes
 * it over, unless it asks to leave a session alone.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { MessageSocket } from '@coracle/runtime/http/seam';
import { VM_FILES } from '../../qemu/argv.ts';
import { connectUnix } from '../../qmp/unix-socket.ts';
import type { Guest } from '../guest/guest.ts';
import { pngOfPixmap } from './png.ts';
import { joinTo } from './port-tunnel.ts';

const CONNECT_MS = 5000;
const NORMAL = 1000;
/** A client that never finishes its handshake leaves the line to nobody. */
const CLAIM_MS = 10_000;
/** A screen of 8192 by 4096 is larger than any adapter here shows. */
const MAX_PICTURE_BYTES = 128 * 1024 * 1024;

/** The client that has the screen of each guest. */
const sessions = new WeakMap<Guest, MessageSocket>();

export interface VncOptions {
  readonly directory: string;
  readonly clock: Clock;
  readonly preserveSession: boolean;
  readonly signal: AbortSignal;
}

/** Opens a session; the result takes the client. Throws ApiError when there is no screen, or another client keeps it. */
export async function openVnc(guest: Guest, options: VncOptions): Promise<(socket: MessageSocket) => void> {
  const { directory, clock, preserveSession, signal } = options;
  checkScreen(guest);
  if (preserveSession && sessions.has(guest)) throw serviceUnavailable('Active VNC connection. Request denied.');
  const line = await connectUnix(join(directory, VM_FILES.vnc), { clock, timeoutMs: CONNECT_MS, signal });
  line.on('error', () => {});
  const unclaimed = clock.schedule(CLAIM_MS, () => line.destroy());
  return (socket) => {
    unclaimed();
    sessions.get(guest)?.close(NORMAL, 'another client has taken over the screen');
    sessions.set(guest, socket);
    line.once('close', () => {
      if (sessions.get(guest) === socket) sessions.delete(guest);
    });
    joinTo(socket, line, { clock });
  };
}

const serviceUnavailable = (message: string): ApiError =>
  new ApiError({ code: 503, reason: 'ServiceUnavailable', message });

/** A PNG of what the screen shows. Throws ApiError when there is none, QmpError when QEMU has no picture. */
export async function screenshot(
  guest: Guest,
  { directory, moveCursor }: { readonly directory: string; readonly moveCursor: boolean },
): Promise<Uint8Array> {
  checkScreen(guest);
  const qemu = guest.qmp();
  if (moveCursor) {
    // Wakes a screen that went dark. A machine without a pointer stays as it is.
    const events = ['x', 'y'].map((axis) => ({ type: 'rel', data: { axis, value: 1 } }));
    await qemu.execute('input-send-event', { events }).catch(() => {});
  }
  const file = join(directory, `screen-${randomUUID()}.ppm`);
  try {
    await qemu.execute('screendump', { filename: file });
    const pixmap = await readFile(file);
    if (pixmap.length > MAX_PICTURE_BYTES) throw badRequest('the screen is too large for a picture');
    return await pngOfPixmap(pixmap);
  } finally {
    await rm(file, { force: true });
  }
}

function checkScreen(guest: Guest): void {
  if (!guest.hasScreen) throw badRequest('No graphics devices are present.');
}
