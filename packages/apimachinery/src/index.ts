/** What other packages use of this one: nothing else is theirs to import. */
export { type ApplyResult, applyObject } from './apply/apply-object.ts';
export { applyConflictError } from './apply/conflict.ts';
export { type FieldSet, pathsOf, pathText } from './apply/field-set.ts';
export { type Manager, readManagers } from './apply/managers.ts';
export { mergeObjects } from './apply/merge.ts';
export type { Versions } from './apply/ownership.ts';
export { type TrackUpdateOptions, trackUpdate } from './apply/track-update.ts';
export { typingErrors, untypedConfig } from './apply/typing-errors.ts';
export {
  type CertificateRequest,
  checkRequestSignature,
  parseCertificateRequest,
} from './certificates/certificate-request.ts';
export { certificateValidity } from './certificates/certificate-validity.ts';
export { issuedCertificateProblem } from './certificates/issued-certificate.ts';
export {
  CLIENT_SIGNER,
  clientUsagesProblem,
  KUBELET_CLIENT_SIGNER,
  KUBELET_SERVING_SIGNER,
  kubeletClientProblem,
  kubeletServingProblem,
  LEGACY_SIGNER,
} from './certificates/kubelet-request.ts';
export { decodeBase64, decodeBase64Url, decodeLenientBase64Url, encodeBase64, encodeBase64Url } from './meta/base64.ts';
export { controllerReference } from './meta/controller-reference.ts';
export { cloneJson } from './meta/deep-clone.ts';
export { deepEqual } from './meta/deep-equal.ts';
export { eachFromBelow } from './meta/each-from-below.ts';
export { GENERATE_NAME_ATTEMPTS, generateName } from './meta/generate-name.ts';
export { goDuration, parseGoDuration, readGoDuration } from './meta/go-duration.ts';
export { goPlain, goTypeOf } from './meta/go-print.ts';
export { goJson, goNumber, goQuote, goQuoteAll, jsonKind, sortMembers } from './meta/go-text.ts';
export {
  apiVersionOf,
  type GroupVersionKind,
  parseApiVersion,
  qualifiedResource,
  type ResourceType,
} from './meta/gvk.ts';
export { type Address, formatAddress, isMapped, parseAddress } from './meta/ip-address.ts';
export { joinBytes } from './meta/join-bytes.ts';
export { encodeJsonInPieces } from './meta/json-pieces.ts';
export {
  CLUSTER_NAME_SELECTOR,
  CLUSTER_SELECTOR,
  DEPENDENTS,
  isGuardedLabel,
  isOwnAnnotation,
  isReserved,
  MANAGED,
  MANAGED_BY,
  NAMESPACE_SELECTOR,
  OWNING_INVENTORY,
  PART_OF,
  PROPAGATION_POLICY,
  withoutManagement,
} from './meta/management.ts';
export {
  byteLength,
  checkDns1035Label,
  checkDomainPath,
  checkLabelName,
  checkLabelValue,
  checkName,
  checkPathSegment,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
  checkSubdomainWithUnderscore,
} from './meta/name-rules.ts';
export {
  type DeepReadonly,
  formatMicroTime,
  formatTime,
  type KubeObject,
  keyOf,
  keyText,
  type ManagedFieldsEntry,
  type ObjectKey,
  type ObjectList,
  type ObjectMeta,
  type OwnerReference,
  type UnstructuredObject,
  type WatchEventType,
} from './meta/object.ts';
export { getOwn, isJsonObject, type JsonObject, setOwn } from './meta/own-property.ts';
export { NO_PAUSE, type Pause } from './meta/pause.ts';
export { keysOfLarge, nodesLeft } from './meta/small.ts';
export {
  ApiError,
  alreadyExists,
  badRequest,
  conflict,
  expired,
  type FieldError,
  type FieldErrorType,
  fieldErrorBody,
  forbidden,
  type GroupResource,
  internalError,
  invalid,
  methodNotAllowed,
  methodNotSupported,
  notFound,
  STALE_RESOURCE_VERSION,
  type Status,
  type StatusCause,
  type StatusDetails,
  tooLargeResourceVersion,
  unauthorized,
} from './meta/status.ts';
export {
  isUnqualifiedFinalizer,
  managedFieldsMistakes,
  UNQUALIFIED_FINALIZER,
  unqualifiedFinalizers,
  validateFieldManager,
  validateObjectMeta,
} from './meta/validate-object-meta.ts';
export { type VersionFacts, type VersionInfo, versionInfo } from './meta/version-info.ts';
export { createMergePatch } from './patch/create-merge-patch.ts';
export { applyJsonPatch, unknownMembers } from './patch/json-patch.ts';
export { applyMergePatch } from './patch/merge-patch.ts';
export { restoreProblem } from './patch/restore-problem.ts';
export { applyStrategicMergePatch } from './patch/strategic-merge-patch.ts';
export {
  addQuantity,
  compareQuantity,
  exceeds,
  formatQuantity,
  milliValue,
  parseQuantity,
  type Quantity,
  QuantityError,
  type QuantityFormat,
  quantityFromBytes,
  quantityFromMilli,
  quantityText,
  quantityToBytes,
  quantityValue,
  readQuantity,
  subtractQuantity,
  wholeUnits,
} from './quantity/quantity.ts';
export {
  type Amounts,
  beyond,
  fromAmounts,
  masked,
  minus,
  plus,
  printAmounts,
  sameAmounts,
  toAmounts,
  whole,
} from './quota/amounts.ts';
export { type QuotaEvaluator, quotaEvaluator, quotaMatches } from './quota/evaluator.ts';
export { type PodSpecParts, podAmounts } from './quota/pod-amounts.ts';
export { type QuotaSpec, scopesOf } from './quota/scopes.ts';
export { canonicalizeScalars } from './schema/canonical-scalars.ts';
export { decodeErrors, decodeProblem } from './schema/decode-errors.ts';
export { defaultedFields } from './schema/defaulted-fields.ts';
export { applyDefaults, dropMetadataNulls, dropNulls } from './schema/defaults.ts';
export { dropEmpty } from './schema/drop-empty.ts';
export { coerceEmbedded, embeddedErrors, hasEmbedded } from './schema/embedded-resource.ts';
export { emptyToNull, mayBecomeNull } from './schema/empty-to-null.ts';
export { formatCheck, isCheckedFormat } from './schema/formats.ts';
export { stableText } from './schema/list-types.ts';
export { CUSTOM_ROOT_SCHEMA, OBJECT_META_SCHEMA } from './schema/object-meta-schema.ts';
export {
  type NumberOptions,
  type ParsedJson,
  parseJson,
  parseJsonInPieces,
  parseStored,
  parseWide,
} from './schema/parse-json.ts';
export { compilePattern } from './schema/patterns.ts';
export { pruneUnknown } from './schema/prune.ts';
export { counterpart, hasMapLists, isSame, NO_COUNTERPART, OldItems } from './schema/ratcheting.ts';
export { parseYaml } from './schema/read-yaml.ts';
export { childSchemas } from './schema/resolve-definitions.ts';
export { JsonReader, locateInJson } from './schema/scan-json.ts';
export { isQuantitySchema, type Schema, UNSIGNED, type ValidationRule } from './schema/schema.ts';
export { createTreeSearch } from './schema/schema-reach.ts';
export { rangeOf, settleNumbers } from './schema/settle-numbers.ts';
export { validateSchema } from './schema/validate.ts';
export { type FieldRequirement, parseFieldSelector } from './selector/field-selector.ts';
export { labelHint } from './selector/label-hint.ts';
export {
  EVERYTHING,
  formatLabelSelector,
  fromLabelSelectorObject,
  type LabelOperator,
  type LabelSelector,
  type LabelSelectorObject,
  matchesLabels,
  NOTHING,
  parseLabelSelector,
} from './selector/label-selector.ts';
export type {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
  WebhookClientConfig,
} from './types/access-types.ts';
export {
  VALIDATING_ADMISSION_POLICIES,
  VALIDATING_ADMISSION_POLICY_BINDINGS,
  type ValidatingAdmissionPolicy,
  type ValidatingAdmissionPolicyBinding,
} from './types/admission-policies.ts';
export { type ReviewRequest, readReview, reviewAnswer, reviewProblem } from './types/admission-review.ts';
export { age, ageSince, humanDuration } from './types/age.ts';
export { builtinKindOf, builtinSchema, builtinTypeName, hasBuiltinType } from './types/builtin-types.ts';
export { keepsZero } from './types/kept-zeros.ts';
export {
  isObject,
  isTrueAt,
  type JsonObject as JsonRecord,
  listAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from './types/read-value.ts';
export {
  type PrinterColumn,
  type RemoteConversion,
  type ResourceInfo,
  type ScalePaths,
  type StoredView,
  type SubresourceInfo,
  storagePrefix,
  type TableRows,
} from './types/resource.ts';
export {
  API_SERVICES,
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  CONFIG_MAPS,
  CONTROLLER_REVISIONS,
  CUSTOM_RESOURCE_DEFINITIONS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  EVENTS,
  IP_ADDRESSES,
  LEASES,
  NAMESPACES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  RESOURCE_CLAIMS,
  RESOURCE_QUOTAS,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  SELF_SUBJECT_ACCESS_REVIEWS,
  SERVICE_ACCOUNTS,
  SERVICE_CIDRS,
  SERVICES,
  STORAGE_CLASSES,
} from './types/resource-types.ts';
export {
  addressOf,
  belongsTo,
  canDeleteCidr,
  clusterIpsOf,
  DEFAULT_SERVICE_CIDR,
  DEFAULT_SERVICE_CIDR_NAME,
  firstServiceIp,
  formatIpRange,
  type IpAddress,
  type IpRange,
  isAllocatedAddress,
  isReadyCidr,
  parseIpRange,
  rangeHolds,
  rangesOf,
  rangesOverlap,
  type ServiceCidr,
} from './types/service-cidrs.ts';
export {
  type CommitChange,
  type CommitPart,
  customStrategy,
  defineStrategy,
  type KindStrategy,
  keepStatus,
  type ResourceName,
  type ResourceStrategy,
  type UpdateStrategy,
  updateStrategyOf,
  type ValidationAbout,
} from './types/strategy.ts';
export type {
  Affinity,
  Binding,
  Condition,
  ConfigMap,
  Container,
  ContainerState,
  ContainerStatus,
  ControllerRevision,
  EndpointSlice,
  EndpointSubset,
  Endpoints,
  Event,
  Eviction,
  ExecAction,
  HTTPGetAction,
  IntOrString,
  Lease,
  LeaseSpec,
  LocalObjectReference,
  Namespace,
  Node,
  NodeCondition,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  NodeStatus,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodAffinityTerm,
  PodCondition,
  PodDisruptionBudget,
  PodStatus,
  ResourceList,
  ResourceQuota,
  ResourceRequirements,
  Secret,
  Service,
  StorageClass,
  Taint,
  TaintEffect,
  TCPSocketAction,
  Toleration,
  TopologySpreadConstraint,
  TypedLocalObjectReference,
} from './types/types.ts';
export {
  attributesClassOf,
  claimsOfPod,
  classNameOf,
  holdingOf,
  mismatchOf,
  namesNoClass,
} from './types/volume-claims.ts';
export { validateAffinity, validateRequiredNodes, validateTopologySpread } from './validation/affinity.ts';
export {
  absent,
  addAll,
  duplicate,
  faults,
  forbidden as forbiddenField,
  IMMUTABLE,
  immutable,
  invalid as invalidField,
  isPort,
  nonNegative,
  oneOf,
  PORT_RANGE,
  required,
  requiredText,
  sortedKeys,
  tooLong,
  tooMany,
  uniqueNames,
  unsupported,
  unsupportedInOrder,
  type Validate,
  validateEach,
  validateImmutable,
  validateLabels,
  validateNested,
} from './validation/field-errors.ts';
export { validateToleration } from './validation/tolerations.ts';
