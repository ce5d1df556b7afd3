/**
 * What built-in kinds do otherwise than most, by plural name, behind their group where it is not the core group
 * (pkg/registry of upstream). `kind-facts.json` has what of a kind is no code.
 */
import { keepStatus } from '@coracle/apimachinery/types/strategy';
import { markCrdDeleted, setCrdDefaults } from '../../custom/crd-strategy.ts';
import { validateCrd } from '../../custom/crd-validation.ts';
import { formatWarnings } from '../../custom/format-warnings.ts';
import * as clusterDefaults from '../defaults/cluster.ts';
import * as coreDefaults from '../defaults/core.ts';
import * as workloads from '../defaults/workloads.ts';
import { prepareNewApiService } from '../preparations/api-services.ts';
import * as prepareCore from '../preparations/core.ts';
import * as prepare from '../preparations/other-groups.ts';
import * as policies from '../validation/admission-policies.ts';
import { validateClaim } from '../validation/claims.ts';
import * as rules from '../validation/cluster.ts';
import { validateConfigMap, validateNamespace, validateSecret } from '../validation/core.ts';
import { validateEndpoints, validateSlice } from '../validation/endpoints.ts';
import { validateEvent, validateStrictEvent } from '../validation/events.ts';
import { validateFlowSchema, validatePriorityLevel } from '../validation/flow-control.ts';
import { validateLimitRange } from '../validation/limit-range.ts';
import { validateIpAddress, validateNetworkPolicy, validateServiceCidr } from '../validation/networking.ts';
import { validateVolume } from '../validation/persistent-volumes.ts';
import { validateResourceQuota } from '../validation/resource-quota.ts';
import { validateStorageClass } from '../validation/storage.ts';
import { validateWebhooks } from '../validation/webhooks.ts';
import * as coreWarnings from '../warnings/core.ts';
import { networkPolicyWarnings, sliceWarnings, subsetWarnings } from '../warnings/network.ts';
import type { Kinds } from './builtin-kind.ts';
import { POD } from './pods.ts';
import { SERVICE } from './services.ts';

