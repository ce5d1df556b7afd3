/**
 * Validation of resource.k8s.io. A selector's expression is compiled here; only a scheduler that hands out devices
 * evaluates it.
 */
import { CelCompileError, fullTypeName } from '../../../cel/cel.ts';
import { equalSteps } from '../../../meta/deep-equal.ts';
import { checkLabelName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import type { Pace, Steps } from '../../../meta/steps.ts';
import { compileDeviceSelector } from '../device-expressions.ts';
import { isObject, type JsonObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { EXPRESSION } from './admission-rules.ts';
import { judgeConditions } from './conditions.ts';
import { expressionFault } from './expression-errors.ts';
import {
  addAll,
  duplicate,
  faults,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  type Judging,
  judgeEach,
  judgeImmutable,
  judgeNested,
  newJudging,
  required,
  type Stops,
  tooLong,
  tooMany,
  unsupported,
} from './field-errors.ts';

const MAX_DRIVER = 63;
const MAX_POOL = 253;
const MAX_SELECTORS = 32;
/** Of the expression of a selector: bytes, and the units that it may cost at worst. */
const MAX_EXPRESSION = 10 * 1024;
const MAX_COST = 1_000_000;
const MODES = ['All', 'ExactCount'];

function validateDriver(driver: string, at: string): FieldError[] {
  if (driver === '') return [required(at)];
  return [
    ...(driver.length > MAX_DRIVER ? [tooLong(at, MAX_DRIVER)] : []),
    ...faults(at, driver, checkSubdomain(driver.toLowerCase())),
  ];
}

function* judgeSelectors(judging: Judging, holder: JsonObject, at: string): Steps<void> {
  const selectors = objectsAt(holder, 'selectors');
  const judge = (selector: JsonObject, i: number): FieldError[] => {
    const cel = valueAt(selector, 'cel');
    const field = `${at}.selectors[${i}].cel`;
    return isObject(cel) ? validateExpression(textAt(cel, 'expression'), `${field}.expression`) : [required(field)];
  };
  yield* judgeEach(judging, selectors, judge, EXPRESSION);
  if (selectors.length > MAX_SELECTORS) {
    judging.errors.push(tooMany(`${at}.selectors`, selectors.length, MAX_SELECTORS));
  }
}

function validateExpression(expression: string, field: string): FieldError[] {
  if (new TextEncoder().encode(expression).length > MAX_EXPRESSION) return [tooLong(field, MAX_EXPRESSION)];
  try {
    const { resultType, estimatedCost } = compileDeviceSelector(expression);
    if (resultType.kind !== 'bool' && resultType.kind !== 'any') {
      const detail = `must evaluate to bool or the unknown type, not ${fullTypeName(resultType)}`;
      return [invalid(field, expression, detail)];
    }
    return estimatedCost > MAX_COST ? [forbidden(field, 'too complex, exceeds cost limit')] : [];
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    return [expressionFault(field, expression, error)];
  }
}

/** What one device request, or one of its alternatives, asks for. */
function* judgeWanted(judging: Judging, wanted: JsonObject, at: string): Steps<void> {
  const { errors } = judging;
  const deviceClass = textAt(wanted, 'deviceClassName');
  const mode = textAt(wanted, 'allocationMode');
  const count = numberAt(wanted, 'count');
  if (deviceClass === '') errors.push(required(`${at}.deviceClassName`));
  else addAll(errors, faults(`${at}.deviceClassName`, deviceClass, checkSubdomain(deviceClass)));
  yield* judgeSelectors(judging, wanted, at);
  if (!MODES.includes(mode)) errors.push(unsupported(`${at}.allocationMode`, mode, MODES));
  else if (mode === 'All' && count !== 0) {
    errors.push(invalid(`${at}.count`, count, "must not be specified when allocationMode is 'All'"));
  } else if (mode === 'ExactCount' && count <= 0) {
    errors.push(invalid(`${at}.count`, count, 'must be greater than zero'));
  }
}

/** What a request counts as. */
const REQUEST = 4;

const ONE_WAY = 'exactly one of `exactly` or `firstAvailable` is required';

function* judgeRequests(judging: Judging, devices: JsonObject, at: string): Steps<void> {
  const seen = new Set<string>();
  const judge = (request: JsonObject, i: number) =>
    judgeRequest(judging, request, { here: `${at}.requests[${i}]`, seen });
  yield* judgeNested(judging, objectsAt(devices, 'requests'), judge, REQUEST);
}

function* judgeRequest(
  judging: Judging,
  request: JsonObject,
  { here, seen }: { readonly here: string; readonly seen: Set<string> },
): Steps<void> {
  const { errors } = judging;
  const name = textAt(request, 'name');
  const exactly = valueAt(request, 'exactly');
  const choices = objectsAt(request, 'firstAvailable');
  addAll(errors, faults(`${here}.name`, name, checkLabelName(name)));
  if (isObject(exactly) && choices.length > 0) {
    errors.push(invalid(here, null, `${ONE_WAY}, but multiple fields are set`));
  } else if (isObject(exactly)) yield* judgeWanted(judging, exactly, `${here}.exactly`);
  else if (choices.length === 0) errors.push(required(here, ONE_WAY));
  const judge = (choice: JsonObject, j: number) => {
    const there = `${here}.firstAvailable[${j}]`;
    const own = textAt(choice, 'name');
    addAll(errors, faults(`${there}.name`, own, checkLabelName(own)));
    return judgeWanted(judging, choice, there);
  };
  if (!isObject(exactly)) yield* judgeNested(judging, choices, judge, REQUEST);
  if (seen.has(name)) errors.push(duplicate(here, name));
  seen.add(name);
}

function* requestNames(pace: Pace, devices: JsonObject): Steps<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const request of objectsAt(devices, 'requests')) {
    if (pace.due()) yield;
    const name = textAt(request, 'name');
    names.add(name);
    for (const choice of objectsAt(request, 'firstAvailable')) {
      if (pace.due()) yield;
      names.add(`${name}/${textAt(choice, 'name')}`);
    }
  }
  return names;
}

