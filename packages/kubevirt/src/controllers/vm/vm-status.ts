/** status of a VirtualMachine, computed from the VM and its instance: pure. */

import { formatTime } from '@coracle/apimachinery/meta/object';
import { conditionOf, isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyVmi, VirtualMachine } from '../../kinds/kubevirt.ts';
import { DATA_VOLUMES_READY, type DiskState } from '../../rules/data-volume/readiness.ts';
import { DUPLICATE_FIRMWARE_UUID, FIRMWARE_UUID_IN_USE } from '../../rules/identity/shared-uuids.ts';
import { printableStatus } from '../../rules/run-strategy/printable-status.ts';
import { effectiveRunStrategy, openRequests } from '../../rules/run-strategy/run-strategy.ts';
import { nextStartFailure, type StartFailure } from '../../rules/run-strategy/start-failure.ts';
import { everRan, generationOf, phaseOf, viewOf } from './vm-view.ts';

type Status = NonNullable<VirtualMachine['status']>;
type Condition = NonNullable<Status['conditions']>[number];
type Timeless = Omit<Condition, 'lastTransitionTime'>;

/** A failed step of this pass, shown as the Failure condition. */
export interface SyncFailure {
  readonly reason: string;
  readonly message: string;
}

/** Upstream's text for a change that nothing but a restart applies. */
export const NOT_LIVE_UPDATABLE = 'a non-live-updatable field was changed in the template spec';

export interface StatusInput {
  /** The VM being edited: its status is replaced field by field. */
  readonly vm: VirtualMachine;
  readonly instance: ReadonlyVmi | undefined;
  readonly expects: 'create' | 'delete' | undefined;
  readonly failure: SyncFailure | undefined;
  /** Why only a restart brings what the machine says now. */
  readonly restartRequired: string | undefined;
  /** What its DataVolumes are; undefined while nobody has looked. */
  readonly disks?: DiskState | undefined;
  /** Why the machine waits for one of them. */
  readonly diskProblem?: string | undefined;
  /** Who else has the machine's firmware UUID; undefined when nobody has. */
  readonly duplicateUuid?: string | undefined;
  readonly now: number;
  readonly random: number;
}

/** Conditions the VM controller itself owns; all others mirror the instance's and go with it. */
const OWN = new Set([
  'Ready',
  'Failure',
  'RestartRequired',
  'ManualRecoveryRequired',
  'Initialized',
  DUPLICATE_FIRMWARE_UUID,
]);

/** Writes the computed fields into `vm.status`. Unchanged conditions keep their times. */
export function applyVmStatus(input: StatusInput): void {
  const { vm, instance, now } = input;
  vm.status ??= {} as Status;
  const status = vm.status;
  const strategy = effectiveRunStrategy(vm.spec);
  const view = instance && viewOf(instance);

  // What is false is left out, as upstream's types write it.
  if (instance) status.created = true;
  else delete status.created;
  if (isConditionTrue(instance, 'Ready')) status.ready = true;
  else delete status.ready;
  if (instance) status.runStrategy = strategy as NonNullable<Status['runStrategy']>;
  if (vm.metadata.generation !== undefined) status.desiredGeneration = vm.metadata.generation;
  // What runs was made from, not what the controller has seen (upstream's meaning); without an instance it stays.
  const observed = generationOf(instance);
  if (observed !== undefined) status.observedGeneration = observed;

  const open = openRequests((status.stateChangeRequests ?? []) as Parameters<typeof openRequests>[0], view, strategy);
  if (open.length > 0) status.stateChangeRequests = open as NonNullable<Status['stateChangeRequests']>;
  else delete status.stateChangeRequests;

  const failure = nextStartFailure({
    failure: status.startFailure as StartFailure | undefined,
    strategy,
    instance: instance && { uid: instance.metadata.uid ?? '', phase: phaseOf(instance), everRan: everRan(instance) },
    now,
    random: input.random,
  });
  if (failure) status.startFailure = failure;
  else delete status.startFailure;

  status.conditions = mergeConditions(status.conditions ?? [], wantedConditions(input), now);
  status.printableStatus = printableStatus({
    deleting: isDeleting(vm),
    strategy,
    instance: instance && {
      phase: phaseOf(instance),
      deleting: isDeleting(instance),
      migrating:
        instance.status?.migrationState?.startTimestamp != null && instance.status.migrationState.endTimestamp == null,
      conditions: instance.status?.conditions ?? [],
    },
    expects: input.expects,
    disks: input.disks,
    failCount: failure?.consecutiveFailCount ?? 0,
  }) as NonNullable<Status['printableStatus']>;
}

function wantedConditions(input: StatusInput): Timeless[] {
  const { vm, instance, failure, restartRequired, duplicateUuid, diskProblem } = input;
  const wanted: Timeless[] = [];
  const ready = conditionOf(instance, 'Ready');
  const add = (type: string, status: 'True' | 'False', reason: string, message: string | undefined): void => {
    if (message !== undefined) wanted.push({ type, status, reason, message });
  };
  if (!instance) add('Ready', 'False', 'VMINotExists', 'VMI does not exist');
  else if (!ready) add('Ready', 'False', 'VMIConditionMissing', 'VMI is missing the Ready condition');
  else wanted.push(withoutTime(ready));
  if (failure) add('Failure', 'True', failure.reason, failure.message);
  add('RestartRequired', 'True', 'RestartRequired', restartRequired);
  add(DUPLICATE_FIRMWARE_UUID, 'True', FIRMWARE_UUID_IN_USE, duplicateUuid);
  // Machines have no instance before their disks are filled: why it waits stands here, under the instance's own condition.
  add(DATA_VOLUMES_READY, 'False', 'NotAllDVsReady', diskProblem);
  const kept = conditionOf(vm, 'ManualRecoveryRequired');
  if (kept) wanted.push(withoutTime(kept));
  for (const condition of instance?.status?.conditions ?? [])
    if (!OWN.has(condition.type) && !wanted.some(({ type }) => type === condition.type))
      wanted.push(withoutTime(condition));
  return wanted;
}

const withoutTime = ({ type, status, reason, message }: Timeless): Timeless => ({
  type,
  status,
  ...(reason !== undefined && { reason }),
  ...(message !== undefined && { message }),
});

/** Sets each wanted condition; its time moves only when its status does. */
function mergeConditions(have: readonly Condition[], wanted: readonly Timeless[], now: number): Condition[] {
  return wanted.map((condition) => {
    const known = have.find(({ type, status }) => type === condition.type && status === condition.status);
    const lastTransitionTime = known?.lastTransitionTime || formatTime(now);
    return { ...condition, lastTransitionTime, lastProbeTime: null } as unknown as Condition;
  });
}
