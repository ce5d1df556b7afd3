/** Commands in the UEFI shell of a guest, which one without a disk comes to. */
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import type { MessageSocket } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from '../testkit/eventually.ts';
import { collect } from './board.ts';

/** In a namespace of its own: in that of the UEFI specification only its own names may be. */
const VARIABLE = 'CoracleTest -guid 11111111-2222-3333-4444-555555555555';

/** A command that sets the variable, which lasts where variables last. */
export const setVariable = (text: string): string => `setvar ${VARIABLE} -nv -bs =L"${text}"`;
/** A command that prints it. */
export const SHOW_VARIABLE = `setvar ${VARIABLE}`;
/** How it is printed: UTF-16. */
export const shown = (text: string): RegExp =>
  new RegExp([...text].map((letter) => `${letter.charCodeAt(0).toString(16)} 00`).join(' '), 'i');

/**
 * Runs a command in the shell; returns what came since. `isThere`: its prompt was printed long ago, perhaps on another
 * node, and is asked for again.
 */
export async function inUefiShell(
  connect: () => Promise<MessageSocket>,
  command: string,
  { isThere = false }: { readonly isThere?: boolean } = {},
): Promise<string> {
  const socket = await connect();
  const seen = collect(socket);
  const type = (text: string): void => void socket.send(new TextEncoder().encode(text));
  if (isThere) type('\r');
  await seen.has('Shell>');
  if (isThere) await settled(seen.text);
  const before = seen.text().length;
  type(`${command}\r`);
  await eventually('the next prompt', () => seen.text().slice(before).includes('Shell>'));
  socket.close();
  // Without the colours.
  const [first = '', ...parts] = seen.text().slice(before).split('\x1b[');
  return first + parts.map((part) => part.replace(/^[0-9;=]*[A-Za-z]/, '')).join('');
}

/** Nothing comes any more. */
async function settled(text: () => string): Promise<void> {
  let seen = -1;
  while (text().length !== seen) {
    seen = text().length;
    await systemClock.sleep(300, AbortSignal.timeout(10_000));
  }
}
