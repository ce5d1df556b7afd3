/** Field ownership (server-side apply, KEP-555) as the registry's slot for it: `api/apply` with the kind's schema. */
import { type ApplyResult, applyObject, applyObjectSteps } from '../../api/apply/apply-object.ts';
import { applyConflictError } from '../../api/apply/conflict.ts';
import type { Versions } from '../../api/apply/ownership.ts';
import { trackUpdate, trackUpdateSteps } from '../../api/apply/track-update.ts';
import { apiVersionOf, parseApiVersion } from '../../api/meta/gvk.ts';
import { formatTime, type ManagedFieldsEntry, type UnstructuredObject } from '../../api/meta/object.ts';
import { inPieces } from '../../api/meta/steps.ts';
import { localVersions, withVersions } from './owned-versions.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { FieldChange, FieldManagement } from './write-call.ts';

/** Fields an endpoint does not write, so that nobody comes to own them through it. */
function unwritten({ info, subresource }: FieldChange): readonly (readonly string[])[] {
  if (subresource === 'status') return [['spec']];
  return info.strategy.statusSubresource ? [['status']] : [];
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
        return inPieces(applyObjectSteps({ ...common(change, versions), config, force }), pause).then(outcome);
      }
      const applied = withVersions(resources, change.info, (versions) =>
        applyObject({ ...common(change, versions), config, force }),
      );
      return applied instanceof Promise ? applied.then(outcome) : outcome(applied);
    },
  };
}

/** Where a webhook converts, the work is done again after each answer, so it cannot be left in the middle. */
const pauseOf = ({ info, pause }: FieldChange): FieldChange['pause'] => (info.remote === undefined ? pause : undefined);

function setEntries(object: UnstructuredObject, entries: ManagedFieldsEntry[] | undefined): void {
  if (entries) object.metadata.managedFields = entries;
  else delete object.metadata.managedFields;
}

function outcome({ object, managedFields, conflicts }: ApplyResult): UnstructuredObject {
  if (conflicts.length > 0) throw applyConflictError(conflicts);
  setEntries(object, managedFields);
  return object;
}
