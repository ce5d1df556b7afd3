/**
 * Our own one-line descriptions, where a line helps `kubectl explain`: kinds and the fields every kind has. Those of
 * apiVersion, metadata and creationTimestamp begin with the words that upstream's test of `kubectl explain` looks for.
 */

const FIELDS: Readonly<Record<string, string>> = {
  apiVersion: 'APIVersion defines the schema, by group and version, that this object is written in.',
  kind: 'The kind of this object, in CamelCase.',
  metadata: "Standard object's metadata: name, namespace, labels, annotations, owners.",
  spec: 'The state that is wanted.',
  status: 'The state that was observed; written by the system.',
};

const METADATA: Readonly<Record<string, string>> = {
  annotations: 'Free text by key, for tools and people; nothing can be selected by it.',
  creationTimestamp: 'CreationTimestamp is a timestamp of the moment at which the server made the object.',
  deletionGracePeriodSeconds: 'How long the object may still stay after deletionTimestamp was set.',
  deletionTimestamp: 'When the object is to go; set by the server when somebody deletes it.',
  finalizers: 'Who has something to do before the object may go; it stays until the list is empty.',
  generateName: 'The beginning of a name that the server completes when name is empty.',
  generation: 'Counts the changes of what is wanted.',
  labels: 'Keys and values that objects are selected by.',
  managedFields: 'Which manager has set which field; kept by the server for server-side apply.',
  name: 'The name, unique among objects of its kind in its namespace; it does not change.',
  namespace: 'The namespace that the name is unique in; empty for objects of the whole cluster.',
  ownerReferences: 'The objects that this one belongs to; it is collected when all of them are gone.',
  resourceVersion: 'The revision of the last change; opaque, for comparing and for watches.',
  selfLink: 'Not filled any more.',
  uid: 'Tells this object from others that had or will have the same name.',
};

const KINDS: Readonly<Record<string, string>> = {
  Pod: 'A group of containers that run together on one node.',
  Node: 'A machine on which Pods run.',
  Namespace: 'A scope for names: objects in one namespace do not clash with those in another.',
  ConfigMap: 'Configuration as keys and values, for Pods to read.',
  Secret: 'Sensitive data as keys and base64 values.',
  Service: 'A stable name and address for a set of Pods.',
  ServiceAccount: 'An identity for programs that talk to the API.',
  Event: 'A report that something happened to an object.',
  Endpoints: 'The addresses behind a Service.',
  PersistentVolume: 'A piece of storage that outlives Pods.',
  PersistentVolumeClaim: 'A request for storage.',
  ReplicationController: 'Keeps a number of equal Pods running; ReplicaSet is its successor.',
  ResourceQuota: 'A limit on what a namespace may use in total.',
  LimitRange: 'Limits and defaults for single containers, Pods and claims of a namespace.',
  PodTemplate: 'A stored template for Pods.',
  Deployment: 'Keeps equal Pods running and rolls out new versions of them.',
  ReplicaSet: 'Keeps a number of equal Pods running.',
  StatefulSet: 'Runs Pods that keep their names and their storage.',
  DaemonSet: 'Runs one Pod on every matching node.',
  ControllerRevision: 'An immutable snapshot of a state, kept by a controller.',
  Job: 'Runs Pods until a number of them succeeded.',
  CronJob: 'Creates Jobs on a schedule.',
  HorizontalPodAutoscaler: 'Sets the replicas of a workload from measured load.',
  Lease: 'A claim to a role that its holder renews.',
  Role: 'A set of permissions within a namespace.',
  ClusterRole: 'A set of permissions for the whole cluster.',
  RoleBinding: 'Gives the permissions of a role to subjects within a namespace.',
  ClusterRoleBinding: 'Gives the permissions of a cluster role to subjects everywhere.',
  StorageClass: 'A way in which storage is provisioned.',
  PriorityClass: 'A name for a Pod priority.',
  PodDisruptionBudget: 'How many Pods of a set may be down by choice at a time.',
  Ingress: 'Routes for HTTP traffic from outside to Services.',
  NetworkPolicy: 'Which traffic may reach or leave a set of Pods.',
  EndpointSlice: 'A part of the addresses behind a Service.',
  CustomResourceDefinition: 'Adds a kind to the API.',
  APIService: 'A group version of the API and the server that answers for it.',
  ValidatingWebhookConfiguration: 'Web services that may refuse requests.',
  MutatingWebhookConfiguration: 'Web services that may change requests.',
  ValidatingAdmissionPolicy: 'Rules in CEL by which requests are refused.',
  MutatingAdmissionPolicy: 'Rules in CEL by which requests are changed.',
  CertificateSigningRequest: 'A request to have a certificate signed.',
};

/** A line about a field of a top-level kind. */
export const fieldDescription = (field: string): string | undefined =>
  Object.hasOwn(FIELDS, field) ? FIELDS[field] : undefined;

/** A line about a field of ObjectMeta. */
export const metadataDescription = (field: string): string | undefined =>
  Object.hasOwn(METADATA, field) ? METADATA[field] : undefined;

/** A line about a kind. */
export function kindDescription(kind: string): string {
  if (Object.hasOwn(KINDS, kind)) return KINDS[kind] ?? '';
  return kind.endsWith('List') ? `A list of ${kind.slice(0, -4)} objects.` : `The kind ${kind}.`;
}
