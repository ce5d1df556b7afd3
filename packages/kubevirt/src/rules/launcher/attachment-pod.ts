/**
 * The Pod that holds the claims of volumes which are plugged into a running guest: a launcher's own volumes cannot change,
 * and nor can those of this Pod, so that another one takes its place when a volume comes or goes. It brings what a Pod
 * brings to a claim: a node (also for one that waits for its first consumer), the right of that node to read it, and
 * protection from deletion.
 */
import { controllerOf, controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { hasEnded, isDeleting } from '@coracle/apimachinery/meta/object-state';
import type { Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyKubeVirt, ReadonlyVmi } from '../../kinds/kubevirt.ts';
import { sha256 } from '../identity/sha256.ts';
import { LAUNCHER_LABEL } from './launcher-labels.ts';

const encoder = new TextEncoder();

/** Value of the label `kubevirt.io` of these Pods. */
export const ATTACHMENT_VALUE = 'hotplug-disk';
const OWNER_NAME = 'kubevirt.io/owner-vmi-name';
const OWNER_UID = 'kubevirt.io/owner-vmi-uid';
const USER = 107;
const REQUESTS = { cpu: '10m', memory: '2M' };
const LIMITS = { cpu: '100m', memory: '80M' };

/** True for a Pod that says it holds volumes for a launcher. */
export const isAttachment = ({ metadata }: ReadonlyPod): boolean =>
  metadata.labels?.[LAUNCHER_LABEL] === ATTACHMENT_VALUE;

/** Name of the instance that the Pod says it is for; undefined where it says none. */
export const attachedInstance = ({ metadata }: ReadonlyPod): string | undefined => metadata.annotations?.[OWNER_NAME];

/** A volume of an instance, and the claim it is of. */
export interface AttachedVolume {
  readonly name: string;
  readonly claimName: string;
  readonly isBlock: boolean;
}

/** The volumes that the Pod holds, where it is one of this instance and a launcher of it owns it. */
export function attachedVolumes(
  pod: ReadonlyPod,
  vmi: ReadonlyVmi,
  launchers: readonly ReadonlyPod[],
): readonly AttachedVolume[] | undefined {
  const owner = controllerOf(pod, 'Pod');
  const isOurs =
    isAttachment(pod) &&
    pod.metadata.namespace === vmi.metadata.namespace &&
    pod.metadata.annotations?.[OWNER_UID] === vmi.metadata.uid &&
    launchers.some(({ metadata }) => metadata.uid === owner?.uid);
  if (!isOurs) return undefined;
  const blocks = new Set(pod.spec.containers[0]?.volumeDevices?.map(({ name }) => name));
  return (pod.spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim }) =>
    persistentVolumeClaim ? [{ name, claimName: persistentVolumeClaim.claimName, isBlock: blocks.has(name) }] : [],
  );
}

/** Its name: the same whenever the same volumes are asked for, so that two passes make one Pod. */
export function attachmentPodName({ metadata }: ReadonlyPod, volumes: readonly AttachedVolume[]): string {
  const held = volumes.map(({ name, claimName }) => `${name} ${claimName}`).sort();
  return `hp-volume-${(metadata.uid ?? '').slice(0, 8)}-${sha256(encoder.encode(held.join(' '))).slice(0, 10)}`;
}

/** True for a Pod whose volumes its node may use: its containers run, and nobody takes it away. */
export const holdsVolumes = (pod: ReadonlyPod): boolean =>
  pod.status?.phase === 'Running' && !isDeleting(pod) && !hasEnded(pod);

/** Builds the Pod for volumes of the instance, beside the launcher that its guest runs in. */
export function attachmentPod(
  vmi: ReadonlyVmi,
  launcher: ReadonlyPod,
  volumes: readonly AttachedVolume[],
  kubeVirt?: ReadonlyKubeVirt,
): Pod {
  const set = kubeVirt?.spec.configuration?.supportContainerResources?.find(({ type }) => type === ATTACHMENT_VALUE);
  const devices = volumes.filter(({ isBlock }) => isBlock);
  const mounts = volumes.filter(({ isBlock }) => !isBlock);
  const node = launcher.spec.nodeName ?? '';
  const image = launcher.spec.containers.find((container) => container.name === 'compute')?.image ?? '';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: attachmentPodName(launcher, volumes),
      namespace: vmi.metadata.namespace ?? '',
      labels: { [LAUNCHER_LABEL]: ATTACHMENT_VALUE },
      annotations: { [OWNER_NAME]: vmi.metadata.name ?? '', [OWNER_UID]: vmi.metadata.uid ?? '' },
      ownerReferences: [controllerReference({ ...launcher, apiVersion: 'v1', kind: 'Pod' })],
    },
    spec: {
      restartPolicy: 'Never',
      enableServiceLinks: false,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { fsGroup: USER, runAsGroup: USER, runAsNonRoot: true, runAsUser: USER },
      containers: [
        {
          name: 'hotplug-disk',
          image,
          command: ['/bin/sh', '-c', '/usr/bin/container-disk --copy-path /path/hp'],
          resources: {
            requests: { ...REQUESTS, ...set?.resources.requests },
            limits: { ...LIMITS, ...set?.resources.limits },
          },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'] },
            runAsNonRoot: true,
            runAsUser: USER,
          },
          ...(devices.length > 0 && {
            volumeDevices: devices.map(({ name }) => ({ name, devicePath: `/path/${name}` })),
          }),
          ...(mounts.length > 0 && { volumeMounts: mounts.map(({ name }) => ({ name, mountPath: `/${name}` })) }),
        },
      ],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
          },
        },
      },
      tolerations: [{ operator: 'Exists' }],
      volumes: volumes.map(({ name, claimName }) => ({ name, persistentVolumeClaim: { claimName } })),
    },
  };
}
