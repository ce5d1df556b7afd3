/**
 * How each built-in kind departs from the common behaviour of the registry: generation, status, deletes, updates and
 * names, as data. The facts are those of the strategies under pkg/registry of Kubernetes 1.36.
 */
import type { ResourceStrategy } from '@coracle/apimachinery/types/resource';

const set = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** `resource.group`, or the bare resource of the core group. */
const GENERATION_BY_SPEC = set(`
  pods replicationcontrollers deployments.apps replicasets.apps statefulsets.apps daemonsets.apps
  jobs.batch cronjobs.batch ingresses.networking.k8s.io ingressclasses.networking.k8s.io
  networkpolicies.networking.k8s.io poddisruptionbudgets.policy
  mutatingadmissionpolicies.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io
  customresourcedefinitions.apiextensions.k8s.io
  flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
  csidrivers.storage.k8s.io deviceclasses.resource.k8s.io resourceslices.resource.k8s.io`);

/** Kinds that count changes without having a `spec`. */
const GENERATION_BY_CONTENT = set(`
  podtemplates endpointslices.discovery.k8s.io
  mutatingwebhookconfigurations.admissionregistration.k8s.io
  validatingwebhookconfigurations.admissionregistration.k8s.io`);

/** Kinds that begin to count, and never go on. */
const GENERATION_ONE = set('priorityclasses.scheduling.k8s.io');

/** Definitions are not among them: upstream resets their metadata to itself (kubernetes/kubernetes#137681). */
const STATUS_RESETS_METADATA = set(`
  servicecidrs.networking.k8s.io resourceclaims.resource.k8s.io volumeattachments.storage.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io apiservices.apiregistration.k8s.io
  flowschemas.flowcontrol.apiserver.k8s.io prioritylevelconfigurations.flowcontrol.apiserver.k8s.io`);

/** A kubelet registers its node with capacity and conditions in one create. */
const STATUS_TAKEN_ON_CREATE = set('nodes');

const DELETE_RETURNS_OBJECT = set(`
  pods services namespaces persistentvolumes persistentvolumeclaims podtemplates resourcequotas serviceaccounts
  storageclasses.storage.k8s.io csidrivers.storage.k8s.io csinodes.storage.k8s.io csistoragecapacities.storage.k8s.io
  volumeattachments.storage.k8s.io volumeattributesclasses.storage.k8s.io
  deviceclasses.resource.k8s.io resourceclaims.resource.k8s.io resourceclaimtemplates.resource.k8s.io
  resourceslices.resource.k8s.io`);

const UPDATE_NEEDS_VERSION = set(`
  customresourcedefinitions.apiextensions.k8s.io apiservices.apiregistration.k8s.io leases.coordination.k8s.io
  mutatingwebhookconfigurations.admissionregistration.k8s.io
  validatingwebhookconfigurations.admissionregistration.k8s.io
  mutatingadmissionpolicies.admissionregistration.k8s.io mutatingadmissionpolicybindings.admissionregistration.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io validatingadmissionpolicybindings.admissionregistration.k8s.io
  poddisruptionbudgets.policy runtimeclasses.node.k8s.io csidrivers.storage.k8s.io csinodes.storage.k8s.io
  csistoragecapacities.storage.k8s.io volumeattachments.storage.k8s.io`);

const CREATED_BY_UPDATE = set(`
  roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io
  clusterrolebindings.rbac.authorization.k8s.io leases.coordination.k8s.io events events.events.k8s.io endpoints
  services limitranges runtimeclasses.node.k8s.io`);

/** Every other kind asks for a name (limitrange/strategy.go). */
const NAMES_ITSELF = set('limitranges');
const LABEL_NAMES = set('namespaces services');
const PATH_SEGMENT_NAMES = set(`
  roles.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io rolebindings.rbac.authorization.k8s.io
  clusterrolebindings.rbac.authorization.k8s.io ipaddresses.networking.k8s.io apiservices.apiregistration.k8s.io
  events certificatesigningrequests.certificates.k8s.io`);

/** Older than the garbage collector: clients of their first versions clean up by themselves. */
const ORPHANS_DEPENDENTS: ReadonlyMap<string, NonNullable<ResourceStrategy['orphansDependents']>> = new Map([
  ['replicationcontrollers', {}],
  [
    'jobs.batch',
    {
      warning:
        'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning',
    },
  ],
]);

const generationOf = (key: string): ResourceStrategy['generation'] =>
  GENERATION_BY_SPEC.has(key)
    ? 'spec'
    : GENERATION_BY_CONTENT.has(key)
      ? 'except-status'
      : GENERATION_ONE.has(key)
        ? 'one'
        : 'none';

/** The strategy of one built-in resource. */
export function strategyOf(resource: {
  readonly group: string;
  readonly resource: string;
  readonly hasStatus: boolean;
}): ResourceStrategy {
  const key = resource.group === '' ? resource.resource : `${resource.resource}.${resource.group}`;
  const orphansDependents = ORPHANS_DEPENDENTS.get(key);
  return {
    generation: generationOf(key),
    statusSubresource: resource.hasStatus,
    statusOnCreate: STATUS_TAKEN_ON_CREATE.has(key) ? 'take' : 'drop',
    statusMetadata: STATUS_RESETS_METADATA.has(key) ? 'reset' : 'accept',
    deleteReturnsObject: DELETE_RETURNS_OBJECT.has(key),
    unconditionalUpdate: !UPDATE_NEEDS_VERSION.has(key),
    createOnUpdate: CREATED_BY_UPDATE.has(key),
    custom: false,
    names: LABEL_NAMES.has(key) ? 'label' : PATH_SEGMENT_NAMES.has(key) ? 'path-segment' : 'subdomain',
    ...(NAMES_ITSELF.has(key) && { namesItself: true }),
    ...(orphansDependents && { orphansDependents }),
  };
}
