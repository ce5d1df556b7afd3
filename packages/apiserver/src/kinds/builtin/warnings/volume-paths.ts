/** Files of one volume that would lie over one another (warningsForOverlappingVirtualPaths of pkg/api/pod/warnings.go). */
import { isObject, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { add, warnEach } from './collect.ts';

/** Each path is compared with all before it, so no more of a Pod are looked at. */
const LOOKED_AT = 500;

/** One warning for each path that another path of the same volume holds already. */
export function pathWarnings(found: string[], volumes: readonly Readonly<Record<string, unknown>>[]): void {
  const left = { paths: LOOKED_AT };
  for (const volume of volumes) {
    if (SOURCES.every((source) => volume[source] === undefined)) continue;
    const name = textAt(volume, 'name');
    const whole = sourceOf(volume, { secretName: 'secretName', projected: '' });
    if (!whole) projectedWarnings(found, { left, name, sources: objectsAt(volume, 'projected', 'sources') });
    else add(found, overlaps(left, whole.paths, `volume ${JSON.stringify(name)} (${whole.what}): overlapping paths`));
  }
}

/** What may name files of its own. */
const SOURCES = ['configMap', 'secret', 'downwardAPI', 'projected'];

interface Left {
  paths: number;
}

function projectedWarnings(
  found: string[],
  { left, name, sources }: { readonly left: Left; readonly name: string; readonly sources: readonly unknown[] },
): void {
  const known = new Set<string>();
  warnEach(found, sources, (source) => {
    if (isObject(source) && Object.keys(source).length === 0) {
      return [`volume ${JSON.stringify(name)} (Projected) has no sources provided`];
    }
    const found = sourceOf(source, { secretName: 'name', projected: 'Projected ' });
    if (!found || found.paths.length === 0 || left.paths <= 0) return [];
    const message = `volume ${JSON.stringify(name)} (${found.what}): overlapping paths`;
    const own = new Set(found.paths.slice(0, left.paths));
    const all = [...own, ...known].sort();
    for (const path of own) known.add(path);
    return [...overlaps(left, found.paths, message), ...overlaps(left, all, message)];
  });
}

interface Source {
  readonly what: string;
  readonly paths: readonly string[];
}

/** What a source is called, and the files it makes; undefined when it names none. */
function sourceOf(source: unknown, words: { secretName: string; projected: string }): Source | undefined {
  const items = (kind: string): string[] | undefined =>
    Array.isArray(valueAt(source, kind, 'items'))
      ? objectsAt(source, kind, 'items').map((item) => textAt(item, 'path'))
      : undefined;
  const named = (kind: string, label: string, nameField: string): Source | undefined => {
    const paths = items(kind);
    return paths && { what: `${words.projected}${label} ${JSON.stringify(textAt(source, kind, nameField))}`, paths };
  };
  const direct = named('configMap', 'ConfigMap', 'name') ?? named('secret', 'Secret', words.secretName);
  if (direct) return direct;
  const downward = items('downwardAPI');
  if (downward) return { what: `${words.projected}DownwardAPI`, paths: downward };
  if (words.projected === '') return undefined;
  if (isObject(valueAt(source, 'serviceAccountToken'))) {
    return { what: 'Projected ServiceAccountToken', paths: [textAt(source, 'serviceAccountToken', 'path')] };
  }
  if (!isObject(valueAt(source, 'clusterTrustBundle'))) return undefined;
  const bundle = textAt(source, 'clusterTrustBundle', 'name') || textAt(source, 'clusterTrustBundle', 'signerName');
  return {
    what: `Projected ClusterTrustBundle ${JSON.stringify(bundle)}`,
    paths: [textAt(source, 'clusterTrustBundle', 'path')],
  };
}

function overlaps(left: Left, paths: readonly string[], message: string): string[] {
  const seen = new Set<string>();
  const looked = paths.slice(0, Math.max(left.paths, 0));
  left.paths -= looked.length;
  return looked.flatMap((given) => {
    const path = given.replace(/\/+$/, '');
    const other = path === '' ? undefined : [...seen].find((one) => one !== '' && lieOver(one, path));
    seen.add(path);
    return other === undefined ? [] : [`${message}: ${JSON.stringify(path)} with ${JSON.stringify(other)}`];
  });
}

// Upstream compares names, not steps of a path: `a` lies over `ab`, too.
const lieOver = (one: string, other: string): boolean => `${one}/`.startsWith(other) || `${other}/`.startsWith(one);
