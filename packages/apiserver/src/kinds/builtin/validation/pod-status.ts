/** What an update may say in the status of a Pod (core/validation ValidatePodStatusUpdate). */
import { checkQualifiedName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { type JsonObject, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { faults, IMMUTABLE, invalid, validateEach } from '@coracle/apimachinery/validation/field-errors';
import { legacyAddressFault } from './strict-addresses.ts';

const SYSTEM_CONDITIONS = new Set(['PodScheduled', 'Ready', 'Initialized']);

export function validatePodStatus(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  validateConditions(errors, pod);
  errors.push(...nominationErrors(pod, old), ...qosErrors(pod, old));
  validateIps(errors, pod, old);
}

/** The path is upstream's. */
const validateConditions = (errors: FieldError[], pod: JsonObject): void =>
  validateEach(errors, objectsAt(pod, 'status', 'conditions'), (condition, i) => {
    const type = textAt(condition, 'type');
    if (SYSTEM_CONDITIONS.has(type)) return [];
    return faults(`metadata.conditions[${i}].Condition`, type, checkQualifiedName(type));
  });

function nominationErrors(pod: JsonObject, old: JsonObject): FieldError[] {
  const field = 'nominatedNodeName';
  const node = textAt(pod, 'status', field);
  if (node === '' || node === textAt(old, 'status', field)) return [];
  return faults(`status.${field}`, node, checkSubdomain(node));
}

/** The class is found out once, on create. */
function qosErrors(pod: JsonObject, old: JsonObject): FieldError[] {
  const before = textAt(old, 'status', 'qosClass');
  const now = textAt(pod, 'status', 'qosClass');
  return before === '' || before === now ? [] : [invalid('status.qosClass', now, IMMUTABLE)];
}

/** One address of each family; what stands there already may stay. */
function validateIps(errors: FieldError[], pod: JsonObject, old: JsonObject): void {
  const path = 'status.podIPs';
  const entries = objectsAt(pod, 'status', 'podIPs');
  const before = new Set(objectsAt(old, 'status', 'podIPs').map((entry) => textAt(entry, 'ip')));
  validateEach(errors, entries, (entry, i) => {
    const ip = textAt(entry, 'ip');
    const fault = before.has(ip) ? undefined : legacyAddressFault(ip);
    return fault === undefined ? [] : [invalid(`${path}[${i}]`, ip, fault)];
  });
  const families = new Set(entries.map((entry) => textAt(entry, 'ip').includes(':')));
  if (entries.length < 2 || families.size === entries.length) return;
  errors.push(invalid(path, entries, 'may specify no more than one IP for each IP family'));
}
