/**
 * One step of the VirtualMachine controller: what a machine names is found, captured once, and kept (kubevirt
 * pkg/instancetype/controller/vm). Two things differ from upstream: a copy that is missing is made again from the object
 * while that is unchanged, and what is missing only keeps a machine from being started, not from being stopped.
 */

import { isOwnedBy } from '@coracle/apimachinery/meta/controller-reference';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import { isApiError, orExpected } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import type { ReadonlyVm, VirtualMachine, VirtualMachineInstanceSpec } from '../../kinds/kubevirt.ts';
import { conflictsMessage } from '../../rules/instancetype/conflicts.ts';
import { applyInstancetype, expandVirtualMachine, type Layers } from '../../rules/instancetype/expand.ts';
import { MATCHER_FIELDS, type MatcherField } from '../../rules/instancetype/matcher.ts';
import { layersOf, type ResolvedSources, readSources } from '../../rules/instancetype/resolve.ts';
import {
  buildRevision,
  isSameCapture,
  nextStatusRef,
  renewRevision,
  unexpectedDataMessage,
} from '../../rules/instancetype/revision.ts';
import type { ClusterConfig } from '../../rules/machine-defaults/cluster-config.ts';
import { referencesOf } from '../../rules/protection/references.ts';
import type { SourceLookup } from './source-lookup.ts';
import type { SyncFailure } from './vm-status.ts';

const failed = (reason: string, message: string): InstancetypeOutcome => ({
  type: 'failed',
  failure: { reason, message },
});
const refOf = (field: MatcherField): 'instancetypeRef' | 'preferenceRef' => `${field}Ref`;

export interface SyncInstancetypeOptions {
  readonly client: Client;
  readonly lookup: SourceLookup;
  readonly config: ClusterConfig;
  /**
   * Called before copies go that a start revision may name: has the start revision say the same without them. `vm` is
   * what it shall hold, `layers` what the matchers stand for.
   */
  readonly keepStart: (vm: ReadonlyVm, layers: Layers) => Promise<void>;
  /**
   * Hears of a copy that the machine names no longer, once this pass is stored: not before may it go, as a protected
   * machine keeps what it names (`removeRevision`).
   */
  readonly unneeded: (name: string) => void;
}

export type InstancetypeOutcome =
  /** What to lay over the template at start; empty without matchers. */
  | { readonly type: 'layers'; readonly layers: Layers }
  /** The machine's spec was replaced: it is to be written before anything else happens. */
  | { readonly type: 'expanded' }
  | { readonly type: 'failed'; readonly failure: SyncFailure };

/** What is done with a copy when it fails. */
type Doing = 'storing' | 'upgrading';

/** A copy could not be kept, or not be renewed: the text is the condition's. */
class CaptureError extends Error {
  constructor(message: string, doing: Doing = 'storing') {
    super(`error encountered while ${doing} instancetype.kubevirt.io controllerRevisions: ${message}`);
  }
}

/**
 * Brings the copies and `vm.status` up to date. Changes `vm`.
 * @throws ApiError when the API cannot be asked
 */
export async function syncInstancetype(
  vm: VirtualMachine,
  options: SyncInstancetypeOptions,
): Promise<InstancetypeOutcome> {
  await releaseRefs(vm, options);
  if (vm.spec.instancetype == null && vm.spec.preference == null) return { type: 'layers', layers: {} };
  const { instancetypeReferencePolicy: policy } = options.config;
  // Before anything is looked up: a matcher that points elsewhere must not find the copy of what it pointed to.
  if (policy === 'reference') for (const field of MATCHER_FIELDS) moveRef(vm, field);
  const found = await readSources(vm, options.lookup.reader);
  for (const field of MATCHER_FIELDS) forgetPin(vm, field, found);
  const { instancetype, preference } = found;
  if (instancetype.type === 'missing') return failed('FailedFindInstancetype', instancetype.message);
  if (preference.type === 'missing') return failed('FailedFindPreference', preference.message);
  if (policy !== 'reference') return expand(vm, found, { policy, options });
  try {
    for (const field of MATCHER_FIELDS) await capture(vm, field, { found, options });
  } catch (error) {
    if (!(error instanceof CaptureError)) throw error;
    return { type: 'failed', failure: { reason: 'FailedCreate', message: error.message } };
  }
  return { type: 'layers', layers: layersOf(found) };
}

function moveRef(vm: VirtualMachine, field: MatcherField): void {
  const matcher = vm.spec[field];
  if (matcher == null) return;
  vm.status ??= {};
  vm.status[refOf(field)] = nextStatusRef(matcher, vm.status[refOf(field)]);
}

/** A revision that the machine names and that cannot be had is not in force: clearing `revisionName` must be enough. */
function forgetPin(vm: VirtualMachine, field: MatcherField, found: ResolvedSources): void {
  if (found[field].type === 'missing' && vm.spec[field]?.revisionName)
    delete vm.status?.[refOf(field)]?.controllerRevisionRef;
}

