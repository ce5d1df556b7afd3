import { parseQuantity, quantityValue } from '@coracle/apimachinery/quantity/quantity';
import type { MachinePlan } from './machine-plan.ts';
import type { PlanContext } from './plan-context.ts';

const FEATURE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
/** These mean: all the host, or the emulator, has. */
const WHOLE = new Set(['', 'host-model', 'host-passthrough', 'max', 'host']);

/** Processor model, features and topology. */
export function configureCpu({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { cpu, resources } = vmi.spec.domain;
  const everything = facts.accelerator === 'kvm' ? 'host' : 'max';
  const wanted = cpu?.model ?? '';
  let model = everything;
  if (!WHOLE.has(wanted)) {
    if (facts.cpuModels.includes(wanted)) model = wanted;
    else plan.unsupported.push(`cpu model ${wanted} is not known to QEMU ${facts.qemuVersion}; ${everything} is used`);
  }
  const features: { name: string; value: string }[] = [];
  for (const feature of cpu?.features ?? []) {
    const known = facts.cpuFeatures.length === 0 || facts.cpuFeatures.includes(feature.name);
    if (!FEATURE_NAME.test(feature.name) || !known) {
      if (feature.policy !== 'optional' && feature.policy !== 'disable' && feature.policy !== 'forbid')
        plan.unsupported.push(`cpu feature ${JSON.stringify(feature.name)} is not known to QEMU ${facts.qemuVersion}`);
      continue;
    }
    const off = feature.policy === 'disable' || feature.policy === 'forbid';
    features.push({ name: feature.name, value: off ? 'off' : 'on' });
  }
  let sockets = cpu?.sockets || 0;
  const cores = cpu?.cores || 0;
  const threads = cpu?.threads || 0;
  if (sockets === 0 && cores === 0 && threads === 0) {
    // Without a topology the amount of CPU asked for decides: limits before requests, rounded up.
    const amount = resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'];
    if (amount !== undefined) sockets = Math.ceil(quantityValue(parseQuantity(String(amount))));
  }
  plan.cpu = { model, features, sockets: sockets || 1, cores: cores || 1, threads: threads || 1 };
}

/** Most queues that a disk or a controller gets. */
export const MAX_QUEUES = 64;

/** One queue for each processor that a guest starts with, as QEMU gives of its own accord. */
export const queuesFor = ({ sockets, cores, threads }: MachinePlan['cpu']): number =>
  Math.min(sockets * cores * threads, MAX_QUEUES);
