/**
 * What the eviction of a virt-launcher Pod means for its instance (KubeVirt's pod-eviction-admitter): go ahead, or
 * refuse with 429, and in some cases mark the instance so that somebody moves it away.
 */

import { hasEnded, isConditionTrue } from '@coracle/apimachinery/meta/object-state';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { EvictionStrategy, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { DOMAIN_ANNOTATION, LAUNCHER_LABEL, LAUNCHER_VALUE } from '../launcher/launcher-labels.ts';

const HOTPLUG = 'hotplug-disk';

export type EvictionDecision =
  /** The Pod may go: nothing here protects it. */
  | { readonly type: 'allow' }
  /** 429, and nothing changes. */
  | { readonly type: 'refuse'; readonly message: string }
  /** 429, once the instance carries `status.evacuationNodeName`. */
  | { readonly type: 'mark'; readonly nodeName: string; readonly message: string };

/** What kind of Pod an eviction is about, as far as KubeVirt cares. */
export type EvictedPod =
  | { readonly type: 'other' }
  | { readonly type: 'launcher'; readonly instance: string }
  /** Holds a volume for the launcher of that name. */
  | { readonly type: 'hotplug'; readonly launcher: string };

/** Tells launchers and their helpers from Pods that are no matter of KubeVirt. A Pod that has ended is none. */
export function evictedPodOf(pod: ReadonlyPod): EvictedPod {
  const app = pod.metadata.labels?.[LAUNCHER_LABEL];
  const [owner, ...more] = pod.metadata.ownerReferences ?? [];
  if (app === HOTPLUG && owner && more.length === 0) return { type: 'hotplug', launcher: owner.name };
  const instance = pod.metadata.annotations?.[DOMAIN_ANNOTATION];
  const isLauncher = app === LAUNCHER_VALUE && !hasEnded(pod);
  return isLauncher && instance !== undefined ? { type: 'launcher', instance } : { type: 'other' };
}

/** The strategy of an instance: its own, else the cluster's. */
export const evictionStrategyOf = (
  vmi: ReadonlyVmi,
  config: { readonly evictionStrategy: EvictionStrategy },
): EvictionStrategy => vmi.spec.evictionStrategy ?? config.evictionStrategy;

export const isMigratable = (vmi: ReadonlyVmi): boolean => isConditionTrue(vmi, 'LiveMigratable');

/** The decision on evicting the launcher of `vmi` from `nodeName`. */
export function evictionDecision({
  vmi,
  strategy,
  nodeName,
}: {
  readonly vmi: ReadonlyVmi;
  readonly strategy: EvictionStrategy;
  /** Where the evicted Pod runs. */
  readonly nodeName: string;
}): EvictionDecision {
  switch (strategy) {
    case 'None':
      return { type: 'allow' };
    case 'LiveMigrate':
      if (isMigratable(vmi)) break;
      return refuse(`VMI ${vmi.metadata.name} is configured with an eviction strategy but is not live-migratable`);
    case 'LiveMigrateIfPossible':
      if (isMigratable(vmi)) break;
      return { type: 'allow' };
    case 'External':
      break;
    default:
      return strategy satisfies never;
  }
  const message = `Eviction triggered evacuation of VMI "${vmi.metadata.namespace}/${vmi.metadata.name}"`;
  if (vmi.status?.evacuationNodeName)
    return refuse(`Evacuation in progress: ${message}${strategy === 'External' ? '' : lastFailure(vmi)}`);
  // The launcher that a migration brought up elsewhere: it is where the instance goes to.
  if ((vmi.status?.nodeName ?? '') !== nodeName) return refuse('Eviction request for target Pod');
  return { type: 'mark', nodeName, message };
}

const refuse = (message: string): EvictionDecision => ({ type: 'refuse', message });

const MAX_REASON = 300;

/**
 * Beyond upstream, behind its words (the descheduler looks for them anywhere in the text): who drains reads why it takes
 * so long. A migration that follows clears it, so that it stands there between the two.
 */
function lastFailure({ status }: ReadonlyVmi): string {
  const { failed, failureReason, endTimestamp } = status?.migrationState ?? {};
  if (failed !== true) return '';
  const reason = (failureReason ?? 'no reason given').slice(0, MAX_REASON);
  return `; its last migration failed${endTimestamp ? ` at ${endTimestamp}` : ''} and is tried again: ${reason}`;
}
