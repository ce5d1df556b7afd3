import { parseQuantity, quantityValue } from '@coracle/apimachinery/quantity/quantity';
import type { MachinePlan, PlanContext } from './machine-plan.ts';

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
  for (const { name, policy } of cpu?.features ?? []) {
    const known = facts.cpuFeatures.length === 0 || facts.cpuFeatures.includes(name);
    const off = policy === 'disable' || policy === 'forbid';
    if (FEATURE_NAME.test(name) && known) features.push({ name, value: off ? 'off' : 'on' });
    else if (policy !== 'optional' && !off)
      plan.unsupported.push(`cpu feature ${JSON.stringify(name)} is not known to QEMU ${facts.qemuVersion}`);
  }
  const { sockets, cores, threads } = cpu ?? {};
  // Without a topology the amount of CPU asked for decides: limits before requests, rounded up.
  const amount = sockets || cores || threads ? 1 : (resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'] ?? 1);
  const asked = Math.ceil(quantityValue(parseQuantity(String(amount))));
  plan.cpu = { model, features, sockets: sockets || asked || 1, cores: cores || 1, threads: threads || 1 };
}

/** Most queues that a disk or a controller gets. */
export const MAX_QUEUES = 64;

/** One queue for each processor that a guest starts with, as QEMU gives of its own accord. */
export const queuesFor = ({ sockets, cores, threads }: MachinePlan['cpu']): number =>
  Math.min(sockets * cores * threads, MAX_QUEUES);
