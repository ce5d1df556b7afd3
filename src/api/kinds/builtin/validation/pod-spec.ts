/** Validation of a PodSpec, wherever one stands (core/validation, ValidatePodSpec): the rules users meet. */

import type { FieldError } from '../../../meta/status.ts';
import { compareQuantity } from '../../../quantity/quantity.ts';
import { isObject, type JsonObject, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { validateAffinity, validateTopologySpread } from './affinity.ts';
import {
  absent,
  duplicate,
  invalid,
  isPort,
  nonNegative,
  oneOf,
  PORT_RANGE,
  required,
  uniqueNames,
  unsupported,
} from './field-errors.ts';
import { readQuantity } from './resource-names.ts';

export const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const RESTART_POLICIES = ['Always', 'OnFailure', 'Never'];
const DNS_POLICIES = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None'];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];
const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc'];

export interface PodSpecRules {
  /** Where the spec stands: `spec`, `spec.template.spec`. */
  readonly path: string;
  /** Restart policies that this kind of owner allows; all three by default. */
  readonly restartPolicies?: readonly string[];
}

export function validatePodSpec(
  spec: unknown,
  { path, restartPolicies = RESTART_POLICIES }: PodSpecRules,
): FieldError[] {
  const containers = objectsAt(spec, 'containers');
  const initContainers = objectsAt(spec, 'initContainers');
  const volumes = objectsAt(spec, 'volumes');
  const volumeNames = new Set(volumes.map((volume) => textAt(volume, 'name')));
  const errors: FieldError[] = [...uniqueNames(volumes, `${path}.volumes`)];
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  errors.push(...uniqueNames(containers, `${path}.containers`));
  errors.push(...uniqueNames(initContainers, `${path}.initContainers`));
  const names = new Set(containers.map((container) => textAt(container, 'name')));
  initContainers.forEach((container, i) => {
    const name = textAt(container, 'name');
    if (name !== '' && names.has(name)) errors.push(duplicate(`${path}.initContainers[${i}].name`, name));
  });
  for (const [list, items] of [
    ['containers', containers],
    ['initContainers', initContainers],
  ] as const) {
    items.forEach((container, i) => {
      errors.push(...validateContainer(container, { path: `${path}.${list}[${i}]`, volumeNames }));
    });
  }
  const policy = valueAt(spec, 'restartPolicy');
  if (policy !== undefined && !restartPolicies.includes(String(policy))) {
    errors.push(unsupported(`${path}.restartPolicy`, policy, restartPolicies));
  }
  errors.push(...oneOf(spec, { name: 'dnsPolicy', path: `${path}.dnsPolicy` }, DNS_POLICIES));
  errors.push(...validateGrace(spec, path));
  objectsAt(spec, 'tolerations').forEach((toleration, i) => {
    errors.push(...validateToleration(toleration, `${path}.tolerations[${i}]`));
  });
  errors.push(...validateAffinity(valueAt(spec, 'affinity'), `${path}.affinity`));
  errors.push(...validateTopologySpread(spec, `${path}.topologySpreadConstraints`));
  return errors;
}

function validateGrace(spec: unknown, path: string): FieldError[] {
  const errors: FieldError[] = nonNegative(spec, 'terminationGracePeriodSeconds').map((error) => ({
    ...error,
    field: `${path}.${error.field}`,
  }));
  const deadline = valueAt(spec, 'activeDeadlineSeconds');
  if (typeof deadline === 'number' && (deadline < 1 || deadline > 2_147_483_647)) {
    errors.push(invalid(`${path}.activeDeadlineSeconds`, deadline, 'must be between 1 and 2147483647, inclusive'));
  }
  return errors;
}

function validateToleration(toleration: JsonObject, path: string): FieldError[] {
  const operator = textAt(toleration, 'operator') || 'Equal';
  const errors = [
    ...oneOf(toleration, { name: 'operator', path: `${path}.operator` }, ['Equal', 'Exists', 'Lt', 'Gt']),
    ...(textAt(toleration, 'effect') === ''
      ? []
      : oneOf(toleration, { name: 'effect', path: `${path}.effect` }, EFFECTS)),
  ];
  if (textAt(toleration, 'key') === '' && operator !== 'Exists') {
    errors.push(
      invalid(
        `${path}.operator`,
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    );
  }
  if (operator === 'Exists' && textAt(toleration, 'value') !== '') {
    errors.push(invalid(`${path}.operator`, toleration, "value must be empty when `operator` is 'Exists'"));
  }
  return errors;
}

interface ContainerPlace {
  readonly path: string;
  readonly volumeNames: ReadonlySet<string>;
}

function validateContainer(container: JsonObject, { path, volumeNames }: ContainerPlace): FieldError[] {
  const errors: FieldError[] = [];
  const image = textAt(container, 'image');
  if (image === '') errors.push(required(`${path}.image`));
  else if (image !== image.trim()) {
    errors.push(invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'));
  }
  errors.push(...oneOf(container, { name: 'imagePullPolicy', path: `${path}.imagePullPolicy` }, PULL_POLICIES));
  errors.push(...validatePorts(container, path), ...validateEnv(container, path));
  errors.push(...validateMounts(container, { path, volumeNames }));
  errors.push(...validateResources(valueAt(container, 'resources'), `${path}.resources`));
  for (const probe of PROBES) {
    const value = valueAt(container, probe);
    if (isObject(value)) errors.push(...validateProbe(value, `${path}.${probe}`));
  }
  return errors;
}

function validatePorts(container: JsonObject, path: string): FieldError[] {
  const names = new Set<string>();
  return objectsAt(container, 'ports').flatMap((port, i) => {
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
      if (name.length > 15) errors.push(invalid(`${at}.name`, name, 'must be no more than 15 bytes'));
    }
    return errors;
  });
}

function validateEnv(container: JsonObject, path: string): FieldError[] {
  return objectsAt(container, 'env').flatMap((env, i) => {
    const at = `${path}.env[${i}]`;
    if (textAt(env, 'name') === '') return [required(`${at}.name`)];
    if (textAt(env, 'value') !== '' && isObject(valueAt(env, 'valueFrom'))) {
      return [invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty')];
    }
    return [];
  });
}

function validateMounts(container: JsonObject, { path, volumeNames }: ContainerPlace): FieldError[] {
  const paths = new Set<string>();
  const errors = objectsAt(container, 'volumeMounts').flatMap((mount, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    const found: FieldError[] = [];
    const name = textAt(mount, 'name');
    const mountPath = textAt(mount, 'mountPath');
    if (name === '') found.push(required(`${at}.name`));
    else if (!volumeNames.has(name)) found.push(absent(`${at}.name`, name));
    if (mountPath === '') found.push(required(`${at}.mountPath`));
    else if (paths.has(mountPath)) found.push(invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    return found;
  });
  const devices = objectsAt(container, 'volumeDevices').flatMap((device, i) => {
    const at = `${path}.volumeDevices[${i}]`;
    const found: FieldError[] = [];
    const name = textAt(device, 'name');
    if (name === '') found.push(required(`${at}.name`));
    else if (!volumeNames.has(name)) found.push(absent(`${at}.name`, name));
    if (textAt(device, 'devicePath') === '') found.push(required(`${at}.devicePath`));
    return found;
  });
  return [...errors, ...devices];
}

/** Amounts are not negative, and no request exceeds its limit. */
function validateResources(resources: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const limits = objectAt(resources, 'limits');
  const requests = objectAt(resources, 'requests');
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const [name, value] of Object.entries(amounts)) {
      const amount = readQuantity(value);
      if (amount !== undefined && amount.nano < 0n) {
        errors.push(invalid(`${path}.${list}[${name}]`, value, 'must be greater than or equal to 0'));
      }
    }
  }
  for (const [name, value] of Object.entries(requests)) {
    const request = readQuantity(value);
    const limit = readQuantity(Object.hasOwn(limits, name) ? limits[name] : undefined);
    if (request === undefined || limit === undefined || compareQuantity(request, limit) <= 0) continue;
    errors.push(
      invalid(`${path}.requests`, value, `must be less than or equal to ${name} limit of ${String(limits[name])}`),
    );
  }
  return errors;
}

function validateProbe(probe: JsonObject, path: string): FieldError[] {
  const handlers = HANDLERS.filter((handler) => isObject(valueAt(probe, handler)));
  const errors: FieldError[] = [];
  if (handlers.length === 0) errors.push(required(path, 'must specify a handler type'));
  for (const extra of handlers.slice(1)) {
    errors.push({
      type: 'FieldValueForbidden',
      field: `${path}.${extra}`,
      detail: 'may not specify more than 1 handler type',
    });
  }
  for (const field of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ]) {
    errors.push(...nonNegative(probe, field).map((error) => ({ ...error, field: `${path}.${error.field}` })));
  }
  return errors;
}
