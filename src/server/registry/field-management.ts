/** Field ownership (server-side apply, KEP-555) as the registry's slot for it: `api/apply` with the kind's schema. */
import { type ApplyResult, applyObject, applyObjectSteps } from '../../api/apply/apply-object.ts';
import { applyConflictError } from '../../api/apply/conflict.ts';
import type { Versions } from '../../api/apply/ownership.ts';
import { trackUpdate, trackUpdateSteps } from '../../api/apply/track-update.ts';
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { apiVersionOf, parseApiVersion } from '../../api/meta/gvk.ts';
import { formatTime, type ManagedFieldsEntry, type UnstructuredObject } from '../../api/meta/object.ts';
import { inPieces } from '../../api/meta/steps.ts';
import { dropNulls } from '../../api/schema/defaults.ts';
import { dropEmpty } from '../../api/schema/drop-empty.ts';
import { localVersions, withVersions } from './owned-versions.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { FieldChange, FieldManagement } from './write-call.ts';

/**
 * Fields an endpoint does not write, so that nobody comes to own them through it: what the kinds' strategies reset
 * (GetResetFields of pkg/registry and of apiextensions-apiserver).
 */
function unwritten({ info, subresource }: FieldChange): readonly (readonly string[])[] {
  if (subresource === 'status') {
    return info.strategy.custom ? NOT_CUSTOM_STATUS : (NOT_STATUS_OF[`${info.group}/${info.resource}`] ?? [['spec']]);
  }
  return info.strategy.statusSubresource ? [['status']] : [];
}

const NOT_CUSTOM_STATUS = [['metadata'], ['spec']];
const NOT_STATUS_OF: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'apps/deployments': [['spec'], ['metadata', 'labels']],
  '/pods': [['spec'], ['metadata', 'deletionTimestamp'], ['metadata', 'ownerReferences']],
};

/** Builds the slot over the served resources: entries of versions no longer served are dropped. */
export function createFieldManagement(resources: Pick<ResourceSource, 'serves' | 'lookup'>): FieldManagement {
  const common = (change: FieldChange, versions: Versions) => {
    const { info } = change;
    return {
      schema: info.schema,
      live: change.live,
      manager: change.manager,
      apiVersion: apiVersionOf(info),
      subresource: change.subresource === '' ? undefined : change.subresource,
      now: formatTime(change.now),
      ignore: unwritten(change),
      isServed(apiVersion: string): boolean {
        const { group, version } = parseApiVersion(apiVersion);
        if (group !== info.group) return resources.serves(group, version);
        return resources.lookup(group, version, info.resource) !== undefined;
      },
      versions,
    };
  };
  return {
    track(change, object) {
      const pause = pauseOf(change);
      if (pause) {
        const work = trackUpdateSteps({ ...common(change, localVersions(resources, change.info)), updated: object });
        return inPieces(work, pause).then((entries) => setEntries(object, entries));
      }
      const tracked = withVersions(resources, change.info, (versions) =>
        trackUpdate({ ...common(change, versions), updated: object }),
      );
      if (!(tracked instanceof Promise)) return setEntries(object, tracked);
      // As upstream has it (FieldManager.UpdateNoErrors): the write is worth more than the record of who made it.
      return tracked.then(
        (entries) => setEntries(object, entries),
        () => setEntries(object, undefined),
      );
    },
    apply(change, { config, force }) {
      const pause = pauseOf(change);
      if (pause) {
        const versions = localVersions(resources, change.info);
        const work = applyObjectSteps({ ...common(change, versions), config, force });
        return inPieces(work, pause).then((result) => outcome(change.info, result));
      }
      const applied = withVersions(resources, change.info, (versions) =>
        applyObject({ ...common(change, versions), config, force }),
      );
      return applied instanceof Promise
        ? applied.then((result) => outcome(change.info, result))
        : outcome(change.info, applied);
    },
  };
}

/** Where a webhook converts, the work is done again after each answer, so it cannot be left in the middle. */
const pauseOf = ({ info, pause }: FieldChange): FieldChange['pause'] => (info.remote === undefined ? pause : undefined);

function setEntries(object: UnstructuredObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries) object.metadata.managedFields = entries;
  else delete object.metadata.managedFields;
}

function outcome(info: ResourceInfo, { object, managedFields, conflicts }: ApplyResult): UnstructuredObject {
  if (conflicts.length > 0) throw applyConflictError(conflicts);
  // What was applied as null is owned and not there: the kind decides what a null of it means.
  dropNulls(info.schema, object, { custom: info.strategy.custom });
  // So is an empty field that Go leaves out: before anybody asks whether the object has changed.
  if (!info.strategy.custom) dropEmpty(info.schema, object);
  setEntries(object, managedFields);
  return object;
}
