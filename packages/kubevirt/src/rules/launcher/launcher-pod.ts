/** The virt-launcher Pod of an instance: pure, upstream's labels, annotations and shape. */

import { controllerReference } from '@coracle/apimachinery/meta/controller-reference';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import type { Container, Pod, ReadonlyPod } from '@coracle/apimachinery/types/types';
import type { ReadonlyVmi } from '../../kinds/kubevirt.ts';
import type { PodSizing } from '../machine-defaults/cluster-config.ts';
import { FAIL_FAST_HOOK, SIMULATE_CRASH } from './functional-test-hooks.ts';
import { guestConsoleLog } from './guest-console-log.ts';
import {
  CREATED_BY_LABEL,
  DOMAIN_ANNOTATION,
  LAUNCHER_LABEL,
  LAUNCHER_VALUE,
  UNPAUSED_GATE,
  VM_NAME_LABEL,
  VMI_ID_LABEL,
} from './launcher-labels.ts';
import {
  CONFINED,
  isGuaranteed,
  LAUNCHER_USER,
  launcherResources,
  type NamespaceLimits,
} from './launcher-resources.ts';
import { launcherVolumes } from './launcher-volumes.ts';
import { NETWORKS_ANNOTATION, networksAnnotation } from './network-attachments.ts';
import { launcherAffinity, launcherNodeSelector, type MemoryPlace, type NodeSelectorOptions } from './node-selector.ts';

export interface LauncherPodOptions extends NodeSelectorOptions, NamespaceLimits, PodSizing {
  /** Value of `vmi.kubevirt.io/id`. */
  readonly idLabel: string;
  readonly useEmulation: boolean;
  /** Reference of the launcher image, for the record: nothing pulls it. */
  readonly launcherImage: string;
  /** False where instances that do not say have no log of the serial line; true when absent. */
  readonly serialConsoleLog?: boolean;
  /** Name of the claim with the firmware state, where the instance has one. */
  readonly stateClaim?: string | undefined;
  /** Where the memory is that the guest goes on from. */
  readonly memoryPlace?: MemoryPlace | undefined;
  /** The gate FunctionalTestHooks; off when absent. */
  readonly functionalTestHooks?: boolean;
  /** Runtime class of the cluster's launchers; the cluster's default runtime when absent. */
  readonly runtimeClass?: string | undefined;
  /** Seccomp profile of the cluster's launchers; none is named when absent. */
  readonly seccompProfile?: NonNullable<NonNullable<Pod['spec']['securityContext']>['seccompProfile']> | undefined;
}

type Spec = ReadonlyVmi['spec'];

/** Seconds upstream grants the launcher beyond the guest's own grace period. */
const GRACE_PADDING = 30;
const DEFAULT_GRACE = 30;

/** The guest's own grace period in seconds, as its launcher Pod tells it. */
export const guestGraceSeconds = ({ spec }: ReadonlyPod): number =>
  Math.max(0, (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE + GRACE_PADDING) - GRACE_PADDING);

