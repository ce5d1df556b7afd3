/**
 * What a commit declares, object by object: each is checked by itself, so that one that is not valid holds up itself and
 * nothing else. Its place in the inventory stays, since what is wrong with it may be a slip.
 */

import { parseApiVersion, type ResourceType } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ObjectRef, SyncError } from '../kinds/kinds.ts';
import type { ParsedObject, ParsedSource } from '../render/parse-manifests.ts';
import { APPLY_TIME_MUTATION, DELETION, DEPENDS_ON, MANAGED, SPECIAL_NAMESPACES } from '../status/metadata-keys.ts';
import { errorResource, syncError } from '../status/sync-error.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { checkObject, type Problem } from './check-object.ts';
import type { Declared } from './declared.ts';
import { parseDependsOn } from './depends-on.ts';
import { refId, refOf, refText } from './object-ref.ts';
import { parseSubstitutions, type Substitution } from './substitutions.ts';

/** The resource of an apiVersion and kind; undefined when the server has none. */
export type KindLookup = (apiVersion: string, kind: string) => ResourceType<KubeObject> | undefined;

export interface DeclaredSet {
  readonly enabled: readonly Declared[];
  /** `managed: disabled`: let go, never made. */
  readonly disabled: readonly Declared[];
  /** Errors of files and objects. */
  readonly errors: readonly SyncError[];
  /** Errors that hold up the objects that they name and may go by themselves: kinds that are not served yet. */
  readonly passing: readonly SyncError[];
  /** Objects that are not valid, as far as is known which: what is there of them stays. */
  readonly held: readonly ObjectRef[];
  /** False while something is declared that could not be read, or placed: nothing is pruned. */
  readonly isWhole: boolean;
}

const DEFINITIONS = 'apiextensions.k8s.io';

/** Checks every object of a source. */
export function declare(source: ParsedSource, sync: SyncIdentity, served: KindLookup): DeclaredSet {
  const errors: SyncError[] = [...source.errors];
  const passing: SyncError[] = [];
  const held: ObjectRef[] = [];
  const found: (Declared & { readonly isDisabled: boolean })[] = [];
  const lookup = withDefinitions(source.objects, served);
  /** What was said of each object of a file: of copies it is said once. */
  const said = new Map<UnstructuredObject, Set<number>>();
  let isWhole = source.isWhole;

  for (const { object: raw, path, origin = raw, problem: known, needsNoNamespace } of source.objects) {
    const type = lookup(raw.apiVersion, raw.kind);
    const object = inNamespace(raw, type, source.defaultNamespace ?? ownNamespace(sync));
    const ref = refOf(object);
    const refuse = ({ code, text }: Problem, list = errors): void => {
      if (known?.isPlaceless) isWhole = false;
      else held.push(ref);
      const codes = said.get(origin) ?? new Set();
      said.set(origin, codes);
      if (codes.has(code)) return;
      codes.add(code);
      const { version } = parseApiVersion(raw.apiVersion);
      list.push(syncError(code, `${refText(ref)}: ${text}`, [errorResource(ref, { version, path })]));
    };
    const problem = known ?? checkObject(object, { ref, sync, type });
    if (problem) refuse(problem);
    else if (!type) refuse({ code: 1021, text: `the server has no kind ${raw.kind} in ${raw.apiVersion}` }, passing);
    else {
      const isDisabled = object.metadata.annotations?.[MANAGED] === 'disabled';
      const dependsOn = dependsOnOf(object);
      const substitutions = substitutionsOf(object, ref, lookup);
      if (typeof dependsOn === 'string') refuse({ code: 2009, text: `invalid depends-on: ${dependsOn}` });
      else if (typeof substitutions === 'string')
        refuse({ code: 2009, text: `invalid apply-time-mutation: ${substitutions}` });
      else {
        const more = { ...definesOf(object), ...(needsNoNamespace && { needsNoNamespace }) };
        found.push({ ref, type, object, path, ...withSources(dependsOn, substitutions), isDisabled, ...more });
      }
    }
  }
  const { kept, twice } = withoutDuplicates(found);
  for (const group of twice) {
    const files = group.map(({ path }) => path).join(', ');
    const resources = group.map(({ ref, type, path }) => errorResource(ref, { version: type.version, path }));
    errors.push(syncError(1029, `${refText(group[0]!.ref)} is declared ${group.length} times: ${files}`, resources));
    held.push(group[0]!.ref);
  }
  const closed = new Set(
    kept.filter((one) => one.isDisabled && one.ref.kind === 'Namespace').map(({ ref }) => ref.name),
  );
  const enabled: Declared[] = [];
  const disabled: Declared[] = [];
  for (const { isDisabled, ...one } of kept) {
    if (isDisabled) disabled.push(one);
    else if (closed.has(one.ref.namespace)) {
      const resources = [errorResource(one.ref, { version: one.type.version, path: one.path })];
      errors.push(
        syncError(
          1056,
          `${refText(one.ref)} is managed and is in a namespace that is declared managed: disabled`,
          resources,
        ),
      );
      held.push(one.ref);
    } else enabled.push(one);
  }
  return { enabled, disabled, errors, passing, held, isWhole };
}

