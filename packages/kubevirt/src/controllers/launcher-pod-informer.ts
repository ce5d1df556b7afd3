import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { Pod } from '@coracle/apimachinery/types/types';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { createInformer, type Informer, type InformerOptions } from '@coracle/client/informer/informer';
import type { ReadonlyVmi } from '../kinds/kubevirt.ts';
import { CREATED_BY_LABEL, LAUNCHER_LABEL, LAUNCHER_VALUE } from '../rules/launcher/launcher-labels.ts';
import { isLauncherOf } from '../rules/launcher/launcher-owner.ts';

/** The launcher Pods of an instance, running or ended. */
export const launchersOf = (pods: Informer<Pod>, vmi: ReadonlyVmi) =>
  pods.byIndex('instance', vmi.metadata.uid ?? '').filter((pod) => isLauncherOf(pod, vmi));

/** The launcher Pods alone, by the uid of their instance: of all Pods of a cluster they may be few. */
export const launcherPodInformer = (
  { client, clock, log }: ControllerEnvironment,
  indexes: InformerOptions<Pod>['indexes'] = {},
): Informer<Pod> =>
  createInformer(client, PODS, {
    clock,
    log,
    labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_VALUE}`,
    indexes: {
      instance: ({ metadata: { labels } }) => (labels?.[CREATED_BY_LABEL] ? [labels[CREATED_BY_LABEL]] : []),
      ...indexes,
    },
  });