interface Capturing {
  readonly found: ResolvedSources;
  readonly options: SyncInstancetypeOptions;
}

async function capture(vm: VirtualMachine, field: MatcherField, { found, options }: Capturing): Promise<void> {
  const name = await captureName(vm, field, { found, options });
  if (vm.spec[field]?.revisionName || name === undefined) return;
  vm.status ??= {};
  vm.status[refOf(field)] = { ...vm.status[refOf(field)], controllerRevisionRef: { name } };
}

/** Name of the copy that is in force, made if need be. */
async function captureName(
  vm: VirtualMachine,
  field: MatcherField,
  { found, options }: Capturing,
): Promise<string | undefined> {
  const resolved = found[field];
  if (resolved.type === 'object') {
    if (field === 'instancetype')
      refuseConflicts(vm, layersOf({ instancetype: resolved, preference: { type: 'none' } }));
    return ensureRevision(options.client, buildRevision(vm, resolved.object));
  }
  if (resolved.type !== 'revision') return undefined;
  const { name = '' } = resolved.revision.metadata;
  const renewed = vm.spec[field]?.revisionName ? undefined : renewRevision(vm, field, resolved.revision);
  if (renewed === undefined) return name;
  const newName = await ensureRevision(options.client, renewed, 'upgrading');
  const status = { ...vm.status, [refOf(field)]: { controllerRevisionRef: { name: newName } } };
  await options.keepStart({ ...vm, status } as VirtualMachine, layersOf(found));
  options.unneeded(name);
  return newName;
}

function refuseConflicts(vm: VirtualMachine, layers: Layers): void {
  const { spec = {}, metadata } = vm.spec.template ?? {};
  const applied = applyInstancetype({ ...layers, spec: spec as Partial<VirtualMachineInstanceSpec>, metadata });
  if (!applied.ok) throw new CaptureError(conflictsMessage(applied.conflicts));
}

async function ensureRevision(client: Client, wanted: ControllerRevision, doing?: Doing): Promise<string> {
  const { name = '', namespace = '' } = wanted.metadata;
  try {
    await client.create(CONTROLLER_REVISIONS, wanted);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.reason !== 'AlreadyExists')
      throw new CaptureError(`failed to create ControllerRevision: ${error.message}`, doing);
    const existing = await client.get(CONTROLLER_REVISIONS, { namespace, name });
    if (!isSameCapture(existing, wanted)) throw new CaptureError(unexpectedDataMessage(name), doing);
  }
  return name;
}

/** Replaces the spec by what it stands for. */
function expand(
  vm: VirtualMachine,
  found: ResolvedSources,
  { policy, options }: { readonly policy: 'expand' | 'expandAll'; readonly options: SyncInstancetypeOptions },
): InstancetypeOutcome {
  const layers = layersOf(found);
  const captured = MATCHER_FIELDS.some((field) => vm.status?.[refOf(field)]?.controllerRevisionRef?.name);
  if (policy === 'expand' && captured) return { type: 'layers', layers };
  const expanded = expandVirtualMachine(vm, layers, options.config);
  if (!expanded.ok) {
    const paths = conflictsMessage(expanded.conflicts);
    return failed('FailedCreate', `error encountered while expanding into VirtualMachine: ${paths}`);
  }
  vm.spec = expanded.vm.spec;
  return { type: 'expanded' };
}

/** A reference without its matcher goes. After an expansion so does the copy: nobody will ask for it again. */
async function releaseRefs(vm: VirtualMachine, options: SyncInstancetypeOptions): Promise<void> {
  const stale = MATCHER_FIELDS.filter((field) => vm.spec[field] == null && vm.status?.[refOf(field)] !== undefined);
  if (stale.length === 0) return;
  if (options.config.instancetypeReferencePolicy !== 'reference') {
    await options.keepStart(vm, {});
    const names = stale.map((field) => vm.status?.[refOf(field)]?.controllerRevisionRef?.name);
    for (const name of names) if (name) options.unneeded(name);
  }
  for (const field of stale) delete vm.status?.[refOf(field)];
}

/**
 * Deletes a copy that the machine owns and, as it is stored now, does not name; one of somebody else's stays. So does one
 * that may not go: it goes with the machine.
 */
export async function removeRevision(
  vm: ReadonlyVm,
  name: string,
  { client, lookup }: Pick<SyncInstancetypeOptions, 'client' | 'lookup'>,
): Promise<void> {
  const namespace = vm.metadata.namespace ?? '';
  const { resource } = CONTROLLER_REVISIONS;
  if (referencesOf(vm).some((each) => each.resource === resource && each.name === name)) return;
  const revision = await lookup.reader.revision(namespace, name);
  if (revision === undefined || !isOwnedBy(revision, vm.metadata.uid)) return;
  const deleted = client.delete(CONTROLLER_REVISIONS, { namespace, name });
  await orExpected(deleted, (error) => isApiError(error, 403, 404));
}
