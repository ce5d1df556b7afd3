import type { MachinePlan, PlanContext } from './machine-plan.ts';

/** Further from UTC no clock is set: zones of POSIX end there. */
const MAX_OFFSET_SECONDS = 24 * 3600;

/** Clock and timers. */
export function configureClock({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { clock } = vmi.spec.domain;
  plan.rtc['base'] = 'utc';
  if (!clock) return;
  const { timer, timezone, utc } = clock;
  const { offsetSeconds = 0 } = utc ?? {};
  if (timezone && isZone(timezone)) plan.clock = { timezone };
  else if (timezone) plan.unsupported.push('clock.timezone is no zone of the tz database; the clock is UTC');
  else if (Math.abs(offsetSeconds) > MAX_OFFSET_SECONDS)
    plan.unsupported.push(`clock.utc.offsetSeconds is beyond ${MAX_OFFSET_SECONDS}; the clock is UTC`);
  else if (offsetSeconds !== 0) plan.clock = { offsetSeconds };
  if (!timer) return;
  if (timer.hpet?.present === false) plan.machine.options['hpet'] = 'off';
  if (timer.rtc?.tickPolicy === 'catchup') plan.rtc['driftfix'] = 'slew';
  if (timer.rtc?.track === 'guest') plan.rtc['clock'] = 'vm';
  if (timer.pit?.present === false) plan.machine.options['pit'] = 'off';
  if (facts.accelerator !== 'kvm') return;
  const extra: { name: string; value: string }[] = [];
  if (timer.pit?.tickPolicy === 'delay' || timer.pit?.tickPolicy === 'discard')
    plan.globals.push({ driver: 'kvm-pit', property: 'lost_tick_policy', value: timer.pit.tickPolicy });
  if (timer.kvm?.present === false) extra.push({ name: 'kvmclock', value: 'off' });
  if (timer.hyperv && timer.hyperv.present !== false) extra.push({ name: 'hv-time', value: 'on' });
  plan.cpu = { ...plan.cpu, features: [...plan.cpu.features, ...extra] };
}

function isZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}
