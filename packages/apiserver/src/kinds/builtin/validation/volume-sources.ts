/**
 * What each kind of source asks for, of a volume of a Pod and of a PersistentVolume (core/validation):
 * `volume-source-rules.json`. Sources that hold lists (ConfigMaps, projections) are validated with the volumes of Pods.
 */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import { type Rule, validateByRules } from './table-rules.ts';
import tables from './volume-source-rules.json' with { type: 'json' };

type Tables = Readonly<Record<string, readonly Rule[]>>;
const RULES: Readonly<Record<'pod' | 'persistent', Tables>> = {
  pod: { ...tables.shared, ...tables.pod },
  persistent: { ...tables.shared, ...tables.persistent },
};

/** What is wrong with the source `kind` at `at`, of the volume `name` of a Pod or of the whole cluster. */
export function volumeSourceErrors(
  of: 'pod' | 'persistent',
  kind: string,
  { source, at, name }: { readonly source: JsonObject; readonly at: string; readonly name: string },
): FieldError[] {
  const errors: FieldError[] = [];
  validateByRules(errors, RULES[of][kind] ?? [], { self: source, at, name });
  return errors;
}

/** Where upstream reports a source, where that is not its own name. */
export const SOURCE_PATHS: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
/** Where upstream reports that there is one too many, where that is not its own name. */
export const SECOND_PATHS: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };
