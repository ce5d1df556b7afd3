import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import type { MachinePlan } from '../../../kubevirt/src/rules/machine/machine-plan.ts';
import { clockZone } from './clock-zone.ts';

const WINTER = Date.UTC(2026, 0, 15, 12);
const SUMMER = Date.UTC(2026, 6, 15, 12);

// S-1656: The clock of a guest starts in the zone, or so many seconds from UTC, as `clock` of its machine says.
test('clockZone() is a zone in which the host tells the time of the guest', () => {
  const rows: readonly (readonly [clock: MachinePlan['clock'], now: number, zone: string, time: string])[] = [
    [{ timezone: 'UTC' }, WINTER, 'GUEST-00:00:00', '12:00:00'],
    [{ timezone: 'Europe/Berlin' }, WINTER, 'GUEST-01:00:00', '13:00:00'],
    [{ timezone: 'Europe/Berlin' }, SUMMER, 'GUEST-02:00:00', '14:00:00'],
    [{ timezone: 'Asia/Kolkata' }, WINTER, 'GUEST-05:30:00', '17:30:00'],
    [{ timezone: 'America/New_York' }, WINTER, 'GUEST+05:00:00', '07:00:00'],
    [{ offsetSeconds: 90 }, WINTER, 'GUEST-00:01:30', '12:01:30'],
    [{ offsetSeconds: -86_400 }, WINTER, 'GUEST+24:00:00', '12:00:00'],
    [{ offsetSeconds: -82_800 }, WINTER, 'GUEST+23:00:00', '13:00:00'],
  ];
  for (const [clock, now, zone, time] of rows) {
    const made = clockZone(clock ? { clock } : {}, now);
    assert.equal(made, zone);
    const shown = execFileSync('date', ['-d', `@${now / 1000}`, '+%T'], { env: { ...process.env, TZ: made } });
    assert.equal(shown.toString().trim(), time, zone);
  }
  assert.equal(clockZone({}, WINTER), undefined);
});
