/** The controllers of kube-controller-manager by its names: what `--controllers` chooses from. */
import type { PolicyRule } from '@coracle/apimachinery/types/types';
import type { Runnable } from '@coracle/client/controller/environment';
import { claimFilesRules, createClaimFilesController } from './claim-files-controller.ts';
import {
  clusterRoleAggregationRules,
  createClusterRoleAggregationController,
} from './cluster-role-aggregation-controller.ts';
import { createDisruptionController, disruptionRules } from './disruption-controller.ts';
import { createEndpointSliceController, endpointSliceRules } from './endpoint-slice-controller.ts';
import { createEventTtlController, eventTtlRules } from './event-ttl-controller.ts';
import {
  createGarbageCollectorController,
  type GarbageCollectorOptions,
  garbageCollectorRules,
} from './garbage-collector-controller.ts';
import { createLoadBalancerController, loadBalancerRules } from './load-balancer-controller.ts';
import { createNamespaceController, type NamespaceControllerOptions, namespaceRules } from './namespace-controller.ts';
import { createNodeLifecycleController, nodeLifecycleRules } from './node-lifecycle-controller.ts';
import { createPodGcController, podGcRules } from './pod-gc-controller.ts';
import { createResourceQuotaController, resourceQuotaRules } from './resource-quota-controller.ts';
import { createRootCaController, rootCaRules } from './root-ca-controller.ts';
import { createServiceAccountController, serviceAccountRules } from './service-account-controller.ts';
import { createServiceCidrController, serviceCidrRules } from './service-cidr-controller.ts';
import {
  claimProtectionRules,
  createClaimProtectionController,
  createVolumeProtectionController,
  volumeProtectionRules,
} from './storage-protection-controllers.ts';
import { createTaintEvictionController, taintEvictionRules } from './taint-eviction-controller.ts';

export interface KubeControllerOptions extends NamespaceControllerOptions, GarbageCollectorOptions {
  /** PEM of the CA certificate that signed the API server's certificate. */
  readonly rootCa: string;
}

export interface KubeController {
  readonly name: string;
  /** The rights it needs, and no more. */
  readonly rules: readonly PolicyRule[];
  readonly create: (options: KubeControllerOptions) => Runnable;
}

/** All of them, in no particular order. */
export const kubeControllers: readonly KubeController[] = [
  { name: 'garbage-collector-controller', rules: garbageCollectorRules, create: createGarbageCollectorController },
  { name: 'namespace-controller', rules: namespaceRules, create: createNamespaceController },
  { name: 'serviceaccount-controller', rules: serviceAccountRules, create: createServiceAccountController },
  { name: 'service-cidr-controller', rules: serviceCidrRules, create: createServiceCidrController },
  { name: 'root-ca-certificate-publisher-controller', rules: rootCaRules, create: createRootCaController },
  { name: 'event-ttl-controller', rules: eventTtlRules, create: createEventTtlController },
  { name: 'node-lifecycle-controller', rules: nodeLifecycleRules, create: createNodeLifecycleController },
  { name: 'taint-eviction-controller', rules: taintEvictionRules, create: createTaintEvictionController },
  {
    name: 'clusterrole-aggregation-controller',
    rules: clusterRoleAggregationRules,
    create: createClusterRoleAggregationController,
  },
  { name: 'disruption-controller', rules: disruptionRules, create: createDisruptionController },
  { name: 'pod-garbage-collector-controller', rules: podGcRules, create: createPodGcController },
  { name: 'resourcequota-controller', rules: resourceQuotaRules, create: createResourceQuotaController },
  { name: 'service-lb-controller', rules: loadBalancerRules, create: createLoadBalancerController },
  { name: 'endpointslice-controller', rules: endpointSliceRules, create: createEndpointSliceController },
  {
    name: 'persistentvolumeclaim-protection-controller',
    rules: claimProtectionRules,
    create: createClaimProtectionController,
  },
  {
    name: 'persistentvolume-protection-controller',
    rules: volumeProtectionRules,
    create: createVolumeProtectionController,
  },
  { name: 'claim-files-controller', rules: claimFilesRules, create: createClaimFilesController },
];
