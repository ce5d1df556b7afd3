/**
 * A program of its own, one for each node that has frozen guests: thaws them when their time is over (`thaw-timer.ts`). Like QEMU it
 * outlives the agent; it ends when no guest waits to be thawed. Its working directory is `vms` of the agent's data directory.
 */
import { join } from 'node:path';
import { systemClock } from '@coracle/runtime/clock/clock';
import { VM_FILES } from '../../qemu/argv.ts';
import { createGuestAgent } from '../../qmp/guest-agent.ts';
import { askThaw } from './freeze.ts';
import { runThawTimer } from './thaw-timer.ts';

const { signal } = new AbortController();
const clock = systemClock;
await runThawTimer(process.cwd(), {
  clock,
  signal,
  thaw: (directory) => askThaw(createGuestAgent(join(directory, VM_FILES.guestAgent), { clock, signal })),
});
