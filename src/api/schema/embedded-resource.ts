/** Rules of whole objects inside objects (x-kubernetes-embedded-resource). */
import { isJsonObject } from '../meta/own-property.ts';
import type { FieldError } from '../meta/status.ts';
import { validateAnnotations, validateLabels } from '../meta/validate-object-meta.ts';
import { decodeProblem } from './decode-errors.ts';
import { OBJECT_META_SCHEMA } from './object-meta-schema.ts';

const at = (path: string, field: string): string => (path === '' ? field : `${path}.${field}`);

/** apiVersion and kind must be there, metadata must have ObjectMeta's shape. */
export function checkEmbedded(value: unknown, path: string, errors: FieldError[]): void {
  if (!isJsonObject(value)) return;
  for (const field of ['apiVersion', 'kind']) {
    const text = Object.hasOwn(value, field) ? value[field] : undefined;
    if (text === undefined || text === '') {
      errors.push({ type: 'FieldValueRequired', field: at(path, field), detail: 'must not be empty' });
    } else if (typeof text !== 'string') {
      errors.push({ type: 'FieldValueInvalid', field: at(path, field), value: text, detail: 'must be a string' });
    }
  }
  if (!Object.hasOwn(value, 'metadata')) return;
  const field = at(path, 'metadata');
  const problem = decodeProblem(OBJECT_META_SCHEMA, value['metadata']);
  if (problem !== undefined) {
    errors.push({ type: 'FieldValueInvalid', field, value: value['metadata'], detail: problem });
    return;
  }
  const meta = (value['metadata'] ?? {}) as Record<string, Record<string, string> | undefined>;
  errors.push(...validateLabels(meta['labels'], `${field}.labels`));
  errors.push(...validateAnnotations(meta['annotations'], `${field}.annotations`));
}
