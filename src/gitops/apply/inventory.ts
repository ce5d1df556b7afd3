/** The inventory of a sync: a ResourceGroup of its name that names every object that it has made or is about to make. */
import {
  type ObjectRef,
  RESOURCE_GROUPS,
  type ResourceGroup,
  type ResourceStatus,
} from '../../api/kinds/config-sync/kinds.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { isNotFound } from '../../client/api-failure.ts';
import type { Client } from '../../client/client.ts';
import { refId } from '../plan/object-ref.ts';
import { compareRefs } from '../plan/order.ts';
import { INVENTORY_LABEL, MANAGED, MANAGED_BY, OWN_FIELD_MANAGER, STATUS_MODE } from '../status/metadata-keys.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { inventoryId, type SyncIdentity } from '../status/sync-identity.ts';

export interface Inventory {
  /** What it names; undefined when there is none. */
  read(signal: AbortSignal): Promise<readonly ObjectRef[] | undefined>;
  /** Makes it name exactly these. Rejects with SyncFailure when they are too many for one object. */
  write(refs: readonly ObjectRef[], signal: AbortSignal): Promise<void>;
  /** Says what became of them; nothing is written when that is what it says. */
  report(statuses: readonly ResourceStatus[], signal: AbortSignal): Promise<void>;
  remove(signal: AbortSignal): Promise<void>;
}

export interface InventoryOptions {
  readonly client: Client;
  readonly sync: SyncIdentity;
  /** `spec.override.statusMode`: without it the status of single objects is left out. */
  readonly showsStatus: () => boolean;
}

/** What one object of the API may hold. */
const MAX_BYTES = 1.5 * 1024 * 1024;

/** Gives access to the inventory of a sync. */
export function openInventory({ client, sync, showsStatus }: InventoryOptions): Inventory {
  const key = { namespace: sync.namespace, name: sync.name };
  const get = async (signal: AbortSignal): Promise<ResourceGroup | undefined> => {
    try {
      return await client.get(RESOURCE_GROUPS, key, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  const metadata = () => ({
    labels: {
      [MANAGED_BY.key]: MANAGED_BY.value,
      [INVENTORY_LABEL]: inventoryId(sync),
      'configsync.gke.io/sync-namespace': sync.namespace,
      'configsync.gke.io/sync-name': sync.name,
      'configsync.gke.io/sync-kind': sync.kind,
    },
    annotations: { [MANAGED]: 'enabled', [STATUS_MODE]: showsStatus() ? 'enabled' : 'disabled' },
  });
  return {
    read: async (signal) => {
      const found = await get(signal);
      return found && (found.spec?.resources ?? []);
    },
    async write(refs, signal) {
      const resources = [...refs]
        .sort(compareRefs)
        .map(({ group, kind, namespace, name }) => ({ group, kind, namespace, name }));
      if (JSON.stringify(resources).length > MAX_BYTES / 2)
        throw new SyncFailure([
          syncError(2009, `the inventory of ${resources.length} objects is too large for one object: split the source`),
        ]);
      const found = await get(signal);
      const options = { signal, fieldManager: OWN_FIELD_MANAGER };
      if (!found) {
        const made = {
          apiVersion: 'kpt.dev/v1alpha1',
          kind: 'ResourceGroup',
          metadata: { ...key, ...metadata() },
          spec: { resources },
        };
        await client.create(RESOURCE_GROUPS, made, options);
        return;
      }
      const wanted = metadata();
      const { labels = {}, annotations = {} } = found.metadata;
      const isSame =
        deepEqual(found.spec?.resources ?? [], resources) &&
        Object.entries(wanted.labels).every(([name, value]) => labels[name] === value) &&
        Object.entries(wanted.annotations).every(([name, value]) => annotations[name] === value);
      if (isSame) return;
      await client.patch(
        RESOURCE_GROUPS,
        key,
        { type: 'merge', body: { metadata: wanted, spec: { resources } } },
        options,
      );
    },
    async report(statuses, signal) {
      const found = await get(signal);
      if (!found) return;
      const shown = showsStatus() ? [...statuses].sort(compareRefs) : [];
      const failed = shown.filter(({ status }) => status === 'Failed').map(refId);
      const conditions = [
        { type: 'Reconciling', status: 'False', reason: 'FinishReconciling', message: 'finish reconciling' },
        {
          type: 'Stalled',
          status: failed.length > 0 ? 'True' : 'False',
          reason: failed.length > 0 ? 'ComponentFailed' : 'FinishReconciling',
          message: failed.length > 0 ? `Failed: ${failed.slice(0, 20).join(', ')}` : 'finish reconciling',
        },
      ];
      const status = { observedGeneration: found.metadata.generation ?? 0, resourceStatuses: shown, conditions };
      if (deepEqual(found.status ?? {}, status)) return;
      await client.patch(
        RESOURCE_GROUPS,
        key,
        { type: 'merge', body: { status } },
        {
          signal,
          subresource: 'status',
          fieldManager: 'configsync.gke.io/resource-group-controller',
        },
      );
    },
    async remove(signal) {
      try {
        await client.delete(RESOURCE_GROUPS, key, { signal, propagationPolicy: 'Background' });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  };
}
