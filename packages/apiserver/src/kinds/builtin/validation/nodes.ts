/** Validation of Nodes: taints, address ranges, what a node keeps for good. */
import { checkLabelValue, checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { formatCheck } from '@coracle/apimachinery/schema/formats';
import { type JsonObject, objectsAt, textAt, textsAt } from '@coracle/apimachinery/types/read-value';
import {
  faults,
  forbidden,
  invalid,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { CIDR_RULE } from './strict-addresses.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const isCidr = formatCheck('cidr')!;
const fixed = (field: string): string => `node updates may not change ${field} except from "" to valid`;

/** Validates a Node, and on an update what it may not lose. */
export function validateNode(node: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateTaints(errors, node);
  const ranges = textsAt(node, 'spec', 'podCIDRs');
  validateEach(errors, ranges, (range, i) => (isCidr(range) ? [] : [invalid(`spec.podCIDRs[${i}]`, range, CIDR_RULE)]));
  if (ranges.length > 2) {
    const detail = 'may specify no more than one CIDR for each IP family';
    errors.push(invalid('spec.podCIDRs', ranges, detail));
  }
  if (old === undefined) return errors;
  const before = textsAt(old, 'spec', 'podCIDRs');
  if (before.length > 0 && before.join() !== ranges.join()) {
    errors.push(forbidden('spec.podCIDRs', fixed('podCIDR')));
  }
  const id = textAt(old, 'spec', 'providerID');
  if (id !== '' && id !== textAt(node, 'spec', 'providerID')) {
    errors.push(forbidden('spec.providerID', fixed('providerID')));
  }
  return errors;
}

function validateTaints(errors: FieldError[], node: JsonObject): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(node, 'spec', 'taints'), (taint, i) => {
    const at = `spec.taints[${i}]`;
    const key = textAt(taint, 'key');
    const value = textAt(taint, 'value');
    const effect = textAt(taint, 'effect');
    const errors = faults(`${at}.key`, key, checkQualifiedName(key));
    const details = checkLabelValue(value);
    if (details.length > 0) errors.push(invalid(`${at}.value`, value, details.join(';')));
    if (effect === '') errors.push(required(`${at}.effect`));
    else if (!EFFECTS.includes(effect)) errors.push(unsupported(`${at}.effect`, effect, EFFECTS));
    const pair = `${key}:${effect}`;
    if (seen.has(pair)) {
      const detail = 'taints must be unique by key and effect pair';
      errors.push({ type: 'FieldValueDuplicate', field: at, value: taint, detail });
    }
    seen.add(pair);
    return errors;
  });
}