/** Builds the Pod. */
export function launcherPod(vmi: ReadonlyVmi, options: LauncherPodOptions): Pod {
  const { spec } = vmi;
  const name = vmi.metadata.name ?? '';
  const { requests, limits, overheadBytes } = launcherResources(spec, options);
  const annotations = Object.fromEntries(
    Object.entries(vmi.metadata.annotations ?? {}).filter(
      ([key]) => !key.startsWith('kubectl.kubernetes.io/') && !key.endsWith('-observed-api-version'),
    ),
  );
  const compute: Container = {
    name: 'compute',
    image: options.launcherImage,
    imagePullPolicy: 'IfNotPresent',
    command: [
      '/usr/bin/virt-launcher-monitor',
      '--uid',
      vmi.metadata.uid ?? '',
      '--namespace',
      vmi.metadata.namespace ?? '',
      '--name',
      name,
      ...(options.useEmulation ? ['--allow-emulation'] : []),
      ...(options.functionalTestHooks && annotations[FAIL_FAST_HOOK] !== undefined ? [SIMULATE_CRASH] : []),
    ],
    resources: { requests, limits },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
      privileged: false,
      runAsGroup: LAUNCHER_USER,
      runAsNonRoot: true,
      runAsUser: LAUNCHER_USER,
    },
  };
  const ports = computePorts(spec);
  if (ports.length > 0) compute.ports = ports;
  const volumes = launcherVolumes(spec, options.stateClaim);
  const consoleLog = guestConsoleLog(vmi, options);
  const networks = networksAnnotation(vmi);
  const affinity = launcherAffinity(spec, options.memoryPlace);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      generateName: `virt-launcher-${name}-`,
      namespace: vmi.metadata.namespace ?? '',
      labels: {
        ...vmi.metadata.labels,
        [LAUNCHER_LABEL]: LAUNCHER_VALUE,
        [CREATED_BY_LABEL]: vmi.metadata.uid ?? '',
        [VMI_ID_LABEL]: options.idLabel,
        [VM_NAME_LABEL]: options.idLabel,
      },
      annotations: {
        ...annotations,
        ...(networks !== undefined && { [NETWORKS_ANNOTATION]: networks }),
        [DOMAIN_ANNOTATION]: name,
        'kubectl.kubernetes.io/default-container': 'compute',
        'kubevirt.io/migrationTransportUnix': 'true',
        'descheduler.alpha.kubernetes.io/request-evict-only': '',
        'kubevirt.io/memory-overhead-bytes': String(overheadBytes),
      },
      ownerReferences: [controllerReference(vmi)],
    },
    spec: {
      restartPolicy: 'Never',
      readinessGates: [{ conditionType: UNPAUSED_GATE }],
      enableServiceLinks: false,
      // A token shown to the guest is one the Pod has: with it come the account and the CA of the API server.
      automountServiceAccountToken: spec.volumes?.some((volume) => volume.serviceAccount) ?? false,
      terminationGracePeriodSeconds: (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE) + GRACE_PADDING,
      hostname:
        spec.hostname ||
        name
          .slice(0, 63)
          .replace(/[^a-z0-9-]/g, '-')
          .replace(/-+$/, ''),
      ...(spec.subdomain && { subdomain: spec.subdomain }),
      securityContext: {
        fsGroup: LAUNCHER_USER,
        runAsGroup: LAUNCHER_USER,
        runAsNonRoot: true,
        runAsUser: LAUNCHER_USER,
        ...(options.seccompProfile && { seccompProfile: options.seccompProfile }),
      },
      ...(options.runtimeClass && { runtimeClassName: options.runtimeClass }),
      ...(consoleLog && { initContainers: [consoleLog] }),
      containers: [compute, ...diskContainers(spec)],
      nodeSelector: launcherNodeSelector(vmi, options),
      ...(affinity && { affinity }),
      ...(spec.tolerations && { tolerations: cloneJson(spec.tolerations) as NonNullable<Pod['spec']['tolerations']> }),
      ...(spec.topologySpreadConstraints && {
        topologySpreadConstraints: cloneJson(spec.topologySpreadConstraints) as NonNullable<
          Pod['spec']['topologySpreadConstraints']
        >,
      }),
      ...(spec.schedulerName && { schedulerName: spec.schedulerName }),
      ...(spec.priorityClassName && { priorityClassName: spec.priorityClassName }),
      ...(spec.dnsPolicy && { dnsPolicy: spec.dnsPolicy as NonNullable<Pod['spec']['dnsPolicy']> }),
      ...(spec.dnsConfig && { dnsConfig: cloneJson(spec.dnsConfig) as NonNullable<Pod['spec']['dnsConfig']> }),
      ...serviceAccount(spec),
      ...pullSecrets(spec),
      ...(volumes.length > 0 && { volumes }),
    },
  };
}

/** The ports that interfaces name, in order: a Service may name one of them as its targetPort. */
const computePorts = ({ domain }: Spec): NonNullable<Container['ports']> =>
  (domain?.devices?.interfaces ?? [])
    .flatMap(({ ports = [] }) => ports)
    .map(({ name, port, protocol }) => ({
      ...(name && { name }),
      containerPort: port,
      protocol: (protocol || 'TCP') as 'TCP' | 'UDP',
    }));

/** One container a containerDisk (and one for an external kernel): the agent pulls their images. */
function diskContainers(spec: Spec): Container[] {
  const containers: Container[] = [];
  const limits = { cpu: '10m', memory: '40M' };
  const requests = isGuaranteed(spec) ? limits : { cpu: '1m', memory: '1M' };
  const add = (name: string, image: string, imagePullPolicy: string | undefined): void => {
    containers.push({
      name,
      image,
      ...(imagePullPolicy && { imagePullPolicy: imagePullPolicy as NonNullable<Container['imagePullPolicy']> }),
      command: ['/usr/bin/container-disk'],
      resources: { requests: { ...requests, 'ephemeral-storage': '50M' }, limits: { ...limits } },
      securityContext: { ...CONFINED },
    });
  };
  for (const volume of spec.volumes ?? [])
    if (volume.containerDisk)
      add(`volume${volume.name}`, volume.containerDisk.image, volume.containerDisk.imagePullPolicy);
  const kernel = spec.domain?.firmware?.kernelBoot?.container;
  if (kernel) add('kernel-boot', kernel.image, kernel.imagePullPolicy);
  return containers;
}

/** The account whose token a serviceAccount volume shows to the guest. */
function serviceAccount(spec: Spec): Pick<Pod['spec'], 'serviceAccountName'> {
  const inVolume = spec.volumes?.find((volume) => volume.serviceAccount)?.serviceAccount;
  const name = spec.serviceAccountName ?? inVolume?.serviceAccountName;
  return name ? { serviceAccountName: name } : {};
}

function pullSecrets(spec: Spec): Pick<Pod['spec'], 'imagePullSecrets'> {
  const kernel = spec.domain?.firmware?.kernelBoot?.container;
  const images = [...(spec.volumes ?? []).map(({ containerDisk }) => containerDisk), kernel];
  const names = new Set(images.flatMap((image) => image?.imagePullSecret || []));
  return names.size === 0 ? {} : { imagePullSecrets: [...names].map((name) => ({ name })) };
}
