/**
 * Our own one-line descriptions of the built-in types, looked up by definition name.
 *
 * `type-texts.json` has them by package (alias as in `types.generated.json`) and type: `""` is what is said of the type,
 * the rest of its fields. `*` of `*` holds what fields say that a type itself says nothing about. A type may have no text:
 * then that of its kind stands.
 *
 * Large, and wanted only when somebody asks for an OpenAPI document: whoever imports this does so on demand.
 */
import table from '@coracle/apimachinery/types/types.generated.json' with { type: 'json' };
import enumTable from './enum-values.json' with { type: 'json' };
import texts from './type-texts.json' with { type: 'json' };

/** What is said of a type. */
export interface TypeText {
  readonly text: string | undefined;
  /** By field name; only what is said of this very type. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Under this name stands what fields say that a type says nothing about. */
export const EVERYWHERE = '*';

/**
 * Reads the table, by definition name; about a millisecond, so whoever is done drops what it got.
 * @throws Error when it names an alias that there is none of.
 */
export function readTypeTexts(): ReadonlyMap<string, TypeText> {
  const types = new Map<string, TypeText>();
  for (const [alias, members] of Object.entries<Readonly<Record<string, Readonly<Record<string, string>>>>>(texts)) {
    for (const [type, { '': text, ...fields }] of Object.entries(members)) {
      types.set(`${prefixOf(alias)}${type}`, { text, fields: new Map(Object.entries(fields)) });
    }
  }
  return types;
}

const packages = new Map<string, string>(Object.entries(table.packages));

function prefixOf(alias: string): string {
  if (alias === EVERYWHERE) return '';
  const name = packages.get(alias);
  if (name === undefined) throw new Error(`descriptions of a package that does not exist: ${alias}`);
  return `${name}.`;
}

let digest: Promise<string> | undefined;

/** Changes with any text or value: a document may be kept for ever by its hash, so its hash must hold this. */
export function typeTextsDigest(): Promise<string> {
  digest ??= crypto.subtle
    .digest('SHA-256', new TextEncoder().encode(JSON.stringify([texts, enumTable])))
    .then((bytes) => new Uint8Array(bytes).toHex());
  return digest;
}
