import type { MachinePlan, PlanContext } from './machine-plan.ts';

/** The Hyper-V enlightenments that are a plain switch: `hv-` and their name is QEMU's processor property. */
const HYPERV = [
  'relaxed',
  'vapic',
  'vpindex',
  'runtime',
  'synic',
  'reset',
  'frequencies',
  'reenlightenment',
  'ipi',
  'evmcs',
] as const;

const on = (state: { readonly enabled?: boolean | undefined } | undefined): boolean =>
  state !== undefined && state.enabled !== false;

/** Machine and hypervisor features. Those of KVM are dropped, by name, without it. */
export function configureFeatures({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { features } = vmi.spec.domain;
  if (!features) return;
  const { options } = plan.machine;
  if (features.acpi?.enabled === false) options['acpi'] = 'off';
  if (features.smm) options['smm'] = on(features.smm) ? 'on' : 'off';
  const flags: { name: string; value: string }[] = [];
  if (features.apic?.enabled === false) flags.push({ name: 'apic', value: 'off' });

  const paravirtual: { name: string; value: string }[] = [];
  const { hyperv } = features;
  if (features.hypervPassthrough?.enabled) paravirtual.push({ name: 'hv-passthrough', value: 'on' });
  if (hyperv) {
    for (const name of HYPERV) if (on(hyperv[name])) paravirtual.push({ name: `hv-${name}`, value: 'on' });
    if (on(hyperv.spinlocks))
      paravirtual.push({ name: 'hv-spinlocks', value: String(hyperv.spinlocks?.spinlocks ?? 4096) });
    if (on(hyperv.synictimer)) {
      paravirtual.push({ name: 'hv-stimer', value: 'on' });
      if (hyperv.synictimer?.direct && on(hyperv.synictimer.direct))
        paravirtual.push({ name: 'hv-stimer-direct', value: 'on' });
    }
    if (on(hyperv.tlbflush)) paravirtual.push({ name: 'hv-tlbflush', value: 'on' });
    const vendor = hyperv.vendorid;
    if (on(vendor)) {
      const id = vendor?.vendorid ?? '';
      if (/^[\x21-\x7e]{1,12}$/.test(id)) paravirtual.push({ name: 'hv-vendor-id', value: id });
      else plan.unsupported.push('hyperv.vendorid must be 1 to 12 printable characters; it is left out');
    }
  }
  const { endOfInterrupt } = features.apic ?? {};
  if (endOfInterrupt !== undefined) paravirtual.push({ name: 'kvm-pv-eoi', value: endOfInterrupt ? 'on' : 'off' });
  if (features.kvm?.hidden) paravirtual.push({ name: 'kvm', value: 'off' });
  if (features.pvspinlock) paravirtual.push({ name: 'kvm-pv-unhalt', value: on(features.pvspinlock) ? 'on' : 'off' });
  if (paravirtual.length > 0 && facts.accelerator !== 'kvm') {
    // Hiding KVM where there is none needs no word.
    if (paravirtual.some(({ name }) => name.startsWith('hv-')))
      plan.unsupported.push('Hyper-V enlightenments need KVM, which this node does not have');
  } else flags.push(...paravirtual);
  plan.cpu = { ...plan.cpu, features: [...plan.cpu.features, ...flags] };
}
