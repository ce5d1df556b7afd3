import type { MachinePlan } from './machine-plan.ts';
import type { PlanContext } from './plan-context.ts';

/** Clock and timers. The guest's clock starts at UTC, whatever its spec says (unserved-fields.ts). */
export function configureClock({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { clock } = vmi.spec.domain;
  plan.rtc['base'] = 'utc';
  if (!clock) return;
  const { timer } = clock;
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
