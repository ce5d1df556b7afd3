/**
 * Our own one-line descriptions of the built-in types, and the values that their fields may have, looked up by definition
 * name. Both tables go by package (alias as in `types.generated.json`).
 *
 * `type-texts.json` has the texts by type: `""` is what is said of the type, the rest of its fields. `*` of `*` holds what
 * fields say that a type itself says nothing about. A type may have no text: then that of its kind stands (`kind-texts.json`).
 *
 * `enum-values.json` has the values by `Type.field`, where Go's types say so (`+enum` in k8s.io/api): for OpenAPI documents
 * alone, validation has rules and words of its own. `field[]` means the items of a list, `field{}` the values of a map. Values
 * stand in order, an empty one is the empty text.
 *
 * Large, and wanted only when somebody asks for an OpenAPI document: whoever imports this does so on demand.
 */
import { hexOf } from '@coracle/apimachinery/meta/hex';
import table from '@coracle/apimachinery/types/types.generated.json' with { type: 'json' };
import enums from './enum-values.json' with { type: 'json' };
import kindTexts from './kind-texts.json' with { type: 'json' };
import texts from './type-texts.json' with { type: 'json' };

/** Under this name stands what fields say that a type says nothing about. */
export const EVERYWHERE = '*';

const packages: Readonly<Record<string, string>> = { ...table.packages, [EVERYWHERE]: '' };

/** The name of a definition. Throws an Error when there is no such alias. */
function definitionOf(alias: string, type: string): string {
  if (!Object.hasOwn(packages, alias)) throw new Error(`descriptions of a package that does not exist: ${alias}`);
  return alias === EVERYWHERE ? type : `${packages[alias]}.${type}`;
}

/** What is said of a type, and of the fields of this very type, by name. */
interface TypeText {
  readonly text: string | undefined;
  readonly fields: ReadonlyMap<string, string>;
}

/**
 * Reads the texts, by definition name; about a millisecond, so whoever is done drops what it got.
 * @throws Error when it names an alias that there is none of.
 */
export function readTypeTexts(): ReadonlyMap<string, TypeText> {
  const types = new Map<string, TypeText>();
  for (const [alias, members] of Object.entries<Readonly<Record<string, Readonly<Record<string, string>>>>>(texts)) {
    for (const [type, { '': text, ...fields }] of Object.entries(members)) {
      types.set(definitionOf(alias, type), { text, fields: new Map(Object.entries(fields)) });
    }
  }
  return types;
}

/** Which part of a field is one of the values: itself, the items of a list or the values of a map. */
export interface EnumField {
  readonly part: 'itself' | 'items' | 'additionalProperties';
  readonly values: readonly string[];
}

const PARTS = { '[]': 'items', '{}': 'additionalProperties' } as const;

/** Reads the values: by definition name, then by field. */
export function readEnums(): ReadonlyMap<string, ReadonlyMap<string, EnumField>> {
  const types = new Map<string, Map<string, EnumField>>();
  for (const [alias, places] of Object.entries<Readonly<Record<string, readonly string[]>>>(enums)) {
    for (const [place, values] of Object.entries(places)) {
      const [, type = '', field = '', mark = ''] = /^(\w+)\.(\w+)(\[\]|\{\})?$/.exec(place) ?? [];
      const name = definitionOf(alias, type);
      const fields = types.get(name) ?? new Map<string, EnumField>();
      types.set(name, fields.set(field, { part: PARTS[mark as keyof typeof PARTS] ?? 'itself', values }));
    }
  }
  return types;
}

const lineOf = (lines: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(lines, name) ? lines[name] : undefined;

/**
 * A line about a field of a top-level kind. Those of apiVersion, metadata and creationTimestamp begin with the words that
 * upstream's test of `kubectl explain` looks for.
 */
export const fieldDescription = (field: string): string | undefined => lineOf(kindTexts.fields, field);

/** A line about a field of ObjectMeta. */
export const metadataDescription = (field: string): string | undefined => lineOf(kindTexts.metadata, field);

/** A line about a kind. */
export const kindDescription = (kind: string): string =>
  lineOf(kindTexts.kinds, kind) ??
  (kind.endsWith('List') ? `A list of ${kind.slice(0, -4)} objects.` : `The kind ${kind}.`);

let digest: Promise<string> | undefined;

/** Changes with any text or value: a document may be kept for ever by its hash, so its hash must hold this. */
export function typeTextsDigest(): Promise<string> {
  digest ??= crypto.subtle
    .digest('SHA-256', new TextEncoder().encode(JSON.stringify([texts, enums])))
    .then((bytes) => hexOf(new Uint8Array(bytes)));
  return digest;
}
