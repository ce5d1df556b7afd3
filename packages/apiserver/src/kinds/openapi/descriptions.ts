/**
 * Our own one-line descriptions, where a line helps `kubectl explain`: kinds and the fields every kind has. Those of
 * apiVersion, metadata and creationTimestamp begin with the words that upstream's test of `kubectl explain` looks for.
 * They are in `texts/kind-texts.json`.
 */
import texts from './texts/kind-texts.json' with { type: 'json' };

const lineOf = (lines: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(lines, name) ? lines[name] : undefined;

/** A line about a field of a top-level kind. */
export const fieldDescription = (field: string): string | undefined => lineOf(texts.fields, field);

/** A line about a field of ObjectMeta. */
export const metadataDescription = (field: string): string | undefined => lineOf(texts.metadata, field);

/** A line about a kind. */
export const kindDescription = (kind: string): string =>
  lineOf(texts.kinds, kind) ??
  (kind.endsWith('List') ? `A list of ${kind.slice(0, -4)} objects.` : `The kind ${kind}.`);
