/** Formats of a definition that nobody checks: allowed, and worth a word (registry/customresourcedefinition/strategy.go). */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { isCheckedFormat } from '@coracle/apimachinery/schema/formats';
import { asCrd, type RawSchema } from './crd.ts';
import { anySchema, typeText } from './structural-rules.ts';

/** One warning for each unknown format. */
export function formatWarnings(object: Readonly<Record<string, unknown>>): string[] {
  if (!isJsonObject(object['spec'])) return [];
  const found = new Set<string>();
  for (const { schema } of asCrd(object as never).spec.versions ?? []) {
    if (schema?.openAPIV3Schema !== undefined) collect(schema.openAPIV3Schema, found);
  }
  return [...found].map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

/** Those of formats that came in with an update. */
export function newFormatWarnings(
  object: Readonly<Record<string, unknown>>,
  old: Readonly<Record<string, unknown>>,
): string[] {
  const before = new Set(formatWarnings(old));
  return formatWarnings(object).filter((text) => !before.has(text));
}

function collect(schema: RawSchema, found: Set<string>): void {
  anySchema(schema, (node) => {
    const { format } = node;
    if (typeof format === 'string' && format !== '' && !isCheckedFormat(typeText(node), format)) found.add(format);
    return false;
  });
}
