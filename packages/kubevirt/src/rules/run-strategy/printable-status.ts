/** status.printableStatus of a VirtualMachine: the first rule that matches, in upstream's order. */
import { isFinal } from '@coracle/apimachinery/meta/object-state';
import type { RunStrategy } from './run-strategy.ts';
import { RETRIED } from './start-failure.ts';

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
}

export interface PrintableInput {
  readonly deleting: boolean;
  readonly strategy: RunStrategy;
  readonly instance:
    | {
        readonly phase: string;
        readonly deleting: boolean;
        readonly migrating: boolean;
        readonly conditions: readonly Condition[];
      }
    | undefined;
  /** The controller has decided to create, or to delete, an instance in this pass. */
  readonly expects: 'create' | 'delete' | undefined;
  readonly failCount: number;
  /** Of DataVolumes. */
  readonly disks?: 'error' | 'provisioning' | 'binding' | 'ready' | undefined;
}

type Rule = readonly [status: string, applies: (input: PrintableInput) => boolean];

const condition = ({ instance }: PrintableInput, type: string): Condition | undefined =>
  instance?.conditions.find((c) => c.type === type);
/** A condition is false, for this reason. */
const isFalse = (input: PrintableInput, type: string, reason: string): boolean => {
  const found = condition(input, type);
  return found?.status === 'False' && found.reason === reason;
};
/** What node-lifecycle writes on Pods of a node that is silent, and the instance shows. */
const NODE_NOT_READY = 'NodeNotReady';

const RULES: readonly Rule[] = [
  ['Terminating', ({ deleting }) => deleting],
  [
    'Stopping',
    ({ instance, expects }) =>
      instance !== undefined && !isFinal(instance.phase) && (instance.deleting || expects === 'delete'),
  ],
  ['Migrating', ({ instance }) => instance?.migrating === true],
  // Its node is silent: whether it runs, nobody can say. Upstream has the word and goes on saying Running.
  ['Unknown', (input) => input.instance?.phase === 'Running' && condition(input, 'Ready')?.reason === NODE_NOT_READY],
  ['Paused', (input) => input.instance?.phase === 'Running' && condition(input, 'Paused')?.status === 'True'],
  ['Running', ({ instance }) => instance?.phase === 'Running'],
  ['ErrorPvcNotFound', (input) => isFalse(input, 'Synchronized', 'FailedPvcNotFound')],
  ['DataVolumeError', ({ disks }) => disks === 'error'],
  // Before the Pod's own word, which is but that its volumes are not bound yet (upstream has it the other way round).
  ['Provisioning', ({ disks }) => disks === 'provisioning'],
  ['ErrorUnschedulable', (input) => isFalse(input, 'PodScheduled', 'Unschedulable')],
  [
    'WaitingForVolumeBinding',
    ({ disks, instance, expects }) => disks === 'binding' && (!!instance || expects === 'create'),
  ],
  ['ErrImagePull', (input) => isFalse(input, 'Synchronized', 'ErrImagePull')],
  ['ImagePullBackOff', (input) => isFalse(input, 'Synchronized', 'ImagePullBackOff')],
  [
    'Starting',
    ({ instance, expects }) =>
      (instance !== undefined && ['', 'Pending', 'Scheduling', 'Scheduled'].includes(instance.phase)) ||
      expects === 'create',
  ],
  [
    'CrashLoopBackOff',
    ({ instance, strategy, failCount }) =>
      (instance === undefined || isFinal(instance.phase)) && failCount > 0 && RETRIED.has(strategy),
  ],
  ['Stopped', ({ instance }) => instance === undefined || isFinal(instance.phase)],
  [
    'WaitingForReceiver',
    ({ strategy, instance }) => strategy === 'WaitAsReceiver' && instance?.phase === 'WaitingForSync',
  ],
];

/** The status word. */
export const printableStatus = (input: PrintableInput): string =>
  RULES.find(([, applies]) => applies(input))?.[0] ?? 'Unknown';
