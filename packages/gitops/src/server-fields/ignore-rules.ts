/** The table of server fields as other GitOps tools want it. */
import { EACH, SERVER_FIELDS, type ServerField } from './server-fields.ts';

export interface IgnoredKind {
  readonly group: string;
  readonly kind: string;
  /** JSON pointers (RFC 6901): fields that are in no list. */
  readonly pointers: readonly { readonly pointer: string; readonly reason: string }[];
  /** Paths of jq: fields of list items, and items. */
  readonly expressions: readonly { readonly jq: string; readonly reason: string }[];
}

/** The rows by kind. `status` is left out: the tools leave it out by themselves. */
export function ignoredKinds(fields: readonly ServerField[] = SERVER_FIELDS): IgnoredKind[] {
  const kinds = new Map<string, ServerField[]>();
  for (const field of fields) {
    if (field.path[0] === 'status') continue;
    const id = `${field.group}/${field.kind}`;
    kinds.set(id, [...(kinds.get(id) ?? []), field]);
  }
  return [...kinds.values()].map((rows) => ({
    group: rows[0]!.group,
    kind: rows[0]!.kind,
    pointers: rows
      .filter(({ path }) => !path.includes(EACH))
      .map(({ path, reason }) => ({ pointer: pointerOf(path), reason })),
    expressions: rows
      .filter(({ path }) => path.includes(EACH))
      .map(({ path, jq, reason }) => ({ jq: jq ?? jqOf(path), reason })),
  }));
}

const pointerOf = (path: readonly string[]): string =>
  path.map((name) => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');

const jqOf = (path: readonly string[]): string =>
  path.map((name) => (name === EACH ? '[]?' : /^\w+$/.test(name) ? `.${name}` : `.[${JSON.stringify(name)}]`)).join('');
