/**
 * What each state of QEMU means for the guest in it. The switch has a case for every state: a state that QEMU adds does
 * not compile until it has a decision.
 */
import type { RunState } from '../../qmp/commands.ts';

/**
 * runs: it executes, or sleeps by its own will. stopped: it stands still and `cont` lets it run. stalled: it waits for a
 * disk. moving: QEMU is in the middle of a migration, or after one that took the guest away. off, panicked, broken: the
 * guest has ended, and QEMU refuses `cont` until it is reset. unknown: QEMU has not been asked yet.
 */
export type GuestCondition = 'runs' | 'stopped' | 'stalled' | 'moving' | 'off' | 'panicked' | 'broken' | 'unknown';

/** The condition of a guest by the run state of its QEMU (QAPI `RunState`). */
export function guestCondition(state: RunState | 'unknown'): GuestCondition {
  switch (state) {
    case 'running':
    case 'suspended':
      return 'runs';
    case 'paused':
    case 'prelaunch':
    case 'watchdog':
    case 'debug':
    case 'save-vm':
      return 'stopped';
    case 'io-error':
      return 'stalled';
    case 'inmigrate':
    case 'postmigrate':
    case 'finish-migrate':
    case 'restore-vm':
    case 'colo':
      return 'moving';
    case 'shutdown':
      return 'off';
    case 'guest-panicked':
      return 'panicked';
    case 'internal-error':
      return 'broken';
    case 'unknown':
      return 'unknown';
    default:
      return unheardOf(state);
  }
}

/** A newer QEMU may know more states; nothing is concluded from one that nobody knows here. */
const unheardOf = (_: never): GuestCondition => 'unknown';

/** True when nothing but a reset makes the guest go on. */
export function hasEnded(state: RunState | 'unknown'): boolean {
  const condition = guestCondition(state);
  return condition === 'off' || condition === 'panicked' || condition === 'broken';
}
