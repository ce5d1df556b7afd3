/**
 * What each kind of source asks for, of a volume of a Pod and of a PersistentVolume (core/validation):
 * `volume-source-rules.json`. Sources that hold lists (ConfigMaps, projections) are validated with the volumes of Pods.
 */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, valueAt } from '@coracle/apimachinery/types/read-value';
import { forbidden, required } from '@coracle/apimachinery/validation/field-errors';
import { type Rule, validateByRules } from './table-rules.ts';
import tables from './volume-source-rules.json' with { type: 'json' };

type Tables = Readonly<Record<string, readonly Rule[]>>;
const RULES: Readonly<Record<'pod' | 'persistent', Tables>> = {
  pod: { ...tables.shared, ...tables.pod },
  persistent: { ...tables.shared, ...tables.persistent },
};

/** In the order in which upstream looks for them. */
const ORDER: Readonly<Record<keyof typeof RULES, readonly string[]>> = tables.order;

/** Where upstream reports a source, where that is not its own name. */
const PATHS: Readonly<Record<string, string>> = { gcePersistentDisk: 'persistentDisk' };
/** Where upstream reports that there is one too many, where that is not its own name. */
const SECOND_PATHS: Readonly<Record<string, string>> = { cephfs: 'cephFS', downwardAPI: 'downwarAPI' };

/** The sources that a volume of a Pod or a spec of a PersistentVolume has: it should be one. */
export const sourcesOf = (of: keyof typeof RULES, holder: unknown): string[] =>
  ORDER[of].filter((source) => isObject(valueAt(holder, source)));

/** What is wrong with the source of the volume `name`, of a Pod or of the whole cluster; `beside` is asked of its kind. */
export function volumeSourceErrors(
  of: keyof typeof RULES,
  holder: unknown,
  {
    at,
    name,
    beside,
  }: { readonly at: string; readonly name: string; readonly beside?: (kind: string) => readonly FieldError[] },
): FieldError[] {
  const [kind, ...more] = sourcesOf(of, holder);
  if (kind === undefined) return [required(at, 'must specify a volume type')];
  const errors: FieldError[] = [];
  const self = valueAt(holder, kind);
  validateByRules(errors, RULES[of][kind] ?? [], { self, at: `${at}.${PATHS[kind] ?? kind}`, name });
  if (beside) errors.push(...beside(kind));
  const tooMany = 'may not specify more than 1 volume type';
  return [...errors, ...more.map((one) => forbidden(`${at}.${SECOND_PATHS[one] ?? one}`, tooMany))];
}
