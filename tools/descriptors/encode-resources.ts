/** Encodes the measured discovery and Table columns into the rows of `resources.generated.json`; see README.md. */

interface DiscoverySubresource {
  readonly subresource: string;
  readonly responseKind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

interface DiscoveryResource {
  readonly resource: string;
  readonly responseKind: { readonly kind: string };
  readonly scope: string;
  readonly singularResource: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly DiscoverySubresource[];
}

export interface ResourceFacts {
  readonly discovery: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly { readonly version: string; readonly resources: readonly DiscoveryResource[] }[];
  }[];
  readonly columns: Readonly<
    Record<string, readonly { name: string; type: string; format?: string; description?: string; priority: number }[]>
  >;
}

/** Letter of each verb, in the order in which verbs are listed. */
export const VERB_LETTERS: Readonly<Record<string, string>> = {
  create: 'c',
  delete: 'd',
  deletecollection: 'D',
  get: 'g',
  list: 'l',
  patch: 'p',
  update: 'u',
  watch: 'w',
};

/** Encodes every group version, in the order of preference in which discovery lists groups. */
export function encodeResources(facts: ResourceFacts): { groupVersions: unknown[] } {
  const groupVersions = facts.discovery.flatMap((group) =>
    group.versions.map((version) => ({
      group: group.metadata.name ?? '',
      version: version.version,
      resources: version.resources.map((resource) => {
        const key = `${group.metadata.name ? `${group.metadata.name}/` : '/'}${version.version}/${resource.resource}`;
        return encodeResource(resource, facts.columns[key] ?? []);
      }),
    })),
  );
  return { groupVersions };
}

function encodeResource(resource: DiscoveryResource, columns: ResourceFacts['columns'][string]): unknown {
  const [first, ...rest] = columns;
  const shown = first?.format === 'name' ? rest : columns;
  return {
    names: [resource.resource, resource.singularResource, resource.responseKind.kind].join(' '),
    scope: resource.scope === 'Namespaced' ? 'n' : 'c',
    verbs: encodeVerbs(resource.verbs),
    ...(resource.shortNames && { short: resource.shortNames.join(' ') }),
    ...(resource.categories && { categories: resource.categories.join(' ') }),
    ...(resource.subresources && { sub: resource.subresources.map(encodeSubresource) }),
    ...(shown.length > 0 && { columns: shown.map(encodeColumn).join('|') }),
  };
}

const encodeVerbs = (verbs: readonly string[]): string =>
  [...verbs]
    .sort()
    .map((verb) => {
      const letter = VERB_LETTERS[verb];
      if (letter === undefined) throw new Error(`verb ${verb} has no letter`);
      return letter;
    })
    .join('');

/** `status Pod gpu`, with the kind as `group/version/Kind` when it lives elsewhere. */
function encodeSubresource(sub: DiscoverySubresource): string {
  const { group, version, kind } = sub.responseKind;
  const full = group === '' && version === '' ? kind : `${group}/${version}/${kind}`;
  return `${sub.subresource} ${full} ${encodeVerbs(sub.verbs)}`;
}

/** `Name`, `Name:integer` when not a string, `*` at the end when only wide. */
function encodeColumn(column: { name: string; type: string; priority: number }): string {
  return `${column.name}${column.type === 'string' ? '' : `:${column.type}`}${column.priority > 0 ? '*' : ''}`;
}
