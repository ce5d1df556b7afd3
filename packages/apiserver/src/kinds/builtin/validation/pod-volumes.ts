/**
 * Validation of the volumes of a Pod: each has one source, which names what it leads to (core/validation, ValidateVolumes).
 * The files that a kubelet makes of a source are not looked at.
 */
import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, textAt } from '@coracle/apimachinery/types/read-value';
import { duplicate, requiredText, validateNested } from '@coracle/apimachinery/validation/field-errors';
import { volumeSourceErrors } from './volume-sources.ts';

/** Validates `spec.volumes`. */
export function validateVolumes(errors: FieldError[], volumes: readonly JsonObject[]): void {
  const names = new Set<string>();
  validateNested(errors, volumes, (volume, i) => {
    const path = `spec.volumes[${i}]`;
    const name = textAt(volume, 'name');
    errors.push(...volumeSourceErrors('pod', volume, { at: path, name }));
    errors.push(...requiredText(`${path}.name`, name, checkLabelName));
    if (names.has(name)) errors.push(duplicate(`${path}.name`, name));
    names.add(name);
  });
}
