/** Kernel parameters of a Pod (core/validation, validateSysctls). Whether a node takes them is the node's to say. */
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { duplicate, invalid, required, validateEach } from '@coracle/apimachinery/validation/field-errors';

const MAX_NAME = 253;
const SEGMENT = '[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const PATTERN = `(${SEGMENT}[\\./])*${SEGMENT}`;
const NAME = new RegExp(`^${PATTERN}$`);
const RULE = `must have at most ${MAX_NAME} characters and match regex ${PATTERN}`;

export function validateSysctls(errors: FieldError[], spec: unknown, path: string): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(spec, 'securityContext', 'sysctls'), (sysctl, i) => {
    const at = `${path}.securityContext.sysctls[${i}].name`;
    const name = textAt(sysctl, 'name');
    if (name === '') return [required(at)];
    if (name.length > MAX_NAME || !NAME.test(name)) return [invalid(at, name, RULE)];
    if (seen.has(name)) return [duplicate(at, name)];
    seen.add(name);
    return [];
  });
}
