/**
 * The inventory of a sync: what names every object that it has made or is about to make. It is a ResourceGroup of the
 * sync's name, as upstream has it, and when that is full, further ones: its parts, which its `spec.subgroups` names.
 *
 * A process may be killed at every write. No entry is ever out of all parts while its object may be there: a part is named
 * before it is made, an entry that moves is written where it comes before it is taken from where it was, and a part is
 * empty before it is deleted. The first object goes last.
 */
import { createHash } from 'node:crypto';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isAlreadyExists, isConflict, isNotFound, orAbsent } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { type ObjectRef, RESOURCE_GROUPS, type ResourceGroup, type ResourceStatus } from '../kinds/kinds.ts';
import { refId } from '../plan/object-ref.ts';
import { compareRefs } from '../plan/order.ts';
import { applySetId } from '../status/apply-set.ts';
import {
  INVENTORY_LABEL,
  MANAGED,
  MANAGED_BY,
  OWN_FIELD_MANAGER,
  PART_OF_INVENTORY,
  STATUS_MODE,
} from '../status/metadata-keys.ts';
import { SyncFailure, syncError } from '../status/sync-error.ts';
import { inventoryId, type SyncIdentity } from '../status/sync-identity.ts';
import { layOut } from './inventory-layout.ts';

export interface Inventory {
  /** What it names; undefined when there is none. */
  read(signal: AbortSignal): Promise<readonly ObjectRef[] | undefined>;
  /** Makes it name exactly these. Rejects with SyncFailure (KNV2009) when they are too many for all parts together. */
  write(refs: readonly ObjectRef[], signal: AbortSignal): Promise<void>;
  /** Says what became of them; nothing is written where that is what it says. */
  report(statuses: readonly ResourceStatus[], signal: AbortSignal): Promise<void>;
  remove(signal: AbortSignal): Promise<void>;
}

export interface InventoryOptions {
  readonly client: Client;
  readonly sync: SyncIdentity;
  /** `spec.override.statusMode`: without it the status of single objects is left out. */
  readonly showsStatus: () => boolean;
  /** Bytes of entries, in spec and status together, that one object may hold. */
  readonly maxBytes?: number;
}

/** An API server takes 1.5 MiB: this leaves room for metadata and conditions. */
const MAX_BYTES = 1024 * 1024;
/** Some 200,000 objects. */
const MAX_PARTS = 64;
/** Names in a message. */
const MAX_NAMED = 20;
/** Of a write where somebody else writes too. */
const ATTEMPTS = 5;

/** What is stored, by part; undefined for one that is named and not there. At least one item. */
type Parts = (ResourceGroup | undefined)[];

/** Name of a part, from 1; the first is the inventory that upstream knows. No sync has such a name by accident. */
export function partName(sync: SyncIdentity, number: number): string {
  if (number === 1) return sync.name;
  const digest = createHash('sha256').update(applySetId(sync)).digest('hex').slice(0, 8);
  return `${sync.name}.${digest}.${number}`;
}

/** Gives access to the inventory of a sync. */
export function openInventory(options: InventoryOptions): Inventory {
  return new PartedInventory(options);
}

class PartedInventory implements Inventory {
  readonly #options: InventoryOptions;
  /** From the first read of an attempt to the report that ends it, what is stored: as large as the inventory. */
  #held: Parts | undefined;

  constructor(options: InventoryOptions) {
    this.#options = options;
  }

  async read(signal: AbortSignal): Promise<readonly ObjectRef[] | undefined> {
    const parts = await this.#parts(signal);
    this.#held = parts;
    if (!parts[0]) return undefined;
    const refs = parts.flatMap((part) => part?.spec?.resources ?? []);
    return [...new Map(refs.map((ref) => [refId(ref), ref])).values()];
  }

  write(refs: readonly ObjectRef[], signal: AbortSignal): Promise<void> {
    return this.#onParts((parts) => this.#writeAll(refs, parts, signal), signal);
  }

  async report(statuses: readonly ResourceStatus[], signal: AbortSignal): Promise<void> {
    try {
      await this.#onParts((parts) => this.#reportAll(statuses, parts, signal), signal);
    } finally {
      this.#held = undefined;
    }
  }

