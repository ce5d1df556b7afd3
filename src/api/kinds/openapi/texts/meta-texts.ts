/**
 * Our own one-line descriptions: fields that say the same wherever they stand (`*`), and the types of apimachinery.
 * The notation is that of `type-texts.ts`.
 */
export const META_TEXTS = `
@*
*:
  lastTransitionTime: When status last changed.
  lastUpdateTime: When the condition was last written.
  lastProbeTime: When it was last looked at.
  lastHeartbeatTime: When it was last reported.
  message: For people to read: what happened, or how things stand.
  reason: One CamelCase word for programs: why.
  observedGeneration: The metadata.generation that this was worked out from.
  conditions: What is true of the object at present, one entry for each type.
  name: The name.
  namespace: The namespace.
  uid: The uid.
  kind: The kind.
  apiVersion: The group and version.
  apiGroup: The API group; empty for the core group.
  group: The API group; empty for the core group.
  selector: The labels that choose the objects.
  readOnly: Whether it can only be read.
  fsType: The file system that is on the volume, or is made on it.
  secretRef: The Secret with the credentials.
  optional: Whether it may be missing.
  replicas: The number of copies.
  metadata: The labels and annotations that what is made from here gets.
  template: What the Pods that are made look like.
  minReadySeconds: How long a new Pod must be ready before it counts as available.
  revisionHistoryLimit: How many old revisions are kept.
  collisionCount: How often a made-up name was already taken.
  items: The entries.
  expression: An expression in CEL.
@meta
APIGroup: The name and the versions of an API group.
  preferredVersion: The version to use when there is no reason for another.
  serverAddressByClientCIDRs: Which address clients of a network should use.
  versions: The versions that are served.
APIGroupList: The API groups that are served.
  groups: One entry for each group.
APIResource: What can be done with a resource and how it is called.
  categories: The words that name many resources at once, as in kubectl get all.
  group: The group of the kind, when it is another than that of the list.
  name: The plural, as it stands in paths.
  namespaced: Whether objects live in namespaces.
  shortNames: Shorter names that kubectl takes.
  singularName: The singular.
  storageVersionHash: Changes when objects are stored in another version.
  verbs: What can be done with it.
  version: The version of the kind, when it is another than that of the list.
APIResourceList: The resources of a group version.
  groupVersion: The group version they belong to.
  resources: One entry for each resource.
APIVersions: The versions of the core group.
  serverAddressByClientCIDRs: Which address clients of a network should use.
  versions: The versions that are served.
Condition: One thing that is true, false or unknown of an object.
  status: True, False or Unknown.
  type: What the condition is about.
DeleteOptions: How an object is deleted.
  dryRun: All runs every step and stores nothing.
  gracePeriodSeconds: How long the object may take to end; 0 means at once.
  ignoreStoreReadErrorWithClusterBreakingPotential: Deletes an object that cannot be read any more, without finalizers.
  orphanDependents: Deprecated: use propagationPolicy.
  preconditions: Delete only if this holds.
  propagationPolicy: What becomes of dependents: Orphan, Background or Foreground.
FieldSelectorRequirement, LabelSelectorRequirement: A key, values, and how they must relate.
  key: The key that is compared.
  operator: In, NotIn, Exists or DoesNotExist.
  values: What to compare with; empty for Exists and DoesNotExist.
FieldsV1: The paths of fields, as a tree.
GroupResource: A resource and its group.
  resource: The plural of the resource.
GroupVersionForDiscovery: A group version, written in two ways.
  groupVersion: Group and version with a slash between.
  version: The version alone.
LabelSelector: Chooses objects by labels; all that is given must hold, and an empty one chooses everything.
  matchExpressions: Conditions on keys and values.
  matchLabels: Labels that must be there with just these values.
ListMeta: What a list says about itself.
  continue: The token by which the next page is asked for; empty on the last one.
  remainingItemCount: About how many objects come after this page.
  resourceVersion: The revision that the list shows; a watch can begin there.
  selfLink: Not filled any more.
  shardInfo: Which part of the objects the list was restricted to.
ManagedFieldsEntry: The fields that one manager has set by one way of writing.
  apiVersion: The version that the field paths are written in.
  fieldsType: How fieldsV1 is to be read; always FieldsV1.
  fieldsV1: The fields, as a tree.
  manager: Who wrote them.
  operation: Apply for server-side apply, else Update.
  subresource: The subresource that was written to; empty for the object itself.
  time: When the manager last changed this set.
MicroTime: A time with microseconds.
ObjectMeta: What every stored object says about itself.
OwnerReference: An object that this one belongs to, in the same namespace or without one.
  apiVersion: The group and version of the owner.
  blockOwnerDeletion: Whether the owner stays, when it is deleted in the foreground, until this object is gone.
  controller: Whether the owner is the one that manages this object.
  kind: The kind of the owner.
  name: The name of the owner.
  uid: The uid of the owner.
Patch: A change to an object, in the form that Content-Type names.
Preconditions: What must hold before a change is made.
  resourceVersion: The revision the object must have.
  uid: The uid the object must have.
ServerAddressByClientCIDR: The address that clients of one network should use.
  clientCIDR: The network of the clients.
  serverAddress: The host, or host and port, to use.
ShardInfo: The part of a resource that a list was restricted to.
  selector: The selector of that part.
Status: The outcome of a call that gives no object.
  code: The HTTP status code.
  details: More about the reason, for programs.
  status: Success or Failure.
StatusCause: One cause of a failure.
  field: The path of the field it is about.
StatusDetails: What a failure was about.
  causes: The single causes.
  kind: The kind, or the resource, it was about.
  name: The name of the object.
  retryAfterSeconds: How long to wait before trying again.
  uid: The uid of the object.
Time: A time in RFC 3339, to the second.
WatchEvent: A change that a watch reports.
  object: The object after the change, or a Status for an error.
  type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
@runtime
RawExtension: An object of any kind.
@intstr
IntOrString: A number, or a text such as a name or a percentage.
@resourceresource
Quantity: An amount with a unit, such as 500m, 2Gi or 4.
@version
Info: Which program answers.
  buildDate: When it was built.
  compiler: What it was built with.
  emulationMajor, emulationMinor: The version whose behaviour it shows.
  gitCommit: The commit it was built from.
  gitTreeState: Whether there were changes on top of the commit.
  gitVersion: The whole version.
  goVersion: The version of the language.
  major, minor: A part of the version.
  minCompatibilityMajor, minCompatibilityMinor: The oldest version it works together with.
  platform: The operating system and the processor.
`;
