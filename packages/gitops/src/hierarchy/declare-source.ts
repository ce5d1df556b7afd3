/** A parsed source as the set of objects that it declares for one cluster: by its layout, then object by object. */
import type { LabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { ChangedTree } from '../git/source.ts';
import { type DeclaredSet, declare, type KindLookup, withDefinitions } from '../plan/declare.ts';
import { type ParsedFiles, type ParsedSource, parseManifests } from '../render/parse-manifests.ts';
import type { SyncIdentity } from '../status/sync-identity.ts';
import { isInHierarchy } from './locate.ts';
import { placeInTree } from './place-in-tree.ts';
import { selectForCluster } from './select-cluster.ts';
import { type LiveNamespace, selectNamespaces } from './select-namespaces.ts';

export type SourceFormat = 'hierarchy' | 'unstructured';

/** How a source is laid out. */
export interface SourceLayout {
  readonly format: SourceFormat;
  /** The directory that is synced, from the root of the source; '' = its root. */
  readonly dir: string;
}

export interface DeclareOptions extends SourceLayout {
  readonly sync: SyncIdentity;
  readonly kinds: KindLookup;
  /** What selectors of clusters go by; '' = the cluster has no name. */
  readonly clusterName: string;
  /** Namespaces of the cluster; asked for NamespaceSelectors of mode dynamic alone, and may throw SyncFailure KNV2017. */
  readonly liveNamespaces: () => readonly LiveNamespace[];
}

export interface SourceSet extends DeclaredSet {
  /** NamespaceSelectors of mode dynamic that had their part in it. */
  readonly dynamic: readonly LabelSelector[];
}

/** Parses the files that the format reads: in format hierarchy those of its four directories. `known`: `parseManifests`. */
export function parseSource(tree: ChangedTree, { format, dir }: SourceLayout, known?: ParsedFiles): ParsedSource {
  if (format === 'unstructured') return parseManifests(tree, known);
  const isRead = ({ path }: { readonly path: string }): boolean => isInHierarchy(path, dir);
  return parseManifests({ ...tree, files: tree.files.filter(isRead), unread: tree.unread.filter(isRead) }, known);
}

/**
 * Checks it, and says what of it is to be where.
 * @throws SyncFailure when nothing of it may be done: without a Repo in format hierarchy, and KNV2009 when selectors or
 * inheritance make more objects of it than are taken
 */
export function declareSource(source: ParsedSource, options: DeclareOptions): SourceSet {
  const { sync, kinds, clusterName, format, dir } = options;
  const lookup = withDefinitions(source.objects, kinds);
  switch (format) {
    case 'hierarchy':
      return { ...declare(placeInTree(source, { dir, lookup, clusterName }), sync, kinds), dynamic: [] };
    case 'unstructured': {
      const selected = selectForCluster(source.objects, clusterName);
      // A RepoSync declares nothing of the cluster, and NamespaceSelectors are of it.
      const { objects, dynamic } =
        sync.kind === 'RootSync'
          ? selectNamespaces(selected, lookup, options.liveNamespaces)
          : { objects: selected, dynamic: [] };
      return { ...declare({ ...source, objects }, sync, kinds), dynamic };
    }
    default:
      return format satisfies never;
  }
}