const A_REQUEST =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

function* judgeClaimSpec(judging: Judging, spec: JsonObject, at: string): Steps<void> {
  const devices = objectAt(spec, 'devices');
  const known = yield* requestNames(judging.pace, devices);
  yield* judgeRequests(judging, devices, `${at}.devices`);
  for (const list of ['constraints', 'config'] as const) {
    const judge = (entry: JsonObject, i: number) =>
      judgeEntry(judging, entry, { here: `${at}.devices.${list}[${i}]`, known, isConfig: list === 'config' });
    yield* judgeNested(judging, objectsAt(devices, list), judge, REQUEST);
  }
}

function* judgeEntry(
  judging: Judging,
  entry: JsonObject,
  { here, known, isConfig }: { readonly here: string; readonly known: ReadonlySet<string>; readonly isConfig: boolean },
): Steps<void> {
  yield* judgeEach(judging, textsAt(entry, 'requests'), (name, j) =>
    known.has(name) ? [] : [invalid(`${here}.requests[${j}]`, name, A_REQUEST)],
  );
  if (isConfig) addAll(judging.errors, validateConfig(entry, here));
}

function validateConfig(config: JsonObject, at: string): FieldError[] {
  const opaque = valueAt(config, 'opaque');
  return isObject(opaque)
    ? validateDriver(textAt(opaque, 'driver'), `${at}.opaque.driver`)
    : [required(`${at}.opaque`)];
}

function* validateClaim(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  // Nobody can correct a spec: of a stored one only the change is reported.
  if (old === undefined) yield* judgeClaimSpec(judging, objectAt(object, 'spec'), 'spec');
  else {
    yield* judgeImmutable(judging, { object, old, path: 'spec' });
    yield* judgeClaimStatus(judging, object, old);
  }
  return judging.errors;
}

