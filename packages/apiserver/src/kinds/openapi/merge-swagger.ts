/** One Swagger document out of this server's and those of the servers behind it (kube-openapi's aggregator). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { OpenApiObject } from './definitions.ts';

export interface OtherSwagger {
  /** Only paths at and below it are taken: `/apis/metrics.k8s.io/v1beta1`. */
  readonly path: string;
  readonly document: Readonly<Record<string, unknown>>;
}

const REFERENCE = '#/definitions/';

/**
 * `own` with the paths of the others and the definitions those need. A definition that has the name of another one and
 * is not the same is renamed (`_v2`, `_v3`, ...). `own` itself is not changed.
 */
export function mergeSwagger(own: OpenApiObject, others: readonly OtherSwagger[]): OpenApiObject {
  if (others.length === 0) return own;
  const paths: Record<string, unknown> = { ...(own['paths'] as OpenApiObject) };
  const definitions: Record<string, unknown> = { ...(own['definitions'] as OpenApiObject) };
  for (const { path: root, document } of others) {
    const theirs = isJsonObject(document['definitions']) ? document['definitions'] : {};
    const taken = Object.entries(isJsonObject(document['paths']) ? document['paths'] : {}).filter(
      ([path]) => path === root || path === `${root}/` || path.startsWith(`${root}/`),
    );
    const names = renames(definitions, theirs, referenced(taken, theirs));
    for (const [path, item] of taken) paths[path] ??= withNames(item, names);
    for (const [name, renamed] of names) definitions[renamed] ??= withNames(theirs[name], names);
  }
  return { ...own, paths, definitions };
}

/** Every definition that `value` leads to. */
function referenced(value: unknown, definitions: Readonly<Record<string, unknown>>): Set<string> {
  const found = new Set<string>();
  const walk = (part: unknown): void => {
    if (Array.isArray(part)) for (const item of part) walk(item);
    if (!isJsonObject(part)) return;
    const reference = part['$ref'];
    if (typeof reference === 'string' && reference.startsWith(REFERENCE)) {
      const name = reference.slice(REFERENCE.length);
      if (!found.has(name) && Object.hasOwn(definitions, name)) {
        found.add(name);
        walk(definitions[name]);
      }
    }
    for (const member of Object.values(part)) walk(member);
  };
  walk(value);
  return found;
}

function renames(
  known: Readonly<Record<string, unknown>>,
  theirs: Readonly<Record<string, unknown>>,
  needed: ReadonlySet<string>,
): Map<string, string> {
  const names = new Map<string, string>();
  for (const name of needed) {
    let free = name;
    for (let n = 2; Object.hasOwn(known, free) && !deepEqual(known[free], theirs[name]); n++) free = `${name}_v${n}`;
    names.set(name, free);
  }
  return names;
}

function withNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => withNames(item, names));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key !== '$ref' || typeof member !== 'string' || !member.startsWith(REFERENCE))
        return [key, withNames(member, names)];
      const name = member.slice(REFERENCE.length);
      return [key, `${REFERENCE}${names.get(name) ?? name}`];
    }),
  );
}
