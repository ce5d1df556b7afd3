/** What `pods/ephemeralcontainers` and `pods/resize` may change of a Pod (pkg/registry/core/pod/strategy.go). */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { cloneJson } from '../../api/meta/deep-clone.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { type FieldError, invalid } from '../../api/meta/status.ts';

interface Container {
  name?: string;
  resources?: unknown;
}

interface PodParts {
  spec?: { containers?: Container[]; initContainers?: Container[]; ephemeralContainers?: Container[] };
}

/** True for the subresources that write a part of the spec which an update of the Pod itself may not touch. */
export const writesPodPart = (subresource: string): boolean =>
  subresource === 'ephemeralcontainers' || subresource === 'resize';

/** The stored Pod with what the subresource may change taken from `object`. Throws ApiError 422. */
export function preparePodPart(
  info: ResourceInfo,
  {
    subresource,
    object,
    old,
  }: {
    readonly subresource: string;
    readonly object: Readonly<UnstructuredObject>;
    readonly old: Readonly<UnstructuredObject>;
  },
): UnstructuredObject {
  const next = cloneJson(old) as UnstructuredObject & PodParts;
  const wanted = object as PodParts;
  if (object.metadata.managedFields) next.metadata.managedFields = [...object.metadata.managedFields];
  if (subresource === 'resize') {
    takeResources(next.spec?.containers, wanted.spec?.containers);
    takeResources(next.spec?.initContainers, wanted.spec?.initContainers);
    return next;
  }
  const containers = wanted.spec?.ephemeralContainers ?? [];
  const errors = keptEphemeral((old as PodParts).spec?.ephemeralContainers ?? [], containers);
  if (errors.length > 0) throw invalid(info, old.metadata.name ?? '', errors);
  if (containers.length > 0) next.spec = { ...next.spec, ephemeralContainers: containers };
  return next;
}

function takeResources(target: Container[] | undefined, source: readonly Container[] | undefined): void {
  for (const container of target ?? []) {
    const wanted = source?.find(({ name }) => name === container.name);
    if (wanted && wanted.resources !== undefined) container.resources = cloneJson(wanted.resources);
  }
}

/** Ephemeral containers are added, never changed or taken away. */
function keptEphemeral(before: readonly Container[], after: readonly Container[]): FieldError[] {
  const field = 'spec.ephemeralContainers';
  return before.flatMap((was): FieldError[] => {
    const now = after.find(({ name }) => name === was.name);
    if (now && deepEqual(now, was)) return [];
    const what = now ? 'changed' : 'removed';
    const detail = `existing ephemeral containers ${JSON.stringify(was.name ?? '')} may not be ${what}`;
    return [{ type: 'FieldValueForbidden', field, detail }];
  });
}
