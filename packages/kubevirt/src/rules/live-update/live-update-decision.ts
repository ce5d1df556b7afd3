/**
 * What becomes of a change of a virtual machine whose instance runs: a patch of the instance, a wait, or a restart. The
 * texts are upstream's (pkg/virt-controller/watch/vm: handleCPUChangeRequest, handleMemoryHotplugRequest).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  type Quantity,
  quantityFromBytes,
  quantityFromMilli,
  quantityValue,
  readQuantity,
} from '@coracle/apimachinery/quantity/quantity';
import type { ReadonlyVmi, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { MIN_PLUGGABLE_GUEST_BYTES } from '../machine/hotplug.ts';
import { isPresent } from '../machine-defaults/amounts.ts';
import { memoryHotplugObstacle } from '../machine-defaults/live-update.ts';
import { isMoving } from './pending-changes.ts';

type Spec = DeepReadonly<VirtualMachineInstanceSpec>;

export interface PatchOperation {
  readonly op: 'test' | 'add' | 'replace' | 'remove';
  readonly path: string;
  readonly value?: unknown;
}

interface LiveUpdateInput {
  /** What the virtual machine stands for now: with its instance type, preference and defaults. */
  readonly wanted: Spec;
  readonly vmi: ReadonlyVmi;
  /** vCPUs that share a core. */
  readonly cpuAllocationRatio: number;
}

export interface LiveUpdateDecision {
  /** For the spec of the instance, each change behind a test of what it replaces. Empty: nothing to do. */
  readonly patch: readonly PatchOperation[];
  /** Only a restart brings the change: why. */
  readonly restart?: string;
  /** The change has to wait: condition Failure of the virtual machine. */
  readonly failure?: { readonly reason: string; readonly message: string };
}

type Step = Partial<LiveUpdateDecision>;

/** Decides on sockets, placement and memory, in upstream's order: what has to wait holds up those after it. */
export function liveUpdateDecision(input: LiveUpdateInput): LiveUpdateDecision {
  let decision: LiveUpdateDecision = { patch: [] };
  for (const decide of [decideSockets, decidePlacement, decideMemory]) {
    const { patch = [], ...rest } = decide(input);
    decision = { ...decision, ...rest, patch: [...decision.patch, ...patch] };
    if (decision.failure) break;
  }
  return decision;
}

function decideSockets({ wanted, vmi, cpuAllocationRatio }: LiveUpdateInput): Step {
  const cpu = vmi.spec.domain?.cpu;
  if (!wanted.domain?.cpu || !cpu) return {};
  const sockets = wanted.domain.cpu.sockets || 1;
  const now = cpu.sockets || 1;
  if (sockets === now) return {};
  const wait = (why: string): Step => ({
    failure: { reason: 'HotPlugCPUError', message: `Error encountered while handling CPU change request: ${why}` },
  });
  if (isConditionTrue(vmi, 'HotVCPUChange')) return wait('another CPU hotplug is in progress');
  if (isMoving(vmi)) return wait('CPU hotplug is not allowed while VMI is migrating');
  if (sockets > (cpu.maxSockets ?? 0))
    return { restart: "CPU sockets updated in template spec to a value higher than what's available" };
  if (sockets < now) return { restart: 'Reduction of CPU socket count requires a restart' };
  if (wanted.architecture === 'arm64') return { restart: "ARM doesn't support CPU hotplug" };
  const more = (sockets - now) * (cpu.cores || 1) * (cpu.threads || 1);
  const delta = quantityFromMilli(BigInt(more) * BigInt(Math.floor(1000 / cpuAllocationRatio)));
  const raise = (field: 'requests' | 'limits') =>
    raised({ wanted, vmi, resource: 'cpu', field }, (was) => formatQuantity(addQuantity(was, delta)));
  return { patch: [...change('/spec/domain/cpu/sockets', now, sockets), ...raise('requests'), ...raise('limits')] };
}

/** Where an instance may be counts for its next Pod: one of a migration. */
function decidePlacement({ wanted, vmi }: LiveUpdateInput): Step {
  const patch: PatchOperation[] = [];
  for (const [field, empty, reason, what, message] of PLACEMENT) {
    const [next, now] = [wanted[field] ?? empty, vmi.spec[field] ?? empty];
    if (deepEqual(next, now)) continue;
    if (isMoving(vmi))
      return { failure: { reason, message: `Error encountered while handling ${what} change request: ${message}` } };
    const path = `/spec/${field}`;
    if (vmi.spec[field] === undefined) patch.push({ op: 'add', path, value: next });
    else if (wanted[field] === undefined) patch.push({ op: 'remove', path });
    else patch.push(...change(path, now, next));
  }
  return { patch };
}

