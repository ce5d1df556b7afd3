/** Formats of a definition that nobody checks: allowed, and worth a word (registry/customresourcedefinition/strategy.go). */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { isCheckedFormat } from '@coracle/apimachinery/schema/formats';
import type { JsonObject } from '@coracle/apimachinery/types/read-value';
import { asCrd } from './crd.ts';
import { anySchema, typeText } from './structural-rules.ts';

/** One warning for each unknown format that an update did not find in `old`. */
export function formatWarnings(object: JsonObject, old?: JsonObject): string[] {
  const before = old === undefined ? new Set<string>() : unknownFormats(old);
  return [...unknownFormats(object).difference(before)].map(
    (format) => `unrecognized format ${JSON.stringify(format)}`,
  );
}

function unknownFormats(object: JsonObject): Set<string> {
  const found = new Set<string>();
  if (!isJsonObject(object['spec'])) return found;
  for (const { schema } of asCrd(object as never).spec.versions ?? []) {
    if (schema?.openAPIV3Schema === undefined) continue;
    anySchema(schema.openAPIV3Schema, (node) => {
      const { format } = node;
      if (typeof format === 'string' && format !== '' && !isCheckedFormat(typeText(node), format)) found.add(format);
      return false;
    });
  }
  return found;
}
