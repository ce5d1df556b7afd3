/**
 * Validation of a PodSpec (core/validation, ValidatePodSpec): what schedulers, Services, quotas and volumes go by. What only a
 * container runtime acts on is not looked at, for none runs here.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkLabelName, checkPortName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { compareQuantity, readQuantity } from '@coracle/apimachinery/quantity/quantity';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  absent,
  duplicate,
  forbidden,
  invalid,
  invalidEach,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  requiredText,
  uniqueNames,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import rules from './pod-rules.json' with { type: 'json' };
import { validatePodSettings } from './pod-settings.ts';
import { validateVolumes } from './pod-volumes.ts';
import { checkContainerResourceName } from './resource-names.ts';
import { validateByRules } from './table-rules.ts';

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
function validateEphemeral(errors: FieldError[], spec: unknown): void {
  const named = new Set<string>();
  for (const list of ['containers', 'initContainers']) {
    for (const container of objectsAt(spec, list)) named.add(textAt(container, 'name'));
  }
  const names = new Set(named);
  validateEach(errors, objectsAt(spec, 'ephemeralContainers'), (container, i) => {
    const at = `spec.ephemeralContainers[${i}]`;
    const name = textAt(container, 'name');
    const errors = requiredText(`${at}.name`, name, checkLabelName);
    if (name !== '' && names.has(name)) errors.push(duplicate(`${at}.name`, name));
    names.add(name);
    const target = textAt(container, 'targetContainerName');
    if (target !== '' && !named.has(target)) errors.push(absent(`${at}.targetContainerName`, target));
    for (const field of REFUSED) if (isSaid(container, field)) errors.push(forbidden(`${at}.${field}`, NOT_HERE));
    return errors;
  });
}

/** Empty resources are what every container has. */
function isSaid(container: JsonObject, field: string): boolean {
  const value = valueAt(container, field);
  if (value === undefined || value === null) return false;
  return !(field === 'resources' && isObject(value) && Object.keys(value).length === 0);
}

const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];

/** Validates a spec; volumes that stood in the spec `before` it already are not validated again. */
export function validatePodSpec(errors: FieldError[], spec: unknown, before?: unknown): void {
  const containers = objectsAt(spec, 'containers');
  const initContainers = objectsAt(spec, 'initContainers');
  const volumes = objectsAt(spec, 'volumes');
  const isKept = before !== undefined && deepEqual(volumes, objectsAt(before, 'volumes'));
  if (!isKept) validateVolumes(errors, volumes);
  if (containers.length === 0) errors.push(required('spec.containers'));
  uniqueNames(errors, containers, 'spec.containers');
  uniqueNames(errors, initContainers, 'spec.initContainers');
  const names = new Set(containers.map((container) => textAt(container, 'name')));
  validateEach(errors, initContainers, (container, i) => {
    const name = textAt(container, 'name');
    return name !== '' && names.has(name) ? [duplicate(`spec.initContainers[${i}].name`, name)] : [];
  });
  for (const list of ['containers', 'initContainers', 'ephemeralContainers']) {
    validateNested(errors, objectsAt(spec, list), (container, i) => {
      validateContainer(errors, container, `spec.${list}[${i}]`);
    });
  }
  validateEphemeral(errors, spec);
  validatePodSettings(errors, spec);
}

function validateContainer(errors: FieldError[], container: JsonObject, path: string): void {
  validateByRules(errors, rules.container, { self: container, at: path });
  if (container['ports'] !== undefined) validatePorts(errors, container, path);
  validateResources(errors, valueAt(container, 'resources'), `${path}.resources`);
}

function validatePorts(errors: FieldError[], container: JsonObject, path: string): void {
  const names = new Set<string>();
  validateEach(errors, objectsAt(container, 'ports'), (port, i) => {
    const at = `${path}.ports[${i}]`;
    const errors: FieldError[] = [];
    const number = valueAt(port, 'containerPort');
    if (number === undefined || number === 0) errors.push(required(`${at}.containerPort`));
    else if (!isPort(number)) errors.push(invalid(`${at}.containerPort`, number, PORT_RANGE));
    const host = valueAt(port, 'hostPort');
    if (host !== undefined && host !== 0 && !isPort(host)) errors.push(invalid(`${at}.hostPort`, host, PORT_RANGE));
    errors.push(...oneOf(port, { name: 'protocol', path: `${at}.protocol` }, PROTOCOLS));
    const name = textAt(port, 'name');
    if (name !== '') {
      if (names.has(name)) errors.push(duplicate(`${at}.name`, name));
      names.add(name);
      errors.push(...invalidEach(`${at}.name`, name, checkPortName(name)));
    }
    return errors;
  });
}

/** Amounts are not negative, and no request exceeds its limit. */
function validateResources(errors: FieldError[], resources: unknown, path: string): void {
  if (!isObject(resources)) return;
  const limits = objectAt(resources, 'limits');
  const requests = objectAt(resources, 'requests');
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    validateEach(errors, Object.keys(amounts), (name) => {
      const value = amounts[name];
      const errors = checkContainerResourceName(name, `${path}.${list}[${name}]`);
      const amount = readQuantity(value);
      if (amount === undefined || amount.nano >= 0n) return errors;
      return [...errors, invalid(`${path}.${list}[${name}]`, value, 'must be greater than or equal to 0')];
    });
  }
  validateEach(errors, Object.keys(requests), (name) => {
    const value = requests[name];
    const request = readQuantity(value);
    const limit = readQuantity(Object.hasOwn(limits, name) ? limits[name] : undefined);
    if (request === undefined || limit === undefined || compareQuantity(request, limit) <= 0) return [];
    return [
      invalid(`${path}.requests`, value, `must be less than or equal to ${name} limit of ${String(limits[name])}`),
    ];
  });
}