/** Kinds that the source itself defines are known before the server serves them. */
export function withDefinitions(objects: readonly ParsedObject[], served: KindLookup): KindLookup {
  const own = new Map<string, ResourceType<KubeObject>>();
  for (const { object } of objects) {
    if (object.kind !== 'CustomResourceDefinition') continue;
    const spec = (object['spec'] ?? {}) as {
      group?: unknown;
      scope?: unknown;
      names?: { kind?: unknown; plural?: unknown } | null;
      versions?: unknown;
    };
    const { group, names, scope } = spec;
    if (typeof group !== 'string' || typeof names?.kind !== 'string' || typeof names.plural !== 'string') continue;
    for (const version of Array.isArray(spec.versions)
      ? (spec.versions as { name?: unknown; served?: unknown }[])
      : []) {
      if (typeof version?.name !== 'string' || version.served !== true) continue;
      const { name } = version;
      own.set(`${group}/${name}/${names.kind}`, {
        group,
        version: name,
        resource: names.plural,
        kind: names.kind,
        namespaced: scope === 'Namespaced',
      });
    }
  }
  return (apiVersion, kind) => served(apiVersion, kind) ?? own.get(`${apiVersion}/${kind}`);
}

const ownNamespace = ({ kind, namespace }: SyncIdentity): string => (kind === 'RootSync' ? 'default' : namespace);

function inNamespace(
  object: UnstructuredObject,
  type: ResourceType<KubeObject> | undefined,
  namespace: string,
): UnstructuredObject {
  if (object.metadata.namespace || !type?.namespaced) return object;
  return { ...object, metadata: { ...object.metadata, namespace } };
}

function dependsOnOf({ metadata }: UnstructuredObject): readonly ObjectRef[] | string {
  const text = metadata.annotations?.[DEPENDS_ON];
  if (text === undefined || text === '') return [];
  try {
    return parseDependsOn(text);
  } catch (error) {
    return (error as Error).message;
  }
}

const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'];

function substitutionsOf(
  { metadata }: UnstructuredObject,
  ref: ObjectRef,
  lookup: KindLookup,
): readonly Substitution[] | string {
  const text = metadata.annotations?.[APPLY_TIME_MUTATION];
  if (text === undefined || text === '') return [];
  try {
    return parseSubstitutions(
      text,
      ref,
      ({ group, kind }) =>
        VERSIONS.map((version) => lookup(group === '' ? version : `${group}/${version}`, kind)).find((type) => type)
          ?.namespaced,
    );
  } catch (error) {
    return (error as Error).message;
  }
}

/** What fills an object in is there and ready before it. */
function withSources(
  dependsOn: readonly ObjectRef[],
  substitutions: readonly Substitution[],
): Pick<Declared, 'dependsOn' | 'substitutions'> {
  if (substitutions.length === 0) return { dependsOn };
  const all = new Map([...dependsOn, ...substitutions.map(({ source }) => source)].map((ref) => [refId(ref), ref]));
  return { dependsOn: [...all.values()], substitutions };
}

/** Of a definition: what it defines. */
export function definesOf(object: KubeObject): { defines?: { group: string; kind: string } } {
  if (object.kind !== 'CustomResourceDefinition' || !object.apiVersion.startsWith(`${DEFINITIONS}/`)) return {};
  const { group = '', names } = ((object as UnstructuredObject)['spec'] ?? {}) as {
    group?: string;
    names?: { kind?: string };
  };
  return { defines: { group, kind: names?.kind ?? '' } };
}

function withoutDuplicates<T extends Declared>(found: readonly T[]): { kept: T[]; twice: T[][] } {
  const groups = new Map<string, T[]>();
  for (const one of found) groups.set(refId(one.ref), [...(groups.get(refId(one.ref)) ?? []), one]);
  const all = [...groups.values()];
  return { kept: all.filter(({ length }) => length === 1).flat(), twice: all.filter(({ length }) => length > 1) };
}

/** A namespace that objects need and nobody declares; it is let go, not deleted. */
export const impliedNamespace = (name: string, type: ResourceType<KubeObject>): Declared => ({
  ref: { group: '', kind: 'Namespace', namespace: '', name },
  type,
  dependsOn: [],
  object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations: { [DELETION]: 'detach' } } },
});

/** Special namespaces that are declared are let go as well. */
export const detachedIfSpecial = (one: Declared): Declared =>
  one.ref.kind !== 'Namespace' || one.ref.group !== '' || !SPECIAL_NAMESPACES.has(one.ref.name)
    ? one
    : {
        ...one,
        object: {
          ...one.object,
          metadata: {
            ...one.object.metadata,
            annotations: { ...one.object.metadata.annotations, [DELETION]: 'detach' },
          },
        },
      };
