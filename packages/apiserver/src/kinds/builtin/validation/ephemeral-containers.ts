/** Ephemeral containers: what may not be said of one (core/validation, validateEphemeralContainers). */

import { checkLabelName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  absent,
  duplicate,
  forbidden,
  requiredText,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';

const NOT_HERE = 'cannot be set for an Ephemeral Container';
/** In the order of the type's members. */
const REFUSED = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'lifecycle',
];

/** Validates the ephemeral containers of a spec beside what holds for any container. */
export function validateEphemeral(errors: FieldError[], spec: unknown, path: string): void {
  const named = new Set<string>();
  for (const list of ['containers', 'initContainers']) {
    for (const container of objectsAt(spec, list)) named.add(textAt(container, 'name'));
  }
  const names = new Set(named);
  validateEach(errors, objectsAt(spec, 'ephemeralContainers'), (container, i) => {
    const at = `${path}.ephemeralContainers[${i}]`;
    const name = textAt(container, 'name');
    const errors = requiredText(`${at}.name`, name, checkLabelName);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    const target = textAt(container, 'targetContainerName');
    if (target !== '' && !named.has(target)) errors.push(absent(`${at}.targetContainerName`, target));
    for (const field of REFUSED) if (isSaid(container, field)) errors.push(forbidden(`${at}.${field}`, NOT_HERE));
    for (const [j, mount] of objectsAt(container, 'volumeMounts').entries()) {
      for (const field of ['subPath', 'subPathExpr']) {
        if (textAt(mount, field) !== '') errors.push(forbidden(`${at}.volumeMounts[${j}].${field}`, NOT_HERE));
      }
    }
    return errors;
  });
}

/** Empty resources are what every container has. */
function isSaid(container: JsonObject, field: string): boolean {
  const value = valueAt(container, field);
  if (value === undefined || value === null) return false;
  return !(field === 'resources' && isObject(value) && Object.keys(value).length === 0);
}