  /** Acts on what is held, and when it was something else that is stored, on that. */
  async #onParts(act: (parts: Parts) => Promise<void>, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#held ??= await this.#parts(signal);
      try {
        return await act(this.#held);
      } catch (error) {
        this.#held = undefined;
        const isOther = isConflict(error) || isAlreadyExists(error) || isNotFound(error);
        if (!isOther || attempt >= ATTEMPTS) throw error;
      }
    }
  }

  async #writeAll(refs: readonly ObjectRef[], found: Parts, signal: AbortSignal): Promise<void> {
    const { maxBytes = MAX_BYTES } = this.#options;
    const laid = layOut(
      found.map((part) => part?.spec?.resources ?? []),
      refs.map(({ group, kind, namespace, name }) => ({ group, kind, namespace, name })),
      maxBytes,
    );
    if (laid.length > MAX_PARTS)
      throw new SyncFailure([
        syncError(
          2009,
          `the inventory of ${refs.length} objects is too large: ${laid.length} ResourceGroups, of ${MAX_PARTS} at most. Split the source`,
        ),
      ]);
    const named = Math.max(found.length, laid.length);
    await this.#writePart(1, found, { resources: laid[0]!, parts: named }, signal);
    for (let at = 1; at < laid.length; at++) await this.#writePart(at + 1, found, { resources: laid[at]! }, signal);
    if (named === laid.length) return;
    for (let at = named; at > laid.length; at--) {
      await this.#delete(at, signal);
      found.length = at - 1;
    }
    await this.#patchSpec(1, found, { spec: this.#spec({ resources: laid[0]!, parts: laid.length }) }, signal);
  }

  async #reportAll(statuses: readonly ResourceStatus[], parts: Parts, signal: AbortSignal): Promise<void> {
    const shown = this.#options.showsStatus() ? [...statuses].sort(compareRefs) : [];
    for (const [at, part] of parts.entries()) {
      if (!part) continue;
      const own = new Set((part.spec?.resources ?? []).map(refId));
      const resourceStatuses = parts.length === 1 ? shown : shown.filter((one) => own.has(refId(one)));
      // Who looks at the first alone learns there that something failed, wherever its entry lies.
      const failed = (at === 0 ? shown : resourceStatuses).filter(({ status }) => status === 'Failed').map(refId);
      const status = {
        observedGeneration: part.metadata.generation ?? 0,
        resourceStatuses,
        conditions: conditionsOf(failed),
      };
      if (deepEqual(part.status ?? {}, status)) continue;
      const written = await this.#options.client.patch(
        RESOURCE_GROUPS,
        this.#key(at + 1),
        { type: 'merge', body: { metadata: versionOf(part), status } },
        { signal, subresource: 'status', fieldManager: STATUS_FIELD_MANAGER, metadataOnly: true },
      );
      parts[at] = { ...part, metadata: written.metadata, status };
    }
  }

  async remove(signal: AbortSignal): Promise<void> {
    const { length } = await this.#parts(signal);
    for (let number = length; number > 0; number--) await this.#delete(number, signal);
  }

  #key(number: number) {
    const { sync } = this.#options;
    return { namespace: sync.namespace, name: partName(sync, number) };
  }

  async #get(number: number, signal: AbortSignal): Promise<ResourceGroup | undefined> {
    const { client, sync } = this.#options;
    const found = await orAbsent(client.get(RESOURCE_GROUPS, this.#key(number), { signal }));
    const isOurs = number === 1 || found?.metadata.labels?.[PART_OF_INVENTORY] === applySetId(sync);
    return isOurs ? found : undefined;
  }

  /** Every part, in order. */
  async #parts(signal: AbortSignal): Promise<Parts> {
    const { sync } = this.#options;
    const first = await this.#get(1, signal);
    const parts: Parts = [first];
    if (first) {
      const names = new Set((first.spec?.subgroups ?? []).map(({ name }) => name));
      for (let number = 2; names.has(partName(sync, number)); number++) parts.push(await this.#get(number, signal));
      return parts;
    }
    // What named them was deleted by somebody: they are taken up again all the same.
    for (let number = 2; ; number++) {
      const part = await this.#get(number, signal);
      if (!part) return parts;
      parts.push(part);
    }
  }

  #metadata(number: number) {
    const { sync, showsStatus } = this.#options;
    return {
      labels: {
        [MANAGED_BY.key]: MANAGED_BY.value,
        // Upstream's clients look for one object of that label.
        ...(number === 1 ? { [INVENTORY_LABEL]: inventoryId(sync) } : { [PART_OF_INVENTORY]: applySetId(sync) }),
        'configsync.gke.io/sync-namespace': sync.namespace,
        'configsync.gke.io/sync-name': sync.name,
        'configsync.gke.io/sync-kind': sync.kind,
      },
      annotations: { [MANAGED]: 'enabled', [STATUS_MODE]: showsStatus() ? 'enabled' : 'disabled' },
    };
  }

  #spec({ resources, parts = 1 }: PartContent) {
    const subgroups = Array.from({ length: parts - 1 }, (_, at) => this.#key(at + 2));
    return { resources, subgroups };
  }

  /** Writes a part where it differs, and puts down in `parts` what is stored then. */
  async #writePart(number: number, parts: Parts, content: PartContent, signal: AbortSignal): Promise<void> {
    const found = parts[number - 1];
    const metadata = this.#metadata(number);
    const { resources, subgroups } = this.#spec(content);
    if (!found) {
      const made = {
        apiVersion: 'kpt.dev/v1alpha1',
        kind: 'ResourceGroup',
        metadata: { ...this.#key(number), ...metadata },
        spec: { resources, ...(subgroups.length > 0 && { subgroups }) },
      };
      const how = { signal, fieldManager: OWN_FIELD_MANAGER, metadataOnly: true };
      const stored = await this.#options.client.create(RESOURCE_GROUPS, made, how);
      parts[number - 1] = { ...made, metadata: stored.metadata };
      return;
    }
    const { labels = {}, annotations = {} } = found.metadata;
    const isSame =
      deepEqual(found.spec?.resources ?? [], resources) &&
      deepEqual(found.spec?.subgroups ?? [], subgroups) &&
      Object.entries(metadata.labels).every(([name, value]) => labels[name] === value) &&
      Object.entries(metadata.annotations).every(([name, value]) => annotations[name] === value);
    if (!isSame) await this.#patchSpec(number, parts, { metadata, spec: this.#spec(content) }, signal);
  }

  async #patchSpec(
    number: number,
    parts: Parts,
    { metadata, spec: { resources, subgroups } }: { spec: WrittenSpec; metadata?: object },
    signal: AbortSignal,
  ): Promise<void> {
    const before = parts[number - 1]!;
    const body = {
      metadata: { ...metadata, ...versionOf(before) },
      spec: { resources, subgroups: subgroups.length > 0 ? subgroups : null },
    };
    const written = await this.#options.client.patch(
      RESOURCE_GROUPS,
      this.#key(number),
      { type: 'merge', body },
      { signal, fieldManager: OWN_FIELD_MANAGER, metadataOnly: true },
    );
    parts[number - 1] = { ...before, metadata: written.metadata, spec: { ...before.spec, resources, subgroups } };
  }

  async #delete(number: number, signal: AbortSignal): Promise<void> {
    await orAbsent(
      this.#options.client.delete(RESOURCE_GROUPS, this.#key(number), {
        signal,
        propagationPolicy: 'Background',
      }),
    );
  }
}

const STATUS_FIELD_MANAGER = 'configsync.gke.io/resource-group-controller';

/** A write that holds for that state alone. */
const versionOf = ({ metadata: { uid, resourceVersion } }: ResourceGroup) => ({ uid, resourceVersion });

type WrittenSpec = Required<Pick<NonNullable<ResourceGroup['spec']>, 'resources' | 'subgroups'>>;

interface PartContent {
  readonly resources: ObjectRef[];
  /** Of the first: how many it names, itself among them. */
  readonly parts?: number;
}

function conditionsOf(failed: readonly string[]) {
  const hasFailed = failed.length > 0;
  return [
    { type: 'Reconciling', status: 'False', reason: 'FinishReconciling', message: 'finish reconciling' },
    {
      type: 'Stalled',
      status: hasFailed ? 'True' : 'False',
      reason: hasFailed ? 'ComponentFailed' : 'FinishReconciling',
      message: hasFailed ? `Failed: ${failed.slice(0, MAX_NAMED).join(', ')}` : 'finish reconciling',
    },
  ];
}
