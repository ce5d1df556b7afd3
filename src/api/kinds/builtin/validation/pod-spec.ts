/** Validation of a PodSpec, wherever one stands (core/validation, ValidatePodSpec): the rules users meet. */

import type { FieldError } from '../../../meta/status.ts';
import { Pace, type Steps } from '../../../meta/steps.ts';
import { compareQuantity } from '../../../quantity/quantity.ts';
import { isObject, type JsonObject, objectAt, objectsAt, textAt, valueAt } from '../read-value.ts';
import { judgeAffinity, judgeTopologySpread } from './affinity.ts';
import {
  absent,
  duplicate,
  invalid,
  isPort,
  type Judging,
  judgeEach,
  nonNegative,
  oneOf,
  PORT_RANGE,
  required,
  type Stops,
  uniqueNames,
  unsupported,
} from './field-errors.ts';
import { checkContainerResourceName, readQuantity } from './resource-names.ts';
import { validateSysctls } from './sysctls.ts';

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

export function* validatePodSpec(
  spec: unknown,
  { path, restartPolicies = RESTART_POLICIES }: PodSpecRules,
): Steps<FieldError[]> {
  const containers = objectsAt(spec, 'containers');
  const initContainers = objectsAt(spec, 'initContainers');
  const volumes = objectsAt(spec, 'volumes');
  const errors: FieldError[] = [];
  const judging: Judging = { errors, pace: new Pace() };
  yield* uniqueNames(judging, volumes, `${path}.volumes`);
  if (containers.length === 0) errors.push(required(`${path}.containers`));
  yield* uniqueNames(judging, containers, `${path}.containers`);
  yield* uniqueNames(judging, initContainers, `${path}.initContainers`);
  const names = new Set(containers.map((container) => textAt(container, 'name')));
  yield* judgeEach(judging, initContainers, (container, i) => {
    const name = textAt(container, 'name');
    return name !== '' && names.has(name) ? [duplicate(`${path}.initContainers[${i}].name`, name)] : [];
  });
  const volumeNames = new Set(volumes.map((volume) => textAt(volume, 'name')));
  for (const [list, items] of [
    ['containers', containers],
    ['initContainers', initContainers],
  ] as const) {
    for (const [i, container] of items.entries()) {
      yield* validateContainer(judging, container, { path: `${path}.${list}[${i}]`, volumeNames });
    }
  }
  const policy = valueAt(spec, 'restartPolicy');
  if (policy !== undefined && !restartPolicies.includes(String(policy))) {
    errors.push(unsupported(`${path}.restartPolicy`, policy, restartPolicies));
  }
  errors.push(...oneOf(spec, { name: 'dnsPolicy', path: `${path}.dnsPolicy` }, DNS_POLICIES));
  errors.push(...validateDeadline(spec, path), ...validateSysctls(spec, path));
  yield* judgeEach(judging, objectsAt(spec, 'tolerations'), (toleration, i) =>
    validateToleration(toleration, `${path}.tolerations[${i}]`),
  );
  yield* judgeAffinity(judging, valueAt(spec, 'affinity'), `${path}.affinity`);
  yield* judgeTopologySpread(judging, spec, `${path}.topologySpreadConstraints`);
  return errors;
}

