/** Who owns each field of an object, as its managedFields say, and what of it the server has filled in. */
import { type FieldSet, pathsOf } from '@coracle/apimachinery/apply/field-set';
import { type Manager, readManagers } from '@coracle/apimachinery/apply/managers';
import { parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { EACH, serverFieldAt } from '@coracle/gitops/server-fields/server-fields';
import { FIELD_MANAGER, MANAGER, SOURCE_PATH, TOKEN } from '@coracle/gitops/status/metadata-keys';
import { syncOfManager } from '@coracle/gitops/status/sync-identity';

export interface OwnedField {
  /** As it is written in code: `spec.template.spec.domain.firmware.uuid`, `spec.volumes[name="a"]`. */
  readonly path: string;
  /** `git` is a sync; `server` what the table of server fields has; others by the names of their field managers. */
  readonly owners: readonly string[];
  readonly why?: string;
}

export interface Ownership {
  /** The sync that manages the object, with the commit and the file. */
  readonly git?: { readonly sync: string; readonly commit: string; readonly file: string };
  readonly fields: readonly OwnedField[];
}

/** Leaves that an object may have; more are left out. */
const MAX_FIELDS = 5000;

/**
 * Of every field that says something by itself: scalars, and lists and maps that are owned as a whole.
 * @throws Error when managedFields cannot be read
 */
export function fieldOwners(object: KubeObject): Ownership {
  const managers = readManagers(object.metadata.managedFields);
  if (managers === undefined) throw new Error('its managedFields cannot be read');
  const annotations = object.metadata.annotations ?? {};
  const manager = annotations[MANAGER];
  const owned = ownersByPath([...managers.values()]);
  const { managedFields: _fields, ...metadata } = object.metadata;
  const fields: OwnedField[] = [];
  walk({ ...object, metadata }, { owned, object, fields }, []);
  if (manager === undefined) return { fields };
  const { kind, namespace, name } = syncOfManager(manager);
  const git = {
    sync: `${kind} ${namespace}/${name}`,
    commit: annotations[TOKEN] ?? '',
    file: annotations[SOURCE_PATH] ?? '',
  };
  return { git, fields };
}

/** By stored path, its elements with a zero byte between. */
type Owned = ReadonlyMap<string, readonly Manager[]>;

function ownersByPath(managers: readonly Manager[]): Owned {
  const owned = new Map<string, Manager[]>();
  for (const manager of managers)
    for (const path of pathsOf(manager.set as FieldSet)) {
      const key = path.join('\0');
      owned.set(key, [...(owned.get(key) ?? []), manager]);
    }
  return owned;
}

interface Walk {
  readonly owned: Owned;
  readonly object: KubeObject;
  readonly fields: OwnedField[];
}

/** A step into a value, as it is stored in managedFields and as it is shown. */
interface Step {
  readonly element: string;
  readonly text: string;
  readonly name: string;
}

function walk(value: unknown, at: Walk, steps: readonly Step[]): void {
  if (at.fields.length >= MAX_FIELDS) return;
  const below = stepsInto(value, at, steps);
  if (below.length > 0) {
    for (const { step, value: inner } of below) walk(inner, at, [...steps, step]);
    return;
  }
  const path = steps
    .map(({ text }) => text)
    .join('')
    .replace(/^\./, '');
  if (['apiVersion', 'kind', 'metadata.name', 'metadata.namespace'].includes(path)) return;
  const { group } = parseApiVersion(at.object.apiVersion);
  const row = serverFieldAt(
    group,
    at.object.kind,
    steps.map(({ name }) => name),
  );
  const managers = ownersOf(at.owned, steps);
  const isGit = managers.some(isSync);
  const filledIn = managers.some(isFilledIn);
  const others = managers.filter((one) => !isSync(one) && !isFilledIn(one)).map(({ manager }) => manager);
  const isSystem = managers.length === 0 && row === undefined;
  const owners = [
    ...(isGit ? ['git'] : []),
    ...((row !== undefined || filledIn) && !isGit ? ['server'] : []),
    ...new Set(others),
    ...(isSystem ? ['nobody'] : []),
  ];
  const why = isGit
    ? undefined
    : (row?.reason ?? (filledIn ? FILLED_IN : isSystem ? 'the API server keeps it' : undefined));
  at.fields.push({ path, owners, ...(why !== undefined && { why }) });
}

/** Its sync applies; what admission filled in at that apply is written down as an update of the same name. */
const isSync = ({ manager, operation }: Manager): boolean => manager === FIELD_MANAGER && operation === 'Apply';
const isFilledIn = ({ manager, operation }: Manager): boolean => manager === FIELD_MANAGER && operation === 'Update';
const FILLED_IN = 'filled in by the server when the sync applied the object';

/** Of the field itself, or of the nearest that it lies in: lists and maps that are owned as a whole. */
function ownersOf(owned: Owned, steps: readonly Step[]): readonly Manager[] {
  for (let depth = steps.length; depth > 0; depth--) {
    const found = owned.get(
      steps
        .slice(0, depth)
        .map(({ element }) => element)
        .join('\0'),
    );
    if (found) return found;
  }
  return [];
}

/** What is below a value: members of maps, and items of lists whose items are owned one by one. */
function stepsInto(value: unknown, { owned, object }: Walk, steps: readonly Step[]): { step: Step; value: unknown }[] {
  if (Array.isArray(value)) return itemsOf(value, { owned, object }, steps);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).map(([name, inner]) => ({
    step: {
      element: `f:${name}`,
      text: /^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`,
      name,
    },
    value: inner,
  }));
}

function itemsOf(
  list: readonly unknown[],
  { owned, object }: Pick<Walk, 'owned' | 'object'>,
  steps: readonly Step[],
): { step: Step; value: unknown }[] {
  const prefix = steps.map(({ element }) => `${element}\0`).join('');
  const elements = new Set(
    [...owned.keys()].flatMap((key) => (key.startsWith(prefix) ? [key.slice(prefix.length).split('\0')[0]!] : [])),
  );
  const found = list.map((item, index) => {
    const element =
      [...elements].find((one) => isElementOf(one, item, index)) ??
      (hasServerItems(object, steps) ? `i:${index}` : undefined);
    return element === undefined
      ? undefined
      : { step: { element, text: elementText(element, index), name: EACH }, value: item };
  });
  return found.every((one) => one !== undefined) ? found : [];
}

function isElementOf(element: string, item: unknown, index: number): boolean {
  const body = element.slice(2);
  if (element.startsWith('i:')) return body === String(index);
  if (element.startsWith('v:')) return body === JSON.stringify(item);
  if (!element.startsWith('k:') || typeof item !== 'object' || item === null) return false;
  const keys = Object.entries(JSON.parse(body) as Record<string, unknown>);
  return keys.every(([name, value]) => (item as Record<string, unknown>)[name] === value);
}

const elementText = (element: string, index: number): string => {
  if (element.startsWith('i:')) return `[${index}]`;
  if (element.startsWith('v:')) return `[=${element.slice(2)}]`;
  const keys = Object.entries(JSON.parse(element.slice(2)) as Record<string, unknown>);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
};

/** A list that is owned as a whole and of whose items the server fills in something: each item is shown. */
const hasServerItems = ({ apiVersion, kind }: KubeObject, steps: readonly Step[]): boolean => {
  const names = [...steps.map(({ name }) => name), EACH, 'macAddress'];
  return serverFieldAt(parseApiVersion(apiVersion).group, kind, names) !== undefined;
};
