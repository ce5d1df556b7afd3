/** Formats of a definition that nobody checks: allowed, and worth a word (registry/customresourcedefinition/strategy.go). */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { finish, Pace, type Steps } from '@coracle/apimachinery/meta/steps';
import { isCheckedFormat } from '@coracle/apimachinery/schema/formats';
import { asCrd, type RawSchema } from './crd.ts';
import { anySchemaSteps, typeText } from './structural-rules.ts';

/** One warning for each unknown format. */
export const formatWarnings = (object: Readonly<Record<string, unknown>>): string[] =>
  finish(formatWarningsSteps(object));

/** The same in steps. */
export function* formatWarningsSteps(object: Readonly<Record<string, unknown>>): Steps<string[]> {
  if (!isJsonObject(object['spec'])) return [];
  const found = new Set<string>();
  const pace = new Pace();
  for (const { schema } of asCrd(object as never).spec.versions ?? []) {
    if (schema?.openAPIV3Schema !== undefined) yield* collect(schema.openAPIV3Schema, found, pace);
  }
  return [...found].map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

/** Those of formats that came in with an update. */
export const newFormatWarnings = (
  object: Readonly<Record<string, unknown>>,
  old: Readonly<Record<string, unknown>>,
): string[] => finish(newFormatWarningsSteps(object, old));

/** The same in steps. */
export function* newFormatWarningsSteps(
  object: Readonly<Record<string, unknown>>,
  old: Readonly<Record<string, unknown>>,
): Steps<string[]> {
  const before = new Set(yield* formatWarningsSteps(old));
  return (yield* formatWarningsSteps(object)).filter((text) => !before.has(text));
}

function* collect(schema: RawSchema, found: Set<string>, pace: Pace): Steps<void> {
  yield* anySchemaSteps(
    schema,
    (node) => {
      const { format } = node;
      if (typeof format === 'string' && format !== '' && !isCheckedFormat(typeText(node), format)) found.add(format);
      return false;
    },
    pace,
  );
}
