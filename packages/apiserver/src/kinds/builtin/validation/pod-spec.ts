/** Validation of a PodSpec, wherever one stands (core/validation, ValidatePodSpec): the rules users meet. */

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
  faults,
  forbidden,
  invalid,
  isPort,
  oneOf,
  PORT_RANGE,
  required,
  requiredText,
  uniqueNames,
  validateEach,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { lifecycleErrors, probeErrors, securityErrors, variableErrors, variablesErrors } from './container-details.ts';
import { validateMounts } from './container-mounts.ts';
import { validateHostPorts, validatePodSettings } from './pod-settings.ts';
import { validateVolumes } from './pod-volumes.ts';
import { checkContainerResourceName } from './resource-names.ts';

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
function validateEphemeral(errors: FieldError[], spec: unknown, path: string): void {
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

export const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];
const MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError'];
const NOT_OF_INIT = ['lifecycle', ...PROBES];

export interface PodSpecRules {
  /** Where the spec stands: `spec`, `spec.template.spec`. */
  readonly path: string;
  /** The spec that is replaced: volumes that stand there already are not validated again. */
  readonly before?: unknown;
  /** Name of the Pod, where there is one. */
  readonly podName?: string;
}

export function validatePodSpec(
  errors: FieldError[],
  spec: unknown,
  { path, before, podName = '' }: PodSpecRules,
): void {
  const containers = objectsAt(spec, 'containers');
  const initContainers = objectsAt(spec, 'initContainers');
  const volumes = objectsAt(spec, 'volumes');
  const isKept = before !== undefined && deepEqual(volumes, objectsAt(before, 'volumes'));
  if (!isKept) validateVolumes(errors, volumes, { at: `${path}.volumes`, podName });
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  uniqueNames(errors, containers, `${path}.containers`);
  uniqueNames(errors, initContainers, `${path}.initContainers`);
  const names = new Set(containers.map((container) => textAt(container, 'name')));
  validateEach(errors, initContainers, (container, i) => {
    const name = textAt(container, 'name');
    return name !== '' && names.has(name) ? [duplicate(`${path}.initContainers[${i}].name`, name)] : [];
  });
  const known = new Map<string, JsonObject>();
  for (const volume of volumes) known.set(textAt(volume, 'name'), volume);
  for (const [list, items] of [
    ['containers', containers],
    ['initContainers', initContainers],
    ['ephemeralContainers', objectsAt(spec, 'ephemeralContainers')],
  ] as const) {
    const validateRules = (container: JsonObject, i: number) =>
      validateContainer(errors, container, { path: `${path}.${list}[${i}]`, list, volumes: known });
    validateNested(errors, items, validateRules);
  }
  validateEphemeral(errors, spec, path);
  validateHostPorts(errors, spec, { path, isPod: path === 'spec' });
  validatePodSettings(errors, spec, path);
}

interface ContainerPlace {
  readonly path: string;
  readonly list: string;
  readonly volumes: ReadonlyMap<string, JsonObject>;
}

function validateContainer(errors: FieldError[], container: JsonObject, place: ContainerPlace): void {
  const { path, list } = place;
  const image = textAt(container, 'image');
  if (image === '') errors.push(required(`${path}.image`));
  else if (image !== image.trim()) {
    errors.push(invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'));
  }
  const message = { name: 'terminationMessagePolicy', path: `${path}.terminationMessagePolicy` };
  errors.push(...oneOf(container, message, MESSAGE_POLICIES));
  if (container['ports'] !== undefined) validatePorts(errors, container, path);
  validateEach(errors, objectsAt(container, 'env'), (env, i) => variableErrors(env, `${path}.env[${i}]`));
  validateEach(errors, objectsAt(container, 'envFrom'), (source, i) =>
    variablesErrors(source, { path: `${path}.envFrom`, i }),
  );
  if (container['volumeMounts'] !== undefined || container['volumeDevices'] !== undefined) {
    validateMounts(errors, container, place);
  }
  errors.push(...oneOf(container, { name: 'imagePullPolicy', path: `${path}.imagePullPolicy` }, PULL_POLICIES));
  validateResources(errors, valueAt(container, 'resources'), `${path}.resources`);
  const security = valueAt(container, 'securityContext');
  if (isObject(security)) errors.push(...securityErrors(security, `${path}.securityContext`));
  // An ephemeral one may have neither, which is reported elsewhere.
  if (list === 'ephemeralContainers') return;
  if (list === 'initContainers' && textAt(container, 'restartPolicy') !== 'Always') {
    for (const field of NOT_OF_INIT.filter((one) => isObject(valueAt(container, one)))) {
      errors.push(forbidden(`${path}.${field}`, 'may not be set for init containers without restartPolicy=Always'));
    }
    return;
  }
  errors.push(...lifecycleErrors(valueAt(container, 'lifecycle'), `${path}.lifecycle`));
  for (const probe of PROBES) {
    const value = valueAt(container, probe);
    if (isObject(value)) errors.push(...probeErrors(value, probe, `${path}.${probe}`));
  }
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
      errors.push(...faults(`${at}.name`, name, checkPortName(name)));
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
