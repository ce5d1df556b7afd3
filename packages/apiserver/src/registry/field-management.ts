/** Field ownership (server-side apply, KEP-555) as the registry's slot for it: `apimachinery/apply` with the kind's schema. */
import { type ApplyResult, applyObject } from '@coracle/apimachinery/apply/apply-object';
import { applyConflictError } from '@coracle/apimachinery/apply/conflict';
import type { Versions } from '@coracle/apimachinery/apply/ownership';
import { type TrackUpdateOptions, trackUpdate } from '@coracle/apimachinery/apply/track-update';
import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import { formatTime, type ManagedFieldsEntry, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { dropMetadataNulls, dropNulls } from '@coracle/apimachinery/schema/defaults';
import { dropEmpty } from '@coracle/apimachinery/schema/drop-empty';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { updateStrategyOf } from '@coracle/apimachinery/types/strategy';
import { withVersions } from './owned-versions.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { FieldChange, FieldManagement } from './write-contract.ts';

/** Objects of definitions may lie as an older schema had them, and carry parts that nobody validates. */
function doubtOf({ info, live }: FieldChange): TrackUpdateOptions['doubt'] {
  if (!info.strategy.custom) return undefined;
  const since = info.view?.currentFrom;
  const written = Number(live?.metadata.resourceVersion ?? Number.POSITIVE_INFINITY);
  return { live: since !== undefined && written < since };
}

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
      ignore: updateStrategyOf(info.strategy, change.subresource).resetFields,
      doubt: doubtOf(change),
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
      const applied = withVersions(resources, change.info, (versions) =>
        applyObject({ ...common(change, versions), config, force }),
      );
      return applied instanceof Promise
        ? applied.then((result) => outcome(change.info, result))
        : outcome(change.info, applied);
    },
  };
}

function setEntries(object: UnstructuredObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries) object.metadata.managedFields = entries;
  else delete object.metadata.managedFields;
}

function outcome(info: ResourceInfo, result: ApplyResult): UnstructuredObject {
  const { object, managedFields, conflicts } = result;
  if (conflicts.length > 0) throw applyConflictError(conflicts);
  if (info.strategy.custom) {
    // The rest of a custom object has no types: what is null there is given its default, or validated as null.
    dropMetadataNulls(info.schema, object);
  } else {
    // What was applied as null is owned and not there: the kind decides what a null of it means.
    dropNulls(info.schema, object, { custom: false });
    // So is an empty field that Go leaves out: before anybody asks whether the object has changed.
    dropEmpty(info.schema, object);
  }
  setEntries(object, managedFields);
  return object;
}
