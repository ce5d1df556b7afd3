/** Whether a machine fits a saved guest, and the machine that such a guest is resumed on. */
import type { MachinePlan, NodeFacts } from '../machine/machine-plan.ts';
import { movedPlan, planDifference } from '../migration/plan-difference.ts';

/** What of the host a saved guest depends on. */
export interface SavedHost {
  readonly qemuVersion: string;
  /** Name of the host's processor, where the guest has one like it. */
  readonly processor?: string;
}

/** What matters of this host to a guest of that plan. `processor`: what /proc/cpuinfo calls it. */
export const hostOf = (
  plan: MachinePlan,
  facts: Pick<NodeFacts, 'qemuVersion'>,
  processor: string | undefined,
): SavedHost => ({
  qemuVersion: facts.qemuVersion,
  ...(plan.accelerator === 'kvm' && HOST_MODELS.has(plan.cpu.model) && processor !== undefined && { processor }),
});

const HOST_MODELS = new Set(['host', 'max']);

/**
 * Why a guest saved with `saved` cannot go on as `plan` here; undefined when it can. Identity may differ: name, UUID,
 * SMBIOS texts, MAC addresses and the ports of the host are not what a running guest rests on.
 */
export function resumeDifference(
  saved: { readonly plan: MachinePlan; readonly host: SavedHost },
  here: { readonly plan: MachinePlan; readonly host: SavedHost },
): string | undefined {
  const release = ({ qemuVersion }: SavedHost): string => qemuVersion.split('.').slice(0, 2).join('.');
  if (release(saved.host) !== release(here.host))
    return `it was saved by QEMU ${saved.host.qemuVersion}, this node has ${here.host.qemuVersion}`;
  if (saved.host.processor !== undefined && saved.host.processor !== here.host.processor)
    return `it was saved on a ${saved.host.processor}, this node has a ${here.host.processor ?? 'processor of another name'}`;
  if (saved.plan.generationId !== undefined && here.plan.generationId === undefined)
    return 'the machine differs in generationId';
  const field = planDifference(withoutIdentity(saved.plan), withoutIdentity(here.plan));
  return field === undefined ? undefined : `the machine differs in ${field}`;
}

const withoutIdentity = (plan: MachinePlan): MachinePlan => ({
  ...plan,
  name: '',
  uuid: '',
  interfaces: plan.interfaces.map((nic) => ({ ...nic, mac: '', ports: [] })),
});

/**
 * The machine to resume on: that of `plan`, with processors and memory as they were. Unlike a guest that moves, it shows
 * the identity of its own object from its next reboot on, and is notified at once that it has been at this point before
 * (`generationId`, where the saved machine has the device for it).
 */
export function resumedPlan(saved: MachinePlan, plan: MachinePlan): MachinePlan {
  const { generationId: _, ...moved } = movedPlan(saved, plan);
  const changes = saved.generationId !== undefined && plan.generationId !== undefined;
  return {
    ...moved,
    smbios: plan.smbios,
    ...(changes && { generationId: plan.generationId as string }),
  };
}
