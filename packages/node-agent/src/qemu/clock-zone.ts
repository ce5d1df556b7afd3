/** Where the clock of a guest starts: QEMU takes the local time of its process, whose zone is that of the guest. */
import type { MachinePlan } from '@coracle/kubevirt/rules/machine/machine-plan';

/** The zone for QEMU as the variable TZ has it (POSIX, 8.3), of a guest that starts at `now`; undefined for UTC. */
export function clockZone({ clock }: Pick<MachinePlan, 'clock'>, now: number): string | undefined {
  if (!clock) return undefined;
  const seconds = 'timezone' in clock ? secondsFromUtc(clock.timezone, now) : clock.offsetSeconds;
  const ahead = Math.abs(seconds);
  const parts = [Math.floor(ahead / 3600), Math.floor(ahead / 60) % 60, ahead % 60];
  // POSIX counts from local time to UTC.
  return `GUEST${seconds < 0 ? '+' : '-'}${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}

/** `GMT`, `GMT+05:30`, or with the seconds of a local mean time. */
const OFFSET = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/;

function secondsFromUtc(timeZone: string, now: number): number {
  const parts = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' }).formatToParts(now);
  const [, sign, ...units] = OFFSET.exec(parts.find(({ type }) => type === 'timeZoneName')?.value ?? '') ?? [];
  const [hours = 0, minutes = 0, seconds = 0] = units.map((unit) => Number(unit ?? 0));
  return (hours * 3600 + minutes * 60 + seconds) * (sign === '-' ? -1 : 1);
}