export const KINDS: Kinds = {
  configmaps: { validate: validateConfigMap },
  endpoints: { validate: validateEndpoints, warnings: subsetWarnings },
  events: { validate: validateEvent },
  limitranges: {
    // Every other kind asks for a name.
    namesItself: true,
    setDefaults: coreDefaults.setLimitRangeDefaults,
    validate: validateLimitRange,
  },
  namespaces: {
    setDefaults: coreDefaults.setNamespaceDefaults,
    prepareForCreate: prepareCore.prepareNewNamespace,
    keepUnwritten: prepareCore.keepFinalizers,
    validate: validateNamespace,
    subresources: { finalize: { keepUnwritten: keepStatus } },
    isHeld: prepareCore.isHeldByFinalizers,
    markDeleted: prepareCore.markTerminating,
  },
  nodes: {
    // A kubelet registers its node with capacity and conditions in one create.
    statusOnCreate: 'take',
    setDefaults: coreDefaults.setNodeDefaults,
    prepareForCreate: (node) => prepareCore.dropConfiguration(node),
    prepareForUpdate: prepareCore.dropConfiguration,
    validate: rules.validateNode,
    warnings: coreWarnings.nodeWarnings,
    subresources: { status: { prepareForUpdate: prepareCore.dropConfiguration } },
  },
  persistentvolumeclaims: {
    prepareForCreate: prepareCore.prepareNewClaim,
    prepareForUpdate: prepareCore.prepareClaim,
    validate: validateClaim,
    warnings: coreWarnings.volumeClaimWarnings,
  },
  persistentvolumes: {
    prepareForCreate: prepareCore.prepareNewVolume,
    validate: validateVolume,
    warnings: coreWarnings.volumeWarnings,
    subresources: { status: { prepareForUpdate: prepareCore.prepareVolumeStatus } },
  },
  pods: POD,
  podtemplates: { setDefaults: coreDefaults.setTemplateDefaults },
  replicationcontrollers: {
    setDefaults: coreDefaults.setReplicationControllerDefaults,
    // Older than the garbage collector: clients of the first versions clean up by themselves.
    garbageCollection: 'orphan-dependents',
  },
  resourcequotas: { validate: validateResourceQuota },
  secrets: { setDefaults: coreDefaults.setSecretDefaults, validate: validateSecret },
  serviceaccounts: {
    prepareForCreate: prepareCore.nameSecrets,
    prepareForUpdate: prepareCore.nameSecrets,
    warnings: coreWarnings.accountWarnings,
  },
  services: SERVICE,
  'admissionregistration.k8s.io/mutatingadmissionpolicies': { validate: policies.validateMutatingPolicy },
  'admissionregistration.k8s.io/mutatingadmissionpolicybindings': { validate: policies.validateMutatingBinding },
  'admissionregistration.k8s.io/mutatingwebhookconfigurations': { validate: validateWebhooks },
  'admissionregistration.k8s.io/validatingadmissionpolicies': { validate: policies.validateValidatingPolicy },
  'admissionregistration.k8s.io/validatingadmissionpolicybindings': { validate: policies.validateValidatingBinding },
  'admissionregistration.k8s.io/validatingwebhookconfigurations': { validate: validateWebhooks },
  'apiextensions.k8s.io/customresourcedefinitions': {
    setDefaults: setCrdDefaults,
    // All that the type asks for is asked by the kind's own rules, under the paths and in the words of upstream.
    validateSchema: () => [],
    validate: validateCrd,
    warnings: formatWarnings,
    // Upstream means to reset the metadata, and resets it to itself (kubernetes/kubernetes#137681).
    statusMetadata: 'accept',
    beginDeletion: markCrdDeleted,
  },
  'apiregistration.k8s.io/apiservices': { prepareForCreate: prepareNewApiService, validate: rules.validateApiService },
  'apps/controllerrevisions': { validate: rules.validateControllerRevision },
  'apps/daemonsets': { setDefaults: workloads.setWorkload },
  'apps/deployments': {
    // Handed down to ReplicaSets, so they count as well.
    generationFollows: 'annotations',
    setDefaults: workloads.setWorkload,
  },
  'apps/replicasets': { setDefaults: workloads.setWorkload },
  'apps/statefulsets': { setDefaults: workloads.setStatefulSet },
  'autoscaling/horizontalpodautoscalers': { setDefaults: workloads.setAutoscaler },
  'batch/cronjobs': { setDefaults: workloads.setCronJob },
  'batch/jobs': {
    setDefaults: workloads.setJob,
    prepareForCreate: prepare.prepareNewJob,
    // Older than the garbage collector: clients of the first versions clean up by themselves.
    garbageCollection: 'orphan-dependents',
  },
  'certificates.k8s.io/certificatesigningrequests': {
    keepUnwritten: prepare.keepRequest,
    subresources: {
      approval: { keepUnwritten: prepare.keepAllButApproval },
      status: { keepUnwritten: prepare.keepDecisions },
    },
  },
  'coordination.k8s.io/leases': { validate: rules.validateLease },
  'discovery.k8s.io/endpointslices': {
    // Proxies choose their slices by label, so those count as well.
    generationFollows: 'labels',
    prepareForCreate: prepare.dropTopology,
    prepareForUpdate: prepare.dropNewTopology,
    validate: validateSlice,
    warnings: sliceWarnings,
  },
  'events.k8s.io/events': { validate: validateStrictEvent },
  'flowcontrol.apiserver.k8s.io/flowschemas': { validate: validateFlowSchema },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': { validate: validatePriorityLevel },
  'networking.k8s.io/ipaddresses': { validate: validateIpAddress },
  'networking.k8s.io/networkpolicies': {
    setDefaults: clusterDefaults.setNetworkPolicyDefaults,
    validate: validateNetworkPolicy,
    warnings: networkPolicyWarnings,
  },
  'networking.k8s.io/servicecidrs': { validate: validateServiceCidr },
  'policy/poddisruptionbudgets': { validate: rules.validateBudget },
  'rbac.authorization.k8s.io/clusterrolebindings': {
    setDefaults: clusterDefaults.setBindingDefaults,
    validate: rules.validateClusterRoleBinding,
  },
  'rbac.authorization.k8s.io/clusterroles': { validate: rules.validateClusterRole },
  'rbac.authorization.k8s.io/rolebindings': {
    setDefaults: clusterDefaults.setBindingDefaults,
    validate: rules.validateRoleBinding,
  },
  'rbac.authorization.k8s.io/roles': { validate: rules.validateRole },
  'resource.k8s.io/resourceclaims': { setDefaults: clusterDefaults.setClaimOfDevicesDefaults },
  'resource.k8s.io/resourceclaimtemplates': { setDefaults: clusterDefaults.setDeviceTemplateDefaults },
  'scheduling.k8s.io/priorityclasses': { validate: rules.validatePriorityClass },
  'storage.k8s.io/storageclasses': { validate: validateStorageClass, warnings: coreWarnings.storageClassWarnings },
};
