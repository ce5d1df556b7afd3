/** Room for processors and memory that are plugged while the guest runs. */
import { quantityValue, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import { memoryHotplugObstacle } from '../machine-defaults/live-update.ts';
import type { MachinePlan, PlanContext } from './machine-plan.ts';

/** Processors beyond it need interrupts of a kind that older guests do not know. */
const MAX_APIC_IDS = 255;
/**
 * Where memory could be plugged beyond 4 GiB, Linux sets 64 MiB aside at boot for devices that cannot reach it. A guest
 * smaller than this would miss them: it starts without the device.
 */
export const MIN_PLUGGABLE_GUEST_BYTES = 1024 ** 3;

/** Both need ACPI, by which a guest is notified. A machine that cannot be plugged is left exactly as it is. */
export function configureHotplug({ vmi, facts }: PlanContext, plan: MachinePlan): void {
  const { domain } = vmi.spec;
  if (plan.machine.options['acpi'] === 'off') return;
  const maxSockets = Math.min(domain.cpu?.maxSockets ?? 0, mostSockets(plan));
  if (maxSockets > plan.cpu.sockets) plan.cpu = { ...plan.cpu, maxSockets };

  const { maxGuest, hugepages } = domain.memory ?? {};
  const isQ35 = plan.machine.type.includes('q35');
  if (maxGuest === undefined || hugepages !== undefined || !isQ35 || !facts.devices.includes('virtio-mem-pci')) return;
  if (plan.memoryBytes < MIN_PLUGGABLE_GUEST_BYTES || memoryHotplugObstacle(vmi.spec, maxGuest) !== undefined) return;
  const most = readQuantity(maxGuest);
  const bytes = (most === undefined ? 0 : quantityValue(most)) - plan.memoryBytes;
  // Room that no host can address is no room: the guest starts without it.
  if (bytes > 0 && bytes <= Number.MAX_SAFE_INTEGER) plan.hotMemory = { bytes, requestedBytes: 0 };
}

/** A processor's interrupt number has a field for each axis, as wide as its next power of two. */
function mostSockets({ cpu: { cores, threads } }: MachinePlan): number {
  const field = (amount: number): number => 2 ** Math.ceil(Math.log2(amount));
  return Math.floor(MAX_APIC_IDS / (field(cores) * field(threads)));
}
