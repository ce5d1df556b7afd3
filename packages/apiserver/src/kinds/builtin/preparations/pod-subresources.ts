/** What `pods/ephemeralcontainers` and `pods/resize` may change of a Pod (pkg/registry/core/pod/strategy.go). */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { objectAt, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import type { Container, PodParts } from '@coracle/apimachinery/types/types';
import { qosClassOf } from '../defaults/qos.ts';

const POD = { group: '', kind: 'Pod' };

type Old = Readonly<UnstructuredObject>;

/** The stored Pod with the amounts that a resize changes. Throws ApiError 422. */
export function keepAllButSize(object: UnstructuredObject, old: Old): UnstructuredObject {
  const next = storedPod(object, old);
  const wanted = object as PodParts;
  takeResources(next.spec?.containers, wanted.spec?.containers);
  takeResources(next.spec?.initContainers, wanted.spec?.initContainers);
  refuse(old, resizeErrors(next, old));
  return next;
}

/** The stored Pod with more ephemeral containers. Throws ApiError 422. */
export function keepAllButEphemeral(object: UnstructuredObject, old: Old): UnstructuredObject {
  const next = storedPod(object, old);
  const containers = (object as PodParts).spec?.ephemeralContainers ?? [];
  refuse(old, keptEphemeral((old as PodParts).spec?.ephemeralContainers ?? [], containers));
  if (containers.length > 0) next.spec = { ...next.spec, ephemeralContainers: containers };
  return next;
}

/** `old`, with its fields owned as `object` says. */
function storedPod({ metadata }: UnstructuredObject, old: Old): UnstructuredObject & PodParts {
  const next = cloneJson(old) as UnstructuredObject & PodParts;
  if (metadata.managedFields) next.metadata.managedFields = [...metadata.managedFields];
  return next;
}

function refuse({ metadata }: Old, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid(POD, metadata.name ?? '', errors);
}

function takeResources(target: Container[] | undefined, source: readonly Container[] | undefined): void {
  const wanted = byName(source ?? []);
  for (const container of target ?? []) {
    const resources = wanted.get(container.name)?.resources;
    if (resources !== undefined) container.resources = cloneJson(resources);
  }
}

/** Containers by name, the first of each: there may be too many to look through them for each other. */
function byName(containers: readonly Container[]): ReadonlyMap<string | undefined, Container> {
  const found = new Map<string | undefined, Container>();
  for (const container of containers) {
    if (!found.has(container.name)) found.set(container.name, container);
  }
  return found;
}

const COMPUTE = new Set(['cpu', 'memory']);
const ONLY_COMPUTE = 'only cpu and memory resources for regular and sidecar containers are mutable';

/** A resize changes amounts of CPU and memory: it takes none away, and the Pod stays in its class. */
function resizeErrors(next: Readonly<UnstructuredObject>, old: Readonly<UnstructuredObject>): FieldError[] {
  const errors: FieldError[] = [];
  const value = textAt(old, 'status', 'qosClass') || qosClassOf(old);
  if (qosClassOf(next) !== value) {
    const detail = 'Pod QOS Class may not change as a result of resizing';
    errors.push({ type: 'FieldValueInvalid', field: 'spec', value, detail });
  }
  let others = false;
  for (const list of ['containers', 'initContainers']) {
    const now = objectsAt(next, 'spec', list);
    for (const [i, was] of objectsAt(old, 'spec', list).entries()) {
      for (const kind of ['limits', 'requests']) {
        const before = objectAt(was, 'resources', kind);
        const after = objectAt(now[i], 'resources', kind);
        const names = Object.keys({ ...before, ...after });
        others ||= names.some((name) => !COMPUTE.has(name) && before[name] !== after[name]);
        if (names.every((name) => after[name] !== undefined)) continue;
        const field = `spec.${list}[${i}].resources.${kind}`;
        errors.push({ type: 'FieldValueForbidden', field, detail: `resource ${kind} cannot be removed` });
      }
    }
  }
  return others ? [...errors, { type: 'FieldValueForbidden', field: 'spec', detail: ONLY_COMPUTE }] : errors;
}

/** Ephemeral containers are added, never changed or taken away. */
function keptEphemeral(before: readonly Container[], after: readonly Container[]): FieldError[] {
  const field = 'spec.ephemeralContainers';
  const errors: FieldError[] = [];
  const kept = byName(after);
  for (const was of before) {
    const now = kept.get(was.name);
    if (now && deepEqual(now, was)) continue;
    const what = now ? 'changed' : 'removed';
    const detail = `existing ephemeral containers ${JSON.stringify(was.name ?? '')} may not be ${what}`;
    errors.push({ type: 'FieldValueForbidden', field, detail });
  }
  return errors;
}
