/** Commands in a guest, over its console. */
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Board, collect } from './board.ts';

/** Logs in on the console, where nobody is yet, and runs one command; returns what came since. */
export async function inGuest(board: Pick<Board, 'connect'>, name: string, command: string): Promise<string> {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const socket = await board.connect(`${name}/console?backlog=true`);
  const seen = collect(socket);
  // The shell asks for the place of the cursor behind its prompt.
  const isAt = (prompt: string): boolean => seen.text().replaceAll('\x1b[6n', '').trimEnd().endsWith(prompt);
  await eventually('a prompt', () => isAt('login:') || isAt(':~#'));
  if (isAt('login:')) {
    socket.send(bytes('root\n'));
    await eventually('a shell', () => isAt(':~#'));
  }
  const before = seen.text().length;
  const mark = `end-${systemClock.monotonic()}`;
  socket.send(bytes(`${command}; echo ${mark.replace('-', "-''")}\n`));
  await seen.has(mark);
  socket.close();
  return seen.text().slice(before);
}
