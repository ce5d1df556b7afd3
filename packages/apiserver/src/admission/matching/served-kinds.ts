/** The served kinds as admission matching needs them: names in the shape of the API, and who shares a storage. */

import { apiVersionOf, type GroupVersionKind } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { internalError } from '@coracle/apimachinery/meta/status';
import { type ResourceInfo, storagePrefix } from '@coracle/apimachinery/types/resource';
import type { AdmissionAttributes } from '../plugin.ts';

/** What admission asks the catalog. */
export interface ServedResources {
  all(): readonly ResourceInfo[];
  generation(): number;
}

/** The resource as a GroupVersionResource of the API. */
export const resourceOf = ({ group, version, resource }: ResourceInfo) => ({ group, version, resource });

/** The kind that a request for this resource or subresource carries. */
export function kindOf(info: ResourceInfo, subresource: string): GroupVersionKind {
  const found = subresource === '' ? undefined : info.subresources.find(({ name }) => name === subresource);
  if (!found) return { group: info.group, version: info.version, kind: info.kind };
  return { group: found.group ?? info.group, version: found.version ?? info.version, kind: found.kind };
}

/** `g/v, Kind=K`, as Go prints a GroupVersionKind. */
export const kindText = ({ group, version, kind }: GroupVersionKind): string => `${group}/${version}, Kind=${kind}`;

/**
 * The other faces of a resource: same storage, another group or version, and the subresource (unless '') there too. Of a
 * custom resource also versions that are no longer served.
 */
export type Equivalents = (info: ResourceInfo, subresource: string) => readonly ResourceInfo[];

/** Finds them, in the order in which they are served. Remembered until the catalog changes. */
export function createEquivalents(resources: ServedResources): Equivalents {
  let generation = -1;
  let byPrefix = new Map<string, ResourceInfo[]>();
  return (info, subresource) => {
    if (generation !== resources.generation()) {
      generation = resources.generation();
      byPrefix = Map.groupBy(resources.all(), storagePrefix);
    }
    const all = info.versions?.() ?? byPrefix.get(storagePrefix(info)) ?? [];
    return all.filter(
      (one) =>
        (one.group !== info.group || one.version !== info.version) &&
        (subresource === '' || one.subresources.some(({ name }) => name === subresource)),
    );
  };
}

interface Conversion {
  readonly from: ResourceInfo;
  readonly to: ResourceInfo;
}

/** Objects of a subresource's own kind (Scale, Eviction) stay as they are. */
const needsConversion = (object: Readonly<UnstructuredObject>, { from, to }: Conversion): boolean =>
  from !== to && object.apiVersion === apiVersionOf(from) && object.kind === from.kind;

/**
 * The object in another version of its kind. Throws ApiError 500 where only a conversion webhook knows that version, which
 * expressions do not wait for.
 */
function convertObject<T extends Readonly<UnstructuredObject>>(object: T, conversion: Conversion): T {
  if (!needsConversion(object, conversion)) return object;
  const { from, to } = conversion;
  if (from.remote || to.remote) {
    throw internalError(`unable to convert ${apiVersionOf(from)} ${from.kind} to ${apiVersionOf(to)} at once`);
  }
  const stored = from.view === undefined ? object : from.view.toStored(object);
  const shown = to.view === undefined ? stored : to.view.fromStored(stored);
  return { ...shown, apiVersion: apiVersionOf(to), kind: to.kind } as unknown as T;
}

/** The same, asking a conversion webhook where there is one. Rejects with ApiError 500 when that fails. */
export async function convertAnyObject<T extends Readonly<UnstructuredObject>>(
  object: T,
  conversion: Conversion,
): Promise<T> {
  const { from, to } = conversion;
  if (!needsConversion(object, conversion) || (!from.remote && !to.remote)) return convertObject(object, conversion);
  const stored = from.remote ? await from.remote.toStored(object) : (from.view?.toStored(object) ?? object);
  const [shown] = to.remote ? await to.remote.fromStored([stored]) : [to.view?.fromStored(stored) ?? stored];
  return { ...shown, apiVersion: apiVersionOf(to), kind: to.kind } as unknown as T;
}

/** Both objects of a write in one version; null = there is none. */
export interface ShownObjects {
  readonly object: Readonly<UnstructuredObject> | null;
  readonly oldObject: Readonly<UnstructuredObject> | null;
}

/** The objects of a write in the version of `matched`: a promise where a conversion webhook is asked. ApiError as there. */
export function showObjects(
  write: Pick<AdmissionAttributes, 'info' | 'object' | 'oldObject'>,
  matched: ResourceInfo,
): ShownObjects | Promise<ShownObjects> {
  const { info } = write;
  type Shown = Readonly<UnstructuredObject> | null;
  const conversion = { from: info, to: matched };
  const objects: readonly Shown[] = [write.object ?? null, write.oldObject ?? null];
  const together = ([object, oldObject]: readonly Shown[]): ShownObjects => ({
    object: object!,
    oldObject: oldObject!,
  });
  const waits = (one: Shown): boolean =>
    one !== null && (info.remote ?? matched.remote) !== undefined && needsConversion(one, conversion);
  if (!objects.some(waits)) return together(objects.map((one) => one && convertObject(one, conversion)));
  return Promise.all(objects.map((one) => one && convertAnyObject(one, conversion))).then(together);
}

/** A stored object (in its storage version) in the version of `info`. */
export function viewStored(info: ResourceInfo, stored: Readonly<UnstructuredObject>): Readonly<UnstructuredObject> {
  const apiVersion = apiVersionOf(info);
  if (info.view !== undefined) return { ...info.view.fromStored(stored), apiVersion } as UnstructuredObject;
  return stored.apiVersion === apiVersion ? stored : { ...stored, apiVersion };
}