function validateDeadline(spec: unknown, path: string): FieldError[] {
  const deadline = valueAt(spec, 'activeDeadlineSeconds');
  if (typeof deadline !== 'number' || (deadline >= 1 && deadline <= 2_147_483_647)) return [];
  return [invalid(`${path}.activeDeadlineSeconds`, deadline, 'must be between 1 and 2147483647, inclusive')];
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

function* validateContainer(
  judging: Judging,
  container: JsonObject,
  { path, volumeNames }: ContainerPlace,
): Steps<void> {
  const { errors, pace } = judging;
  const image = textAt(container, 'image');
  if (image === '') errors.push(required(`${path}.image`));
  else if (image !== image.trim()) {
    errors.push(invalid(`${path}.image`, image, 'must not have leading or trailing whitespace'));
  }
  errors.push(...oneOf(container, { name: 'imagePullPolicy', path: `${path}.imagePullPolicy` }, PULL_POLICIES));
  if (container['ports'] !== undefined) yield* validatePorts(judging, container, path);
  yield* judgeEach(judging, objectsAt(container, 'env'), (env, i) => envErrors(env, `${path}.env[${i}]`));
  if (container['volumeMounts'] !== undefined || container['volumeDevices'] !== undefined) {
    yield* validateMounts(judging, container, { path, volumeNames });
  }
  yield* validateResources(judging, valueAt(container, 'resources'), `${path}.resources`);
  for (const probe of PROBES) {
    const value = valueAt(container, probe);
    if (isObject(value)) errors.push(...validateProbe(value, `${path}.${probe}`));
  }
  if (pace.due()) yield;
}

function validatePorts(judging: Judging, container: JsonObject, path: string): Stops {
  const names = new Set<string>();
  return judgeEach(judging, objectsAt(container, 'ports'), (port, i) => {
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

function envErrors(env: JsonObject, path: string): readonly FieldError[] {
  if (textAt(env, 'name') === '') return [required(`${path}.name`)];
  if (textAt(env, 'value') !== '' && isObject(valueAt(env, 'valueFrom'))) {
    return [invalid(`${path}.valueFrom`, '', 'may not be specified when `value` is not empty')];
  }
  return [];
}

function* validateMounts(judging: Judging, container: JsonObject, { path, volumeNames }: ContainerPlace): Steps<void> {
  const paths = new Set<string>();
  const nameErrors = (at: string, name: string): FieldError[] => {
    if (name === '') return [required(`${at}.name`)];
    return volumeNames.has(name) ? [] : [absent(`${at}.name`, name)];
  };
  yield* judgeEach(judging, objectsAt(container, 'volumeMounts'), (mount, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    const mountPath = textAt(mount, 'mountPath');
    const found = nameErrors(at, textAt(mount, 'name'));
    if (mountPath === '') found.push(required(`${at}.mountPath`));
    else if (paths.has(mountPath)) found.push(invalid(`${at}.mountPath`, mountPath, 'must be unique'));
    paths.add(mountPath);
    for (const field of ['subPath', 'subPathExpr']) {
      const below = textAt(mount, field);
      if (below.startsWith('/')) found.push(invalid(`${at}.${field}`, below, 'must be a relative path'));
      if (below.split('/').includes('..')) found.push(invalid(`${at}.${field}`, below, "must not contain '..'"));
    }
    return found;
  });
  yield* judgeEach(judging, objectsAt(container, 'volumeDevices'), (device, i) => {
    const at = `${path}.volumeDevices[${i}]`;
    const found = nameErrors(at, textAt(device, 'name'));
    if (textAt(device, 'devicePath') === '') found.push(required(`${at}.devicePath`));
    return found;
  });
}

/** Amounts are not negative, and no request exceeds its limit. */
function* validateResources(judging: Judging, resources: unknown, path: string): Steps<void> {
  if (!isObject(resources)) return;
  const limits = objectAt(resources, 'limits');
  const requests = objectAt(resources, 'requests');
  for (const [list, amounts] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    yield* judgeEach(judging, Object.keys(amounts), (name) => {
      const value = amounts[name];
      const errors = checkContainerResourceName(name, `${path}.${list}[${name}]`);
      const amount = readQuantity(value);
      if (amount === undefined || amount.nano >= 0n) return errors;
      return [...errors, invalid(`${path}.${list}[${name}]`, value, 'must be greater than or equal to 0')];
    });
  }
  yield* judgeEach(judging, Object.keys(requests), (name) => {
    const value = requests[name];
    const request = readQuantity(value);
    const limit = readQuantity(Object.hasOwn(limits, name) ? limits[name] : undefined);
    if (request === undefined || limit === undefined || compareQuantity(request, limit) <= 0) return [];
    return [
      invalid(`${path}.requests`, value, `must be less than or equal to ${name} limit of ${String(limits[name])}`),
    ];
  });
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
