/** What `system/` says of a source of format hierarchy: its Repo, and which kinds are inherited. */
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { KindLookup } from '../plan/declare.ts';
import { refOf } from '../plan/object-ref.ts';
import type { ParsedObject } from '../render/parse-manifests.ts';
import { errorResource, SyncFailure, syncError } from '../status/sync-error.ts';
import { configKindOf, refused } from './config-kinds.ts';

const REPO_VERSIONS: readonly unknown[] = ['1.0.0', '0.1.0'];
const MODES: ReadonlySet<unknown> = new Set(['none', 'inherit', 'default', '', undefined]);

/**
 * Checks that there is one Repo as it should be.
 * @throws SyncFailure KNV1017, KNV1027, KNV2012: nothing of the source may be done
 */
export function checkRepo(objects: readonly ParsedObject[], dir: string): void {
  const repos = objects.filter(({ object }) => configKindOf(object) === 'Repo');
  const [one] = repos;
  if (!one) {
    const place = dir === '' ? 'system/' : `${dir}/system/`;
    const text = `there is no Repo in ${place}: a source of format hierarchy has one (coracle nomos init makes it); or say sourceFormat: unstructured`;
    throw new SyncFailure([syncError(1017, text)]);
  }
  const resources = repos.map(({ object, path }) =>
    errorResource(refOf(object), { version: parseApiVersion(object.apiVersion).version, path }),
  );
  if (repos.length > 1)
    throw new SyncFailure([syncError(2012, `there are ${repos.length} Repos: leave one`, resources)]);
  const { version } = (one.object['spec'] ?? {}) as { version?: unknown };
  if (!REPO_VERSIONS.includes(version))
    throw new SyncFailure([
      syncError(1027, `spec.version of the Repo is ${JSON.stringify(version)}; it is "1.0.0"`, resources),
    ]);
}

export interface Inheritance {
  /** True for kinds that no namespace has from the directories above it. */
  isOwn(group: string, kind: string): boolean;
  /** HierarchyConfigs that are not valid. */
  readonly refused: readonly ParsedObject[];
}

interface ConfigResource {
  readonly group?: unknown;
  readonly kinds?: unknown;
  readonly hierarchyMode?: unknown;
}

/** Reads the HierarchyConfigs: KNV1006, KNV1041, KNV1042, KNV1046. A kind that one of them names wrongly is not inherited. */
export function inheritanceOf(objects: readonly ParsedObject[], lookupKind: ClusterKinds): Inheritance {
  const own = new Set<string>();
  const refusals: ParsedObject[] = [];
  for (const one of objects) {
    if (configKindOf(one.object) !== 'HierarchyConfig' || one.problem) continue;
    const { resources = [] } = (one.object['spec'] ?? {}) as { resources?: unknown };
    const problems = (Array.isArray(resources) ? resources : [undefined]).map((resource: unknown) =>
      readResource(resource, own, lookupKind),
    );
    const problem = problems.find((found) => found !== undefined);
    if (problem) refusals.push(refused(one, problem.code, problem.text));
  }
  return { isOwn: (group, kind) => own.has(`${group}/${kind}`), refused: refusals };
}

/** True for a kind that lies in no namespace. */
export type ClusterKinds = (group: string, kind: string) => boolean;

/** Of the kinds that a source holds. */
export function clusterKindsOf(objects: readonly ParsedObject[], lookup: KindLookup): ClusterKinds {
  const kinds = new Set<string>();
  for (const { object } of objects) {
    const type = lookup(object.apiVersion, object.kind);
    if (type && !type.namespaced) kinds.add(`${type.group}/${type.kind}`);
  }
  return (group, kind) => kinds.has(`${group}/${kind}`);
}

function readResource(
  resource: unknown,
  own: Set<string>,
  isOfCluster: ClusterKinds,
): { code: number; text: string } | undefined {
  const { group = '', kinds = [], hierarchyMode } = (resource ?? {}) as ConfigResource;
  if (typeof resource !== 'object' || typeof group !== 'string' || !Array.isArray(kinds))
    return { code: 1006, text: 'spec.resources is a list of {group, kinds, hierarchyMode}' };
  const isMode = MODES.has(hierarchyMode);
  let problem: { code: number; text: string } | undefined;
  for (const kind of kinds.length === 0 ? [''] : (kinds as unknown[])) {
    const name = `${String(kind)}${group === '' ? '' : `.${group}`}`;
    const isUnusable =
      typeof kind !== 'string' ||
      kind === '' ||
      (group === '' && kind === 'Namespace') ||
      group === 'configmanagement.gke.io';
    if (isUnusable)
      problem ??= { code: 1041, text: `spec.resources names ${JSON.stringify(name)}, which is never inherited` };
    else if (isOfCluster(group, kind)) problem ??= { code: 1046, text: `${name} is not in a namespace` };
    else if (!isMode || hierarchyMode === 'none') own.add(`${group}/${kind}`);
  }
  if (!isMode)
    return { code: 1042, text: `hierarchyMode is ${JSON.stringify(hierarchyMode)}; it is none, inherit or default` };
  return problem;
}
