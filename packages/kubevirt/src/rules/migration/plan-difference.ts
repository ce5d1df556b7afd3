/** Whether the machine a target would build is the machine the source runs. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { VIDEO_ID } from '../machine/devices.ts';
import type { CpuPlan, MachinePlan } from '../machine/machine-plan.ts';

/** Of the host or of the start, nothing a running guest sees. */
const NOT_OF_THE_GUEST = new Set<keyof MachinePlan>(['sandbox', 'unsupported', 'startPaused', 'hostname', 'smbios']);
/** Of the start too, and seen by the guest: it comes with what it has. */
const GOES_ALONG: ReadonlySet<keyof MachinePlan> = new Set(['heldBackBytes', 'generationId']);

/**
 * The first field in which two plans differ for a running guest, undefined when none does. SMBIOS texts are read at boot
 * only: the source's go along (`movedPlan`).
 */
export function planDifference(source: MachinePlan, target: MachinePlan): keyof MachinePlan | undefined {
  const fields = new Set([...Object.keys(source), ...Object.keys(target)]) as Set<keyof MachinePlan>;
  return [...fields].sort().find((field) => {
    if (NOT_OF_THE_GUEST.has(field) || GOES_ALONG.has(field)) return false;
    // A guest of a version that gave none does not get one while it runs.
    if (field === 'tpm' && !source.tpm) return false;
    if (field === 'firmware') return source.firmware.kind !== target.firmware.kind;
    if (field === 'cpu') return !deepEqual(comparableCpu(source.cpu, source), comparableCpu(target.cpu, source));
    // A guest whose memory can be plugged comes as it is; what its instance says by now follows when it is here.
    if (field === 'devices') return !deepEqual(source.devices, withVideoOf(source, target));
    if (field === 'hotMemory' || (field === 'memoryBytes' && source.hotMemory)) return false;
    return !deepEqual(source[field] ?? null, target[field] ?? null);
  });
}

/**
 * The target's plan with what the guest has already: processors and memory as they are now, the room for more, and what a
 * reboot must find again: the display adapter, and the SMBIOS texts, where they have the same form.
 */
export function movedPlan(source: MachinePlan, target: MachinePlan): MachinePlan {
  const form = (plan: MachinePlan): unknown =>
    plan.smbios.map(({ type, fields }) => [type, fields.map(([name]) => name)]);
  const texts = source.smbios.every(({ fields }) => fields.every(([, value]) => typeof value === 'string'));
  const { hotMemory: _, heldBackBytes: ___, generationId: ____, tpm, ...rest } = target;
  const { maxSockets: __, ...cpu } = target.cpu;
  const { sockets, maxSockets } = source.cpu;
  return {
    ...rest,
    devices: withVideoOf(source, target),
    cpu: { ...cpu, sockets, ...(maxSockets !== undefined && { maxSockets }) },
    ...(tpm && source.tpm && { tpm }),
    memoryBytes: source.memoryBytes,
    ...(source.heldBackBytes !== undefined && { heldBackBytes: source.heldBackBytes }),
    ...(source.generationId !== undefined && { generationId: source.generationId }),
    ...(source.hotMemory && { hotMemory: source.hotMemory }),
    ...(texts && deepEqual(form(source), form(target)) && { smbios: source.smbios }),
  };
}

/**
 * The target's devices with the display adapter of the source: an instance names the same one for good, but which stands
 * for it, or is the default, may change with the version.
 */
function withVideoOf(source: MachinePlan, target: MachinePlan): MachinePlan['devices'] {
  const video = source.devices.find(({ id }) => id === VIDEO_ID);
  return target.devices.map((device) => (device.id === VIDEO_ID && video ? video : device));
}

/** The processors without the sockets, where those can be plugged. */
function comparableCpu({ maxSockets: _, sockets, ...rest }: CpuPlan, source: MachinePlan): unknown {
  return source.cpu.maxSockets === undefined ? { ...rest, sockets } : rest;
}
