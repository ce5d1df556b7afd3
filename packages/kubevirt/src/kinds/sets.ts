/** VirtualMachineInstanceReplicaSet and VirtualMachineInstancePreset. */

import type { LabelSelector } from '@coracle/apimachinery/types/types';
import type { Static } from 'typebox';
import { domain } from './domain.ts';
import { bool, builtin, int, needed, object, str } from './fields.ts';
import { conditions } from './status.ts';
import { vmiTemplate } from './vmi-spec.ts';

const selector = (description: string) =>
  builtin<LabelSelector>('io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector', description);

export const replicaSetSpec = object('How many instances of what.', {
  replicas: int('Wanted number; 1 when absent.'),
  selector: needed(selector('Instances that count.')),
  template: needed(vmiTemplate),
  paused: bool('Leaves the instances as they are.'),
});

export const replicaSetStatus = object(
  'What is known of the set.',
  {
    replicas: int('Instances there are.'),
    readyReplicas: int('Instances that are ready.'),
    conditions,
    labelSelector: str('The selector as text.'),
  },
  { nullable: true },
);

export const presetSpec = object('Defaults for instances.', {
  selector: needed(selector('Instances it applies to.')),
  domain,
});

export type ReplicaSetSpec = Static<typeof replicaSetSpec>;
export type ReplicaSetStatus = Static<typeof replicaSetStatus>;
export type PresetSpec = Static<typeof presetSpec>;