function* judgeClaimStatus(judging: Judging, object: JsonObject, old: JsonObject): Steps<void> {
  const { errors, pace } = judging;
  const status = objectAt(object, 'status');
  const allocation = valueAt(status, 'allocation');
  const before = valueAt(old, 'status', 'allocation');
  const judgeDevice = (device: JsonObject, i: number): Stops =>
    judgeConditions(judging, device, `status.devices[${i}]`);
  yield* judgeNested(judging, objectsAt(status, 'devices'), judgeDevice);
  const users = objectsAt(status, 'reservedFor');
  yield* judgeEach(judging, users, (user, i) =>
    ['resource', 'name', 'uid'].flatMap((field) =>
      textAt(user, field) === '' ? [required(`status.reservedFor[${i}].${field}`)] : [],
    ),
  );
  if (users.length > 0 && !isObject(allocation)) {
    errors.push(forbidden('status.reservedFor', 'may not be specified when `allocated` is not set'));
  }
  if (isObject(allocation) && isObject(before) && !(yield* equalSteps(allocation, before, pace))) {
    errors.push(invalid('status.allocation', allocation, 'field is immutable'));
  }
  if (!isObject(allocation) || isObject(before)) return;
  const known = yield* requestNames(pace, objectAt(object, 'spec', 'devices'));
  yield* judgeEach(judging, objectsAt(allocation, 'devices', 'results'), (result, i) => {
    const at = `status.allocation.devices.results[${i}]`;
    const request = textAt(result, 'request');
    return [
      ...(known.has(request) ? [] : [invalid(`${at}.request`, request, A_REQUEST)]),
      ...validateDriver(textAt(result, 'driver'), `${at}.driver`),
    ];
  });
}

function* validateTemplate(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  yield* judgeClaimSpec(judging, objectAt(object, 'spec', 'spec'), 'spec.spec');
  if (old !== undefined) yield* judgeImmutable(judging, { object, old, path: 'spec' });
  return judging.errors;
}

function* validateClass(object: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const spec = objectAt(object, 'spec');
  yield* judgeSelectors(judging, spec, 'spec');
  yield* judgeEach(judging, objectsAt(spec, 'config'), (config, i) => validateConfig(config, `spec.config[${i}]`));
  return judging.errors;
}

const ONE_PLACE = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';

function* validateSlice(object: JsonObject, old?: JsonObject): Steps<readonly FieldError[]> {
  const judging = newJudging();
  const { errors } = judging;
  const spec = objectAt(object, 'spec');
  const pool = textAt(spec, 'pool', 'name');
  const count = numberAt(spec, 'pool', 'resourceSliceCount');
  const generation = numberAt(spec, 'pool', 'generation');
  addAll(errors, validateDriver(textAt(spec, 'driver'), 'spec.driver'));
  if (pool === '') errors.push(required('spec.pool.name'));
  else {
    if (pool.length > MAX_POOL) errors.push(tooLong('spec.pool.name', MAX_POOL));
    yield* judgeEach(judging, pool.split('/'), (part) => faults('spec.pool.name', part, checkSubdomain(part)));
  }
  if (count <= 0) errors.push(invalid('spec.pool.resourceSliceCount', count, 'must be greater than zero'));
  if (generation < 0) {
    errors.push(invalid('spec.pool.generation', generation, 'must be greater than or equal to zero'));
  }
  addAll(errors, validatePlace(spec));
  const seen = new Set<string>();
  yield* judgeEach(judging, objectsAt(spec, 'devices'), (device, i) => {
    const name = textAt(device, 'name');
    const found = faults(`spec.devices[${i}].name`, name, checkLabelName(name));
    if (seen.has(name)) found.push(duplicate(`spec.devices[${i}]`, name));
    seen.add(name);
    return found;
  });
  if (old === undefined) return errors;
  const kept = ['spec.driver', 'spec.pool.name', 'spec.nodeName'];
  for (const path of kept) errors.push(...immutable({ object, old, path }));
  return errors;
}

/** Where the devices of a slice are: told in one way. */
function validatePlace(spec: JsonObject): FieldError[] {
  const ways: string[] = [];
  const errors: FieldError[] = [];
  const node = valueAt(spec, 'nodeName');
  if (node === '') errors.push(invalid('spec.nodeName', node, 'must not be empty'));
  else if (node != null) ways.push('`nodeName`');
  if (isObject(valueAt(spec, 'nodeSelector'))) ways.push('`nodeSelector`');
  for (const field of ['allNodes', 'perDeviceNodeSelection']) {
    const set = valueAt(spec, field);
    if (set === true) ways.push(`\`${field}\``);
    else if (set === false) errors.push(invalid(`spec.${field}`, set, 'must be either unset or set to true'));
  }
  if (ways.length === 0) errors.push(required('spec', ONE_PLACE));
  if (ways.length > 1) errors.push(invalid('spec', `{${ways.join(', ')}}`, ONE_PLACE));
  return errors;
}

export const DEVICE_VALIDATORS: GroupValidators = {
  deviceclasses: validateClass,
  resourceclaims: validateClaim,
  resourceclaimtemplates: validateTemplate,
  resourceslices: validateSlice,
};
