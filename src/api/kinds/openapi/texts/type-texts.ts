/**
 * Our own one-line descriptions of the built-in types, looked up by definition name.
 *
 * The notation of the tables: `@alias` begins a package (alias as in `types.generated.json`), `Type, Type: text` begins
 * types, `  field, field: text` describes their fields. `Type < Base` takes over what Base says. `@*` with the type `*`
 * holds what fields say that a type itself says nothing about. A type may have no text: then that of its kind stands.
 *
 * Large, and wanted only when somebody asks for an OpenAPI document: whoever imports this does so on demand.
 */
import table from '../../builtin/types.generated.json' with { type: 'json' };
import { ACCESS_TEXTS } from './access-texts.ts';
import { CORE_TEXTS } from './core-texts.ts';
import { DEVICE_TEXTS } from './device-texts.ts';
import { ENUM_TABLE } from './enum-values.ts';
import { EXTENSION_TEXTS } from './extension-texts.ts';
import { META_TEXTS } from './meta-texts.ts';
import { NETWORK_TEXTS } from './network-texts.ts';
import { POD_TEXTS } from './pod-texts.ts';
import { VOLUME_TEXTS } from './volume-texts.ts';
import { WORKLOAD_TEXTS } from './workload-texts.ts';

const TABLES: readonly string[] = [
  META_TEXTS,
  POD_TEXTS,
  VOLUME_TEXTS,
  CORE_TEXTS,
  WORKLOAD_TEXTS,
  NETWORK_TEXTS,
  ACCESS_TEXTS,
  EXTENSION_TEXTS,
  DEVICE_TEXTS,
];

/** What is said of a type. */
export interface TypeText {
  readonly text: string | undefined;
  /** By field name; only what is said of this very type. */
  readonly fields: ReadonlyMap<string, string>;
}

interface Entry extends TypeText {
  readonly fields: Map<string, string>;
}

const packages = new Map<string, string>(Object.entries(table.packages));

/** Under this name stands what fields say that a type says nothing about. */
export const EVERYWHERE = '*';

/**
 * Reads the tables, by definition name; about a millisecond, so whoever is done drops what it got.
 * @throws Error when a table names an alias that there is none of.
 */
export function readTypeTexts(): ReadonlyMap<string, TypeText> {
  const types = new Map<string, Entry>();
  for (const table of TABLES) readTable(table, types);
  return types;
}

function readTable(table: string, types: Map<string, Entry>): void {
  let pkg = '';
  let open: readonly Entry[] = [];
  for (const line of table.split('\n')) {
    if (line === '') continue;
    if (line.startsWith('@')) {
      pkg = prefixOf(line.slice(1));
      continue;
    }
    const colon = line.indexOf(':');
    const text = line.slice(colon + 2);
    const names = line.slice(0, colon).trim().split(', ');
    if (line.startsWith('  ')) {
      for (const { fields } of open) for (const name of names) fields.set(name, text);
    } else {
      open = names.map((name) => {
        const [type = '', base] = name.split(' < ');
        const inherited = base === undefined ? undefined : types.get(`${pkg}${base}`)?.fields;
        const entry = { text: text === '' ? undefined : text, fields: new Map(inherited) };
        types.set(`${pkg}${type}`, entry);
        return entry;
      });
    }
  }
}

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
    .digest('SHA-256', new TextEncoder().encode([...TABLES, ENUM_TABLE].join('')))
    .then((bytes) => new Uint8Array(bytes).toHex());
  return digest;
}
