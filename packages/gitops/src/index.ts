/** What other packages use of this one: nothing else is theirs to import. */
export { createKindCatalog } from './apply/kind-catalog.ts';
export { readDirectory } from './git/read-directory.ts';
export { shownUrl } from './git/repository-url.ts';
export { SourceError } from './git/source.ts';
export { decideDelete } from './guard/decide-delete.ts';
export { GUARD_NAME, guardHookName, isGuardOn, refusalOfWrite } from './guard/decide-write.ts';
export {
  type DeclareOptions,
  declareSource,
  parseSource,
  type SourceFormat,
  type SourceLayout,
  type SourceSet,
} from './hierarchy/declare-source.ts';
export { clusterNamesOf } from './hierarchy/select-cluster.ts';
export { configSyncCrds } from './kinds/definitions.ts';
export {
  CONFIG_SYNC_GROUP,
  CONFIG_SYNC_NAMESPACE,
  type ObjectRef,
  REPO_SYNCS,
  RESOURCE_GROUPS,
  type ResourceGroup,
  type ResourceStatus,
  ROOT_SYNCS,
  type StageStatus,
  type Sync,
  type SyncCondition,
  type SyncConditionType,
  type SyncError,
} from './kinds/kinds.ts';
export type { KindLookup } from './plan/declare.ts';
export type { Declared } from './plan/declared.ts';
export type { ParsedSource } from './render/parse-manifests.ts';
export { render } from './render/render.ts';
export { type IgnoredKind, ignoredKinds } from './server-fields/ignore-rules.ts';
export { EACH, serverFieldAt } from './server-fields/server-fields.ts';
export {
  DECLARED_VERSION,
  DEPENDENTS,
  DEPTH_SUFFIX,
  FIELD_MANAGER,
  HNC_MANAGED_BY,
  MANAGED,
  MANAGED_BY,
  MANAGER,
  SOURCE_PATH,
  TOKEN,
} from './status/metadata-keys.ts';
export { SyncFailure } from './status/sync-error.ts';
export { type Attempt, attemptsOf } from './status/sync-history.ts';
export { type SyncIdentity, syncOfManager } from './status/sync-identity.ts';
export { createGitOpsMetrics } from './status/sync-metrics.ts';
export type { ForecastAction, ForecastItem } from './sync/forecast.ts';
export { createGitOpsController } from './sync/gitops-controller.ts';
export { gitopsNamespaceRules, gitopsRules } from './sync/gitops-rules.ts';
export { syncsToWaitFor } from './sync/ordered-syncs.ts';
export { type Preview, previewSync } from './sync/preview.ts';
