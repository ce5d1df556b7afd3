/** What an update may say in the status of a Pod (core/validation ValidatePodStatusUpdate). */
import { checkQualifiedName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { formatCheck } from '../../../schema/formats.ts';
import { type JsonObject, objectsAt, textAt } from '../read-value.ts';
import { IMMUTABLE, invalid } from './field-errors.ts';

const isIpv4 = formatCheck('ipv4')!;
const isIpv6 = formatCheck('ipv6')!;
const SYSTEM_CONDITIONS = new Set(['PodScheduled', 'Ready', 'Initialized']);

export const validatePodStatus = (pod: JsonObject, old: JsonObject): FieldError[] => [
  ...judgeConditions(pod),
  ...judgeNomination(pod, old),
  ...judgeQos(pod, old),
  ...judgeIps(pod, old),
];

/** The path is upstream's. */
const judgeConditions = (pod: JsonObject): FieldError[] =>
  objectsAt(pod, 'status', 'conditions').flatMap((condition, i) => {
    const type = textAt(condition, 'type');
    if (SYSTEM_CONDITIONS.has(type)) return [];
    return checkQualifiedName(type).map((detail) => invalid(`metadata.conditions[${i}].Condition`, type, detail));
  });

function judgeNomination(pod: JsonObject, old: JsonObject): FieldError[] {
  const field = 'nominatedNodeName';
  const node = textAt(pod, 'status', field);
  if (node === '' || node === textAt(old, 'status', field)) return [];
  return checkSubdomain(node).map((detail) => invalid(`status.${field}`, node, detail));
}

/** The class is found out once, on create. */
function judgeQos(pod: JsonObject, old: JsonObject): FieldError[] {
  const before = textAt(old, 'status', 'qosClass');
  const now = textAt(pod, 'status', 'qosClass');
  return before === '' || before === now ? [] : [invalid('status.qosClass', now, IMMUTABLE)];
}

/** One address of each family; what stands there already may stay. */
function judgeIps(pod: JsonObject, old: JsonObject): FieldError[] {
  const path = 'status.podIPs';
  const entries = objectsAt(pod, 'status', 'podIPs');
  const before = new Set(objectsAt(old, 'status', 'podIPs').map((entry) => textAt(entry, 'ip')));
  const errors = entries.flatMap((entry, i) => {
    const ip = textAt(entry, 'ip');
    if (isIpv4(ip) || isIpv6(ip) || before.has(ip)) return [];
    return [invalid(`${path}[${i}]`, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')];
  });
  const families = new Set(entries.map((entry) => textAt(entry, 'ip').includes(':')));
  if (entries.length < 2 || families.size === entries.length) return errors;
  const shown = entries.map((entry) => ({ IP: textAt(entry, 'ip') }));
  return [...errors, invalid(path, shown, 'may specify no more than one IP for each IP family')];
}
