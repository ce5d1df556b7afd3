/** Field ownership (server-side apply, KEP-555) as the registry's slot for it: `api/apply` with the kind's schema. */
import { applyObject } from '../../api/apply/apply-object.ts';
import { applyConflictError } from '../../api/apply/conflict.ts';
import { trackUpdate } from '../../api/apply/track-update.ts';
import { apiVersionOf, parseApiVersion } from '../../api/meta/gvk.ts';
import { formatTime } from '../../api/meta/object.ts';
import type { ResourceSource } from './resource-catalog.ts';
import type { FieldChange, FieldManagement } from './write-call.ts';

/** Fields an endpoint does not write, so that nobody comes to own them through it. */
function unwritten({ info, subresource }: FieldChange): readonly (readonly string[])[] {
  if (subresource === 'status') return [['spec']];
  return info.strategy.statusSubresource ? [['status']] : [];
}

/** Builds the slot over the served resources: entries of versions no longer served are dropped. */
export function createFieldManagement(resources: Pick<ResourceSource, 'serves'>): FieldManagement {
  const isServed = (apiVersion: string): boolean => {
    const { group, version } = parseApiVersion(apiVersion);
    return resources.serves(group, version);
  };
  const common = (change: FieldChange) => ({
    schema: change.info.schema,
    live: change.live,
    manager: change.manager,
    apiVersion: apiVersionOf(change.info),
    subresource: change.subresource === '' ? undefined : change.subresource,
    now: formatTime(change.now),
    ignore: unwritten(change),
    isServed,
  });
  return {
    track(change, object) {
      const entries = trackUpdate({ ...common(change), updated: object });
      if (entries) object.metadata.managedFields = entries;
      else delete object.metadata.managedFields;
    },
    apply(change, { config, force }) {
      const { object, managedFields, conflicts } = applyObject({ ...common(change), config, force });
      if (conflicts.length > 0) throw applyConflictError(conflicts);
      if (managedFields) object.metadata.managedFields = managedFields;
      else delete object.metadata.managedFields;
      return object;
    },
  };
}
