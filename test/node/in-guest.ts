/** Commands in a guest, over its console, or by its agent. */
import { join } from 'node:path';
import { runInGuest } from '../../packages/node-agent/src/agent/probes/guest-command.ts';
import { VM_FILES } from '../../packages/node-agent/src/qemu/argv.ts';
import { createGuestAgent, type GuestAgent } from '../../packages/node-agent/src/qmp/guest-agent.ts';
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

/** The agent of a guest, for one conversation after the other: QEMU takes one client of the port at a time. */
export async function guestAgentOf(board: Pick<Board, 'vmi' | 'directory'>, name: string): Promise<GuestAgent> {
  const { uid = '' } = (await board.vmi(name)).metadata;
  const path = join(board.directory, 'node/vms', uid, VM_FILES.guestAgent);
  return createGuestAgent(path, { clock: systemClock, signal: AbortSignal.timeout(120_000) });
}

/** Runs one shell command by the guest's agent, which has to be there; returns what it wrote. */
export async function byAgent(board: Pick<Board, 'vmi' | 'directory'>, name: string, command: string): Promise<string> {
  const agent = await guestAgentOf(board, name);
  const options = { clock: systemClock, timeoutMs: 60_000, signal: AbortSignal.timeout(60_000) };
  return eventually(
    `${command} in ${name}`,
    async () => (await runInGuest(agent, ['sh', '-c', command], options)).output,
  );
}
