/**
 * What fields of built-in types may say, where Go's types say so (`+enum` in k8s.io/api): for OpenAPI documents alone,
 * validation has rules and words of its own.
 *
 * `enum-values.json` has them by package (alias as in `types.generated.json`) and `Type.field`. `field[]` means the items
 * of a list, `field{}` the values of a map. Values stand in order, an empty one is the empty text.
 */
import table from '@coracle/apimachinery/types/types.generated.json' with { type: 'json' };
import values from './enum-values.json' with { type: 'json' };

/** Which part of a field is one of the values: itself, the items of a list or the values of a map. */
export interface EnumField {
  readonly part: 'itself' | 'items' | 'additionalProperties';
  readonly values: readonly string[];
}

const PARTS = { '[]': 'items', '{}': 'additionalProperties' } as const;

/** Reads the table: by definition name, then by field. */
export function readEnums(): ReadonlyMap<string, ReadonlyMap<string, EnumField>> {
  const packages: Readonly<Record<string, string>> = table.packages;
  const types = new Map<string, Map<string, EnumField>>();
  for (const [alias, places] of Object.entries<Readonly<Record<string, readonly string[]>>>(values)) {
    for (const [place, allowed] of Object.entries(places)) {
      const [, type = '', field = '', mark = ''] = /^(\w+)\.(\w+)(\[\]|\{\})?$/.exec(place) ?? [];
      const name = `${packages[alias]}.${type}`;
      const fields = types.get(name) ?? new Map<string, EnumField>();
      const part = PARTS[mark as keyof typeof PARTS] ?? 'itself';
      types.set(name, fields.set(field, { part, values: allowed }));
    }
  }
  return types;
}
