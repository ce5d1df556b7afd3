/**
 * Server-side apply: merge a configuration into the live object, give its fields to its manager, take away what the
 * manager no longer mentions and nobody else owns, and name the conflicts.
 */
import { deepEqual } from '../meta/deep-equal.ts';
import type { DeepReadonly, ManagedFieldsEntry, UnstructuredObject } from '../meta/object.ts';
import type { JsonObject } from '../meta/own-property.ts';
import { ApiError, badRequest, internalError } from '../meta/status.ts';
import type { ApplyConflict } from './conflict.ts';
import { type FieldSet, isEmptySet, recursiveDifference } from './field-set.ts';
import { allowedByLastApplied, refreshLastApplied } from './last-applied.ts';
import { identityOf, type Manager, type Managers, readManagers, writeManagers } from './managers.ts';
import { mergeObjects } from './merge.ts';
import {
  currentManagers,
  ignoredFields,
  loseChangedFields,
  stripIdentity,
  type WriteOptions,
  withoutManagedFields,
} from './ownership.ts';
import { pruneObject } from './prune.ts';
import { toFieldSet } from './to-field-set.ts';
import { rootSchema } from './topology.ts';
import { recordUpdate } from './track-update.ts';
import { mayBeUntypable, typingErrors, typingText } from './typing-errors.ts';

export interface ApplyOptions extends WriteOptions {
  /** The applied configuration, without fault to `typingErrors` and pruned; must not carry managedFields. Nulls count. */
  readonly config: DeepReadonly<UnstructuredObject>;
  readonly force: boolean;
}

export interface ApplyResult {
  /** The merged object without managedFields, before defaulting and validation; the live one when `conflicts` is not empty. */
  readonly object: UnstructuredObject;
  readonly managedFields: ManagedFieldsEntry[] | undefined;
  /** Not empty: nothing was applied, answer with `applyConflictError`. */
  readonly conflicts: readonly ApplyConflict[];
}

/**
 * Applies a configuration. Neither argument is changed.
 * @throws ApiError 400 for a configuration that carries managedFields, 500 for a live object that cannot be typed
 */
export function applyObject(request: ApplyOptions): ApplyResult {
  const options = { ...request, schema: rootSchema(request.schema) };
  const { schema, live, config } = options;
  if ((config.metadata as JsonObject | undefined)?.['managedFields'] !== undefined) {
    throw badRequest('metadata.managedFields must be nil');
  }
  const stored = readManagers(live?.metadata.managedFields as readonly ManagedFieldsEntry[] | undefined);
  if (stored === undefined) throw internalError('failed to decode managed fields');
  if (live !== undefined && mayBeUntypable(schema)) checkLive(options, stored);
  const managers = trackedManagers(options, stored);
  const first = attempt(options, managers, options.force);
  if (first.conflicts.length === 0 || options.manager !== 'kubectl' || live === undefined) return first;
  const allowed = allowedByLastApplied(schema, live);
  const conflicts = first.conflicts.filter((conflict) => !hasPath(allowed, conflict.path));
  return conflicts.length > 0 ? { ...first, conflicts } : attempt(options, managers, true);
}

/** Where sets may hold maps and lists, what is stored may be impossible to type: upstream applies nothing to it. */
function checkLive({ schema, live, apiVersion }: ApplyOptions, stored: Managers): void {
  const problems = typingErrors(schema, live, { allowDuplicates: true });
  if (problems.length === 0) return;
  const { name, namespace } = live!.metadata;
  const whose = `${namespace ?? ''}/${name ?? ''}; ${apiVersion}, Kind=${live!.kind}`;
  const what =
    stored.size === 0
      ? `failed to create manager for existing fields: failed to convert new object (${whose}) to smd typed`
      : `failed to create typed live object (${whose})`;
  throw new ApiError({ code: 500, message: `${what}: ${typingText(problems)}` });
}

function hasPath(set: FieldSet, path: readonly string[]): boolean {
  let node: FieldSet | undefined = set;
  for (const element of path.slice(0, -1)) node = node?.children.get(element);
  return node?.members.has(path[path.length - 1]!) === true;
}

/** An object nobody tracked so far belongs, as it is, to `before-first-apply`. */
function trackedManagers(options: ApplyOptions, stored: Managers): Map<string, Manager> {
  const { schema, live, isServed } = options;
  if (stored.size > 0 || live === undefined) return currentManagers(stored, schema, isServed, options.versions);
  const { config: _, force: __, ...rest } = options;
  return recordUpdate(
    { ...rest, live: undefined, updated: live, manager: 'before-first-apply', subresource: undefined },
    stored,
  );
}

function attempt(options: ApplyOptions, managers: ReadonlyMap<string, Manager>, force: boolean): ApplyResult {
  const { schema, apiVersion } = options;
  const live = withoutManagedFields(options.live as JsonObject | undefined);
  const config = options.config as JsonObject;
  const { manager, subresource = '' } = options;
  const identity = { manager, operation: 'Apply', apiVersion, subresource } as const;
  const self = identityOf(identity);
  const previous = managers.get(self);
  const ignored = ignoredFields(options.ignore);
  const spoken = toFieldSet(schema, config);
  const set = ignored === undefined ? spoken : recursiveDifference(spoken, ignored);

  const mine: Manager = { ...identity, time: previous?.time, set };
  const claimed = new Map(managers).set(self, mine);
  const merged = mergeObjects(schema, live, config) as JsonObject;
  const { versions } = options;
  // A map or list that pruning emptied is null, even if the configuration speaks of it (`spec: {}`): so upstream has it.
  const object = pruneObject(merged, { managers: claimed, last: previous, schema, apiVersion, versions });
  const loss = { self, ignored, apiVersion, versions };
  const change = loseChangedFields(schema, { before: live, after: object }, claimed, loss);
  if (change.conflicts.length > 0 && !force) {
    const managedFields = writeManagers(managers);
    return { object: live as UnstructuredObject, managedFields, conflicts: change.conflicts };
  }
  const kept = stripIdentity(set);
  const out = change.managers;
  if (isEmptySet(kept)) out.delete(self);
  else {
    // The time is that of the last change: a manager that only joins others in what there is has none.
    const keepsTime = options.subresource === 'scale' || deepEqual(live, object);
    out.set(self, { ...mine, time: keepsTime ? previous?.time : options.now, set: kept });
  }
  refreshLastApplied({ config, object, manager });
  return { object: object as UnstructuredObject, managedFields: writeManagers(out), conflicts: [] };
}