const NODE_AFFINITY = [
  'AffinityChangeError',
  'node affinity',
  'Node affinity should not be changed during VMI migration',
] as const;
const PLACEMENT = [
  ['affinity', {}, ...NODE_AFFINITY],
  ['nodeSelector', {}, ...NODE_AFFINITY],
  [
    'tolerations',
    [],
    'TolerationsChangeError',
    'tolerations',
    'tolerations should not be changed during VMI migration',
  ],
] as const;

function decideMemory({ wanted, vmi }: LiveUpdateInput): Step {
  const guest = readQuantity(wanted.domain?.memory?.guest);
  const now = readQuantity(vmi.spec.domain?.memory?.guest);
  const { guestCurrent, guestAtBoot } = vmi.status?.memory ?? {};
  const current = readQuantity(guestCurrent);
  if (guest === undefined || now === undefined || current === undefined) return {};
  const refuse = (why: string): Step => ({ restart: `memory updated in template spec${why}` });
  if (conditionOf(vmi, 'HotMemoryChange')?.status === 'False')
    return refuse('. Memory-hotplug failed and is not available for this VM configuration');
  if (compareQuantity(guest, now) === 0) return {};
  if (!isConditionTrue(vmi, 'LiveMigratable')) return refuse('. Memory-hotplug is only available for migratable VMs');
  const maxGuest = vmi.spec.domain?.memory?.maxGuest;
  const most = readQuantity(maxGuest);
  if (maxGuest === undefined || most === undefined)
    return refuse('. Memory-hotplug is not available for this VM configuration');
  const wait = (why: string): Step => {
    const message = `error encountered while handling memory hotplug requests: ${why}`;
    return { failure: { reason: 'HotPlugMemoryError', message } };
  };
  if (isConditionTrue(vmi, 'HotMemoryChange')) return wait('another memory hotplug is in progress');
  if (isMoving(vmi)) return wait('memory hotplug is not allowed while VMI is migrating');
  const atBoot = readQuantity(guestAtBoot);
  const obstacle = memoryHotplugObstacle(wanted, maxGuest)?.message ?? tooSmall(atBoot);
  if (obstacle !== undefined) return { restart: `memory hotplug not supported, ${obstacle}` };
  if (atBoot !== undefined && compareQuantity(guest, atBoot) < 0)
    return refuse(' to a value lower than what the VM started with');

  const text = String(wanted.domain?.memory?.guest);
  let delta = quantityValue(guest) - quantityValue(current);
  const request = raised({ wanted: vmi.spec, vmi, resource: 'memory', field: 'requests' }, (was) => {
    const sum = quantityValue(was) + delta;
    if (sum >= quantityValue(guest)) return formatQuantity(quantityFromBytes(sum));
    // A guest that has not given everything back: the request covers what it may have, and the limit does not move.
    delta = 0;
    return text;
  });
  return {
    patch: [
      ...change('/spec/domain/memory/guest', vmi.spec.domain?.memory?.guest, text),
      ...request,
      ...raised({ wanted, vmi, resource: 'memory', field: 'limits' }, (was) =>
        formatQuantity(quantityFromBytes(quantityValue(was) + delta)),
      ),
    ],
  };
}

/** Ours, and upstream's of 1.2: a smaller guest starts without room for more (`kubevirt/rules/machine`). */
const tooSmall = (atBoot: Quantity | undefined): string | undefined =>
  atBoot !== undefined && quantityValue(atBoot) < MIN_PLUGGABLE_GUEST_BYTES
    ? 'Memory hotplug is only available for VMs with at least 1Gi of guest memory'
    : undefined;

const change = (path: string, before: unknown, after: unknown): PatchOperation[] => [
  { op: 'test', path, value: before },
  { op: 'replace', path, value: after },
];

/** What a written request or limit of the instance becomes. */
function raised(
  of: {
    readonly wanted: Spec;
    readonly vmi: ReadonlyVmi;
    readonly resource: 'cpu' | 'memory';
    readonly field: 'requests' | 'limits';
  },
  next: (was: Quantity) => string,
): PatchOperation[] {
  const value = of.vmi.spec.domain?.resources?.[of.field]?.[of.resource];
  const was = readQuantity(value);
  if (was === undefined || !isPresent(of.wanted.domain?.resources?.[of.field]?.[of.resource])) return [];
  return change(`/spec/domain/resources/${of.field}/${of.resource}`, value, next(was));
}
