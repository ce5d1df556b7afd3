/** One machine in one line, for `list` and `status`. */

import type { Client } from '@coracle/client/client';
import type { VirtualMachine, VirtualMachineInstance } from '@coracle/kubevirt/kinds/kinds';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '@coracle/kubevirt/kinds/kinds';
import type { FoundMachine } from './find-machine.ts';
import { readMachineFacts, type Why, whyOf } from './why-facts.ts';

/** What is shown of a machine. Times are ms since the epoch. */
export interface MachineRow {
  readonly namespace: string;
  readonly name: string;
  readonly state: string;
  readonly address: string;
  readonly node: string;
  /** Since when its guest runs. */
  readonly runsSince: number | undefined;
  readonly createdAt: number;
  /** Why it does not run, where somebody wants it to; empty else. */
  readonly reason: string;
  /** What it takes on the disk, where that was asked for. */
  readonly diskBytes?: number;
}

/** The machines of one namespace or, with undefined, of all, by name. */
export async function readMachines(
  client: Client,
  {
    namespace,
    signal,
    bytesOf,
  }: {
    readonly namespace: string | undefined;
    readonly signal: AbortSignal;
    readonly bytesOf?: (machine: FoundMachine) => number;
  },
): Promise<MachineRow[]> {
  const options = { ...(namespace !== undefined && { namespace }), signal };
  const [vms, vmis] = await Promise.all([
    client.list<VirtualMachine>(VIRTUAL_MACHINES, options),
    client.list<VirtualMachineInstance>(VIRTUAL_MACHINE_INSTANCES, options),
  ]);
  const keyOf = ({ metadata }: VirtualMachine | VirtualMachineInstance): string =>
    `${metadata.namespace}/${metadata.name}`;
  const found = new Map<string, FoundMachine>();
  for (const vm of vms.items) found.set(keyOf(vm), { key: keyFrom(vm), vm, vmi: undefined });
  for (const vmi of vmis.items)
    found.set(keyOf(vmi), { ...(found.get(keyOf(vmi)) ?? { key: keyFrom(vmi), vm: undefined }), vmi });
  return describeMachines(client, [...found.values()], { signal, ...(bytesOf && { bytesOf }) });
}

/** Those machines, by name. */
export async function describeMachines(
  client: Client,
  machines: readonly FoundMachine[],
  { signal, bytesOf }: { readonly signal: AbortSignal; readonly bytesOf?: (machine: FoundMachine) => number },
): Promise<MachineRow[]> {
  let asked = 0;
  const rows = machines.map(async (machine) => {
    const row = { ...rowOf(machine), ...(bytesOf && { diskBytes: bytesOf(machine) }) };
    if (!WAITS.has(row.state) && !cannotStart(machine)) return row;
    const facts =
      asked++ < MOST_ASKED ? await readMachineFacts(client, machine, signal) : { ...machine, ...NOTHING_ASKED };
    return { ...row, reason: reasonText(whyOf(facts)) };
  });
  return (await Promise.all(rows)).sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
}

/** Of so many machines that wait, events and disks are asked for; of further ones their conditions have to do. */
const MOST_ASKED = 20;
const NOTHING_ASKED = { warnings: [], pulling: undefined, dataVolumes: [], nodes: undefined };

const keyFrom = ({ metadata }: VirtualMachine | VirtualMachineInstance): FoundMachine['key'] => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** States in which a machine is not where somebody wants it. Of the others the state says all. */
const WAITS: ReadonlySet<string> = new Set([
  'Starting',
  'Provisioning',
  'WaitingForVolumeBinding',
  'ErrorUnschedulable',
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrorPvcNotFound',
  'DataVolumeError',
  'CrashLoopBackOff',
  'Paused',
  'Unknown',
  'Pending',
  'Scheduling',
  'Scheduled',
]);

/** Stopped against its run strategy: a condition of the machine says why. */
const cannotStart = ({ vm, vmi }: FoundMachine): boolean =>
  vmi === undefined &&
  (vm?.status?.conditions ?? []).some(({ type, status }) => type === 'Failure' && status === 'True');

const reasonText = ({ reason = '', state }: Why): string => (reason === '' ? state : reason).replace(/\s+/g, ' ');

function rowOf({ key, vm, vmi }: FoundMachine): MachineRow {
  const { interfaces, nodeName, phase } = vmi?.status ?? {};
  const running = vmi?.status?.phaseTransitionTimestamps?.findLast((at) => at.phase === 'Running');
  return {
    ...key,
    state: vm?.status?.printableStatus ?? phase ?? 'Pending',
    address: interfaces?.find(({ ipAddress }) => ipAddress)?.ipAddress ?? '',
    node: nodeName ?? '',
    runsSince: phase === 'Running' && running ? Date.parse(running.phaseTransitionTimestamp ?? '') : undefined,
    createdAt: Date.parse((vm ?? vmi)?.metadata.creationTimestamp ?? ''),
    reason: '',
  };
}

/** How long, as kubectl writes it, in its largest two units at most: `45s`, `3m20s`, `5h`, `12d`. */
export function spanText(ms: number): string {
  if (!Number.isFinite(ms)) return '';
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (hours < 3) return `${minutes}m`;
  return hours < 48 ? `${hours}h` : `${days}d`;
}
