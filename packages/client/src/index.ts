/** What other packages use of this one: nothing else is theirs to import. */
export {
  isAlreadyExists,
  isApiError,
  isConflict,
  isNamespaceTerminating,
  isNotFound,
  orAbsent,
} from './api-failure.ts';
export type { Client, DeleteCallOptions, JsonPatchOperation, Patch, WatchCallOptions, WatchEvent } from './client.ts';
export { commit } from './commit/commit.ts';
export { changed, hasNullInList, statusPatch } from './commit/status-patch.ts';
export type { AskAgent } from './controller/ask-agent.ts';
export {
  type Controller,
  controllerOwner,
  createController,
  DONE,
  ownKeys,
  type ReconcileContext,
  type ReconcileResult,
  requeueAfter,
  type Source,
  source,
} from './controller/controller.ts';
export type { ControllerEnvironment, Runnable } from './controller/environment.ts';
export { TerminalError } from './controller/terminal-error.ts';
export { createClient } from './create-client.ts';
export { type DiscoveredResource, type Discovery, discover, findKind, preferredWith } from './discovery/discover.ts';
export { createEventRecorder, type EventRecorder, type EventType } from './events/recorder.ts';
export { createExpectations } from './expectations/expectations.ts';
export { addFinalizer, hasFinalizer, isDeleting, removeFinalizer } from './finalizer/finalizer.ts';
export { createInformer, type Informer } from './informer/informer.ts';
export { createInformerSet, type InformerSet } from './informer/informer-set.ts';
export { NotSyncedError, SYNC_WITHIN_MS } from './informer/not-synced.ts';
export { isOlder } from './informer/resource-version.ts';
export type { Change } from './informer/store.ts';
export { leaderRules, whileLeading } from './leader/leader-lease.ts';
export { isLeaseHeld } from './leader/lease-holder.ts';
export { createWorkQueue } from './queue/work-queue.ts';
export { resourcePath } from './resource-path.ts';
export { type Access, type AccessSource, createRenewedHandler } from './transport/renewed-handler.ts';
export { bodyChunks, wholeBody } from './transport/response-body.ts';
