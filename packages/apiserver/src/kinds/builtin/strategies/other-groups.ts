/** The groups beside core, by group and plural name; `kind-facts.json` has what of a kind is no code. */
import { markCrdDeleted, setCrdDefaults } from '../../custom/crd-strategy.ts';
import { validateCrd } from '../../custom/crd-validation.ts';
import { formatWarnings, newFormatWarnings } from '../../custom/format-warnings.ts';
import * as cluster from '../defaults/cluster.ts';
import * as workloads from '../defaults/workloads.ts';
import { prepareNewApiService } from '../preparations/api-services.ts';
import { keepAllButApproval, keepDecisions, keepRequest } from '../preparations/certificate-requests.ts';
import { dropNewTopology, dropTopology } from '../preparations/endpoint-slices.ts';
import { prepareNewJob } from '../preparations/jobs.ts';
import * as policies from '../validation/admission-policies.ts';
import * as rules from '../validation/cluster.ts';
import { validateSlice } from '../validation/endpoints.ts';
import { validateStrictEvent } from '../validation/events.ts';
import { validateFlowSchema, validatePriorityLevel } from '../validation/flow-control.ts';
import { validateIpAddress, validateNetworkPolicy, validateServiceCidr } from '../validation/networking.ts';
import { validateStorageClass } from '../validation/storage.ts';
import { validateWebhooks } from '../validation/webhooks.ts';
import { addressTypeWarnings, endpointWarnings, networkPolicyWarnings } from '../warnings/network.ts';
import { storageClassWarnings } from '../warnings/storage.ts';
import type { Kinds } from './builtin-kind.ts';

export const OTHER_GROUPS: Kinds = {
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
    warningsOnCreate: formatWarnings,
    warningsOnUpdate: newFormatWarnings,
    // Upstream means to reset the metadata, and resets it to itself (kubernetes/kubernetes#137681).
    statusMetadata: 'accept',
    beginDeletion: markCrdDeleted,
  },
  'apiregistration.k8s.io/apiservices': {
    prepareForCreate: prepareNewApiService,
    validate: rules.validateApiService,
  },
  'apps/controllerrevisions': { validate: rules.validateControllerRevision },
  'apps/daemonsets': { setDefaults: workloads.setDaemonSet },
  'apps/deployments': {
    // Handed down to ReplicaSets, so they count as well.
    generationFollows: 'annotations',
    setDefaults: workloads.setDeployment,
  },
  'apps/replicasets': { setDefaults: workloads.setReplicaSet },
  'apps/statefulsets': { setDefaults: workloads.setStatefulSet },
  'autoscaling/horizontalpodautoscalers': { setDefaults: workloads.setAutoscaler },
  'batch/cronjobs': { setDefaults: workloads.setCronJob },
  'batch/jobs': {
    setDefaults: workloads.setJob,
    prepareForCreate: prepareNewJob,
    // Older than the garbage collector: clients of the first versions clean up by themselves.
    garbageCollection: 'orphan-dependents',
    warningOnDelete:
      'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
  },
  'certificates.k8s.io/certificatesigningrequests': {
    keepUnwritten: keepRequest,
    subresources: { approval: { keepUnwritten: keepAllButApproval }, status: { keepUnwritten: keepDecisions } },
  },
  'coordination.k8s.io/leases': { validate: rules.validateLease },
  'discovery.k8s.io/endpointslices': {
    // Proxies choose their slices by label, so those count as well.
    generationFollows: 'labels',
    prepareForCreate: dropTopology,
    prepareForUpdate: dropNewTopology,
    validate: validateSlice,
    warningsOnCreate: (slice) => [...addressTypeWarnings(slice), ...endpointWarnings(slice)],
    warningsOnUpdate: endpointWarnings,
  },
  'events.k8s.io/events': { validate: validateStrictEvent },
  'flowcontrol.apiserver.k8s.io/flowschemas': { validate: validateFlowSchema },
  'flowcontrol.apiserver.k8s.io/prioritylevelconfigurations': {
    setDefaults: cluster.setPriorityLevelDefaults,
    validate: validatePriorityLevel,
  },
  'networking.k8s.io/ipaddresses': { validate: validateIpAddress },
  'networking.k8s.io/networkpolicies': {
    setDefaults: cluster.setNetworkPolicyDefaults,
    validate: validateNetworkPolicy,
    warningsOnCreate: networkPolicyWarnings,
    warningsOnUpdate: networkPolicyWarnings,
  },
  'networking.k8s.io/servicecidrs': { validate: validateServiceCidr },
  'policy/poddisruptionbudgets': { validate: rules.validateBudget },
  'rbac.authorization.k8s.io/clusterrolebindings': {
    setDefaults: cluster.setBindingDefaults,
    validate: rules.validateClusterRoleBinding,
  },
  'rbac.authorization.k8s.io/clusterroles': { validate: rules.validateClusterRole },
  'rbac.authorization.k8s.io/rolebindings': {
    setDefaults: cluster.setBindingDefaults,
    validate: rules.validateRoleBinding,
  },
  'rbac.authorization.k8s.io/roles': { validate: rules.validateRole },
  'resource.k8s.io/resourceclaims': { setDefaults: cluster.setClaimOfDevicesDefaults },
  'resource.k8s.io/resourceclaimtemplates': { setDefaults: cluster.setDeviceTemplateDefaults },
  'scheduling.k8s.io/priorityclasses': { validate: rules.validatePriorityClass },
  'storage.k8s.io/storageclasses': {
    validate: validateStorageClass,
    warningsOnCreate: storageClassWarnings,
    warningsOnUpdate: storageClassWarnings,
  },
};
