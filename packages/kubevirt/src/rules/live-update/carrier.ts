/**
 * What brings a change to a running guest: a migration to a launcher Pod of the new size, as upstream does it, or the
 * node the guest is on, which makes the Pod larger where it is.
 */

import { isConditionTrue, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyNode } from '@coracle/apimachinery/types/types';
import type { ReadonlyKubeVirt, ReadonlyVmi } from '../../kinds/kubevirt.ts';

export interface CarrierFacts {
  readonly kubevirt: ReadonlyKubeVirt | undefined;
  readonly nodes: readonly ReadonlyNode[];
}

/**
 * 'migration' where the cluster wants live updates by migration (workloadUpdateMethods has LiveMigrate), the guest can
 * move, and another node takes guests. Otherwise 'node': upstream would wait for a migration that nobody makes, or that
 * has nowhere to go.
 */
export function carrierOf(vmi: ReadonlyVmi, { kubevirt, nodes }: CarrierFacts): 'migration' | 'node' {
  const methods: readonly string[] = kubevirt?.spec?.workloadUpdateStrategy?.workloadUpdateMethods ?? [];
  const canMove = isConditionTrue(vmi, 'LiveMigratable');
  if (!methods.includes('LiveMigrate') || !canMove) return 'node';
  return nodes.some((node) => node.metadata.name !== vmi.status?.nodeName && takesGuests(node)) ? 'migration' : 'node';
}

const takesGuests = (node: ReadonlyNode): boolean =>
  node.metadata.labels?.['kubevirt.io/schedulable'] === 'true' &&
  !isDeleting(node) &&
  node.spec?.unschedulable !== true &&
  isConditionTrue(node, 'Ready');
