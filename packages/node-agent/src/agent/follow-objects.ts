/** Pods of the node and instances on it or on their way to it, and which launcher hears of which. */
import { PODS } from '@coracle/apimachinery/types/resource-types';
import type { ReadonlyPod } from '@coracle/apimachinery/types/types';
import { createInformer } from '@coracle/client/informer/informer';
import { VIRTUAL_MACHINE_INSTANCES } from '@coracle/kubevirt/kinds/kinds';
import { isExporter } from '@coracle/kubevirt/rules/export/exporter-pod';
import { isUid } from '../disk/vm-directory.ts';
import type { AgentEnvironment } from './environment.ts';
import type { LauncherSet } from './launcher/launcher-set.ts';
import { createUnmanagedPodStatus, isLauncher, releaseProgramAddresses } from './registration/other-pods.ts';

const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
const MIGRATION_TARGET_LABEL = 'kubevirt.io/migrationTargetNodeName';

/** Nothing is asked before `start`. */
export function followObjects(environment: AgentEnvironment, launchers: LauncherSet) {
  const { client, nodeName, clock, log } = environment;
  const pods = createInformer(client, PODS, { fieldSelector: `spec.nodeName=${nodeName}`, clock, log });
  const labelled = (label: string) =>
    createInformer(client, VIRTUAL_MACHINE_INSTANCES, { labelSelector: `${label}=${nodeName}`, clock, log });
  // Instances on their way here carry the name of another node until they have come.
  const [vmis, arriving] = [labelled(NODE_NAME_LABEL), labelled(MIGRATION_TARGET_LABEL)];
  const reportUnmanaged = createUnmanagedPodStatus(environment);
  const take = (pod: ReadonlyPod, uid: string): void => {
    const launcher = launchers.launch(environment, uid, { pod });
    const { namespace } = pod.metadata;
    for (const vmi of [...vmis.list(namespace), ...arriving.list(namespace)]) launcher.observeVmi(vmi);
  };
  pods.onChange(({ type, object }) => {
    const uid = object.metadata.uid ?? '';
    if (!isLauncher(object)) {
      if (type !== 'deleted') reportUnmanaged(object);
      else if (isExporter(object)) void releaseProgramAddresses(environment, pods.list());
      return;
    }
    const launcher = launchers.get(uid);
    if (launcher) launcher.observePod(type === 'deleted' ? undefined : object);
    else if (type !== 'deleted' && isUid(uid)) take(object, uid);
  });
  for (const informer of [vmis, arriving])
    informer.onChange(({ type, object }) => {
      // One that lost our label is no news: only its deletion mark is, and that comes as a change.
      if (type !== 'deleted') launchers.observeVmi(object);
    });
  const all = [pods, vmis, arriving];
  return {
    /** The Pods of this node. */
    pods: (): readonly ReadonlyPod[] => pods.list(),
    /** Resolves when all has ended, after the signal. */
    start: (signal: AbortSignal): Promise<unknown> => Promise.all(all.map((informer) => informer.start(signal))),
    /** Resolves when all is known that there is. */
    async synced(signal: AbortSignal): Promise<void> {
      await Promise.all(all.map((informer) => informer.synced(signal)));
      await releaseProgramAddresses(environment, pods.list());
    },
  };
}

export type FollowedObjects = ReturnType<typeof followObjects>;
