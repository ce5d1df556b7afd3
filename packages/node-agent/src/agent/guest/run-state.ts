/** What each state of QEMU means for the guest in it. A state that QEMU adds does not compile until it has a decision. */
import type { RunState } from '../../qmp/commands.ts';

/**
 * runs: it executes, or sleeps by its own will. stopped: it stands still and `cont` lets it run. stalled: it waits for a
 * disk. moving: QEMU is in the middle of a migration, or after one that took the guest away. off, panicked, broken: the
 * guest has ended, and QEMU refuses `cont` until it is reset. unknown: QEMU has not been asked yet.
 */
type GuestCondition = 'runs' | 'stopped' | 'stalled' | 'moving' | 'off' | 'panicked' | 'broken' | 'unknown';

const CONDITIONS: Readonly<Record<RunState | 'unknown', GuestCondition>> = {
  running: 'runs',
  suspended: 'runs',
  paused: 'stopped',
  prelaunch: 'stopped',
  watchdog: 'stopped',
  debug: 'stopped',
  'save-vm': 'stopped',
  'io-error': 'stalled',
  inmigrate: 'moving',
  postmigrate: 'moving',
  'finish-migrate': 'moving',
  'restore-vm': 'moving',
  colo: 'moving',
  shutdown: 'off',
  'guest-panicked': 'panicked',
  'internal-error': 'broken',
  unknown: 'unknown',
};

/**
 * The condition of a guest by the run state of its QEMU (QAPI `RunState`). A newer QEMU may know more states; nothing is
 * concluded from one that nobody knows here.
 */
export const guestCondition = (state: RunState | 'unknown'): GuestCondition => CONDITIONS[state] ?? 'unknown';

/** True when nothing but a reset makes the guest go on. */
export const hasEnded = (state: RunState | 'unknown'): boolean =>
  ['off', 'panicked', 'broken'].includes(guestCondition(state));
