/**
 * Validation of resource.k8s.io. A selector's expression is compiled here; only a scheduler that hands out devices
 * evaluates it.
 */
import { CelCompileError, fullTypeName } from '../../../cel/cel.ts';
import { deepEqual } from '../../../meta/deep-equal.ts';
import { checkLabelName, checkSubdomain } from '../../../meta/name-rules.ts';
import type { FieldError } from '../../../meta/status.ts';
import { compileDeviceSelector } from '../device-expressions.ts';
import { isObject, type JsonObject, numberAt, objectAt, objectsAt, textAt, textsAt, valueAt } from '../read-value.ts';
import { validateConditions } from './conditions.ts';
import {
  addAll,
  duplicate,
  expressionFault,
  forbidden,
  type GroupValidators,
  immutable,
  invalid,
  required,
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

const named = (details: readonly string[], field: string, value: string): FieldError[] =>
  details.map((detail) => invalid(field, value, detail));

function validateDriver(driver: string, at: string): FieldError[] {
  if (driver === '') return [required(at)];
  return [
    ...(driver.length > MAX_DRIVER ? [tooLong(at, MAX_DRIVER)] : []),
    ...named(checkSubdomain(driver.toLowerCase()), at, driver),
  ];
}

function validateSelectors(holder: JsonObject, at: string): FieldError[] {
  const selectors = objectsAt(holder, 'selectors');
  const errors = selectors.flatMap((selector, i) => {
    const cel = valueAt(selector, 'cel');
    const field = `${at}.selectors[${i}].cel`;
    return isObject(cel) ? validateExpression(textAt(cel, 'expression'), `${field}.expression`) : [required(field)];
  });
  return selectors.length > MAX_SELECTORS
    ? [...errors, tooMany(`${at}.selectors`, selectors.length, MAX_SELECTORS)]
    : errors;
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
function validateWanted(wanted: JsonObject, at: string): FieldError[] {
  const deviceClass = textAt(wanted, 'deviceClassName');
  const mode = textAt(wanted, 'allocationMode');
  const count = numberAt(wanted, 'count');
  const errors =
    deviceClass === ''
      ? [required(`${at}.deviceClassName`)]
      : named(checkSubdomain(deviceClass), `${at}.deviceClassName`, deviceClass);
  addAll(errors, validateSelectors(wanted, at));
  if (!MODES.includes(mode)) errors.push(unsupported(`${at}.allocationMode`, mode, MODES));
  else if (mode === 'All' && count !== 0) {
    errors.push(invalid(`${at}.count`, count, "must not be specified when allocationMode is 'All'"));
  } else if (mode === 'ExactCount' && count <= 0) {
    errors.push(invalid(`${at}.count`, count, 'must be greater than zero'));
  }
  return errors;
}

const ONE_WAY = 'exactly one of `exactly` or `firstAvailable` is required';

function validateRequests(devices: JsonObject, at: string): FieldError[] {
  const seen = new Set<string>();
  return objectsAt(devices, 'requests').flatMap((request, i) => {
    const here = `${at}.requests[${i}]`;
    const name = textAt(request, 'name');
    const exactly = valueAt(request, 'exactly');
    const choices = objectsAt(request, 'firstAvailable');
    const errors = named(checkLabelName(name), `${here}.name`, name);
    if (isObject(exactly) && choices.length > 0) {
      errors.push(invalid(here, null, `${ONE_WAY}, but multiple fields are set`));
    } else if (isObject(exactly)) addAll(errors, validateWanted(exactly, `${here}.exactly`));
    else if (choices.length === 0) errors.push(required(here, ONE_WAY));
    for (const [j, choice] of isObject(exactly) ? [] : choices.entries()) {
      const there = `${here}.firstAvailable[${j}]`;
      const own = textAt(choice, 'name');
      errors.push(...named(checkLabelName(own), `${there}.name`, own), ...validateWanted(choice, there));
    }
    if (seen.has(name)) errors.push(duplicate(here, name));
    seen.add(name);
    return errors;
  });
}

function requestNames(devices: JsonObject): ReadonlySet<string> {
  return new Set(
    objectsAt(devices, 'requests').flatMap((request) => {
      const name = textAt(request, 'name');
      return [name, ...objectsAt(request, 'firstAvailable').map((choice) => `${name}/${textAt(choice, 'name')}`)];
    }),
  );
}

const A_REQUEST =
  "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

function validateClaimSpec(spec: JsonObject, at: string): FieldError[] {
  const devices = objectAt(spec, 'devices');
  const known = requestNames(devices);
  const errors = validateRequests(devices, `${at}.devices`);
  for (const list of ['constraints', 'config'] as const) {
    for (const [i, entry] of objectsAt(devices, list).entries()) {
      const here = `${at}.devices.${list}[${i}]`;
      for (const [j, name] of textsAt(entry, 'requests').entries()) {
        if (!known.has(name)) errors.push(invalid(`${here}.requests[${j}]`, name, A_REQUEST));
      }
      if (list === 'config') addAll(errors, validateConfig(entry, here));
    }
  }
  return errors;
}

function validateConfig(config: JsonObject, at: string): FieldError[] {
  const opaque = valueAt(config, 'opaque');
  return isObject(opaque)
    ? validateDriver(textAt(opaque, 'driver'), `${at}.opaque.driver`)
    : [required(`${at}.opaque`)];
}

function validateClaim(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  // Nobody can mend a spec: of a stored one only the change is told.
  if (old === undefined) return validateClaimSpec(objectAt(object, 'spec'), 'spec');
  return [...immutable({ object, old, path: 'spec' }), ...validateClaimStatus(object, old)];
}

function validateClaimStatus(object: JsonObject, old: JsonObject): FieldError[] {
  const status = objectAt(object, 'status');
  const allocation = valueAt(status, 'allocation');
  const before = valueAt(old, 'status', 'allocation');
  const errors = objectsAt(status, 'devices').flatMap((device, i) =>
    validateConditions(device, `status.devices[${i}]`),
  );
  const users = objectsAt(status, 'reservedFor');
  for (const [i, user] of users.entries()) {
    for (const field of ['resource', 'name', 'uid']) {
      if (textAt(user, field) === '') errors.push(required(`status.reservedFor[${i}].${field}`));
    }
  }
  if (users.length > 0 && !isObject(allocation)) {
    errors.push(forbidden('status.reservedFor', 'may not be specified when `allocated` is not set'));
  }
  if (isObject(allocation) && isObject(before) && !deepEqual(allocation, before)) {
    errors.push(invalid('status.allocation', allocation, 'field is immutable'));
  }
  if (!isObject(allocation) || isObject(before)) return errors;
  const known = requestNames(objectAt(object, 'spec', 'devices'));
  for (const [i, result] of objectsAt(allocation, 'devices', 'results').entries()) {
    const at = `status.allocation.devices.results[${i}]`;
    const request = textAt(result, 'request');
    if (!known.has(request)) errors.push(invalid(`${at}.request`, request, A_REQUEST));
    addAll(errors, validateDriver(textAt(result, 'driver'), `${at}.driver`));
  }
  return errors;
}

function validateTemplate(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const errors = validateClaimSpec(objectAt(object, 'spec', 'spec'), 'spec.spec');
  return old === undefined ? errors : [...errors, ...immutable({ object, old, path: 'spec' })];
}

function validateClass(object: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const configs = objectsAt(spec, 'config').flatMap((config, i) => validateConfig(config, `spec.config[${i}]`));
  return [...validateSelectors(spec, 'spec'), ...configs];
}

const ONE_PLACE = 'exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required';

function validateSlice(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const pool = textAt(spec, 'pool', 'name');
  const count = numberAt(spec, 'pool', 'resourceSliceCount');
  const generation = numberAt(spec, 'pool', 'generation');
  const errors = validateDriver(textAt(spec, 'driver'), 'spec.driver');
  if (pool === '') errors.push(required('spec.pool.name'));
  else {
    if (pool.length > MAX_POOL) errors.push(tooLong('spec.pool.name', MAX_POOL));
    for (const part of pool.split('/')) addAll(errors, named(checkSubdomain(part), 'spec.pool.name', part));
  }
  if (count <= 0) errors.push(invalid('spec.pool.resourceSliceCount', count, 'must be greater than zero'));
  if (generation < 0) {
    errors.push(invalid('spec.pool.generation', generation, 'must be greater than or equal to zero'));
  }
  addAll(errors, validatePlace(spec));
  const seen = new Set<string>();
  for (const [i, device] of objectsAt(spec, 'devices').entries()) {
    const name = textAt(device, 'name');
    addAll(errors, named(checkLabelName(name), `spec.devices[${i}].name`, name));
    if (seen.has(name)) errors.push(duplicate(`spec.devices[${i}]`, name));
    seen.add(name);
  }
  if (old === undefined) return errors;
  const kept = ['spec.driver', 'spec.pool.name', 'spec.nodeName'];
  return [...errors, ...kept.flatMap((path) => immutable({ object, old, path }))];
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
