/** VirtualMachinePool: as many equal virtual machines as are asked for (pool.kubevirt.io). */

import type { LabelSelector, NodeSelectorRequirement } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import {
  anyObject,
  atomicList,
  bool,
  builtin,
  count,
  duration,
  flag,
  int,
  intOrString,
  list,
  needed,
  object,
  oneOf,
  str,
} from './fields.ts';
import { condition } from './status.ts';
import { vmSpec } from './vm.ts';
import type { TemplateMeta } from './vmi-spec.ts';

export const SORT_POLICIES = ['AscendingOrder', 'DescendingOrder', 'Newest', 'Oldest', 'Random'] as const;
export const STATE_PRESERVATIONS = ['Disabled', 'Offline', 'Online'] as const;

const labelSelector = (description: string) =>
  builtin<LabelSelector>('io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector', description);

const selectionPolicy = object('Which machines come first.', {
  sortPolicy: oneOf(SORT_POLICIES, 'Their order; Random when absent.', { enforced: true }),
  selectors: object('Only machines that match all that is given here.', {
    labelSelector: labelSelector('Labels of the machine.'),
    nodeSelectorRequirementMatcher: list(
      builtin<NodeSelectorRequirement>('io.k8s.api.core.v1.NodeSelectorRequirement', 'One requirement.'),
      'Labels of the node that the machine runs on.',
    ),
  }),
});
const unmanaged = flag('The pool leaves it to people.');
const statePreservation = oneOf(
  STATE_PRESERVATIONS,
  'What is kept of machines that go: Disabled nothing, Offline their claims, Online their memory too.',
  { enforced: true },
);

export const poolSpec = object('How many virtual machines of what.', {
  replicas: int('Wanted number; 1 when absent.', { minimum: 0 }),
  selector: needed(labelSelector('Machines that count; never changes.')),
  virtualMachineTemplate: needed(
    object('What each machine is made from.', {
      metadata: anyObject<TemplateMeta>('Metadata of the machines.', { nullable: true }),
      spec: vmSpec,
    }),
  ),
  paused: bool('Leaves the machines as they are.'),
  nameGeneration: object('What else gets the number of the machine.', {
    appendIndexToConfigMapRefs: bool('Names of ConfigMaps in the template end with it.'),
    appendIndexToSecretRefs: bool('Names of Secrets in the template end with it.'),
  }),
  maxUnavailable: intOrString('Machines that may be not ready while they are updated; 100% when absent, at least 1.'),
  scaleInStrategy: object('How surplus machines go; one member only, proactive when absent.', {
    unmanaged,
    opportunistic: object('Machines go once they are stopped.', { statePreservation }),
    proactive: object('Machines are stopped and deleted.', { selectionPolicy, statePreservation }),
  }),
  updateStrategy: object('How a new template reaches machines; one member only, proactive when absent.', {
    unmanaged,
    opportunistic: flag('Machines are changed, and get it when they are started anew.'),
    proactive: object('Machines are changed and started anew.', { selectionPolicy }),
  }),
  autohealing: object('When a machine that cannot start is replaced by a new one.', {
    startUpFailureThreshold: count('Failed starts in a row; 3 when absent.', { minimum: 1 }),
    minFailingToStartDuration: duration('How long it has not been ready; 5m when absent.'),
  }),
});

export const poolStatus = object(
  'What is known of the pool.',
  {
    replicas: int('Machines there are.'),
    readyReplicas: int('Machines that are ready.'),
    conditions: atomicList(condition, 'Observed aspects.'),
    labelSelector: str('The selector as text.'),
  },
  { nullable: true },
);

export type PoolSpec = Static<typeof poolSpec>;
export type PoolStatus = Static<typeof poolStatus>;
