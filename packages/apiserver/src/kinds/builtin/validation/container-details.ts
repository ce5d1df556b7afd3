/** The smaller parts of a container: variables, hooks, probes, security context (core/validation, validateContainers). */

import { checkLabelName, checkName, checkPortName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  listAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  faults,
  forbidden,
  invalid,
  isPort,
  nonNegative,
  PORT_RANGE,
  required,
  requiredText,
  unsupported,
} from '@coracle/apimachinery/validation/field-errors';
import { checkDataKey } from './data-keys.ts';
import { idErrors } from './pod-settings.ts';
import { backstepErrors, fieldErrors, resourceErrors, VARIABLE_FIELDS } from './volume-paths.ts';

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'];
const SCHEMES = ['HTTP', 'HTTPS'];
const COUNTS = ['initialDelaySeconds', 'timeoutSeconds', 'periodSeconds', 'successThreshold', 'failureThreshold'];
const SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'];
const NO_SOURCE = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
const VARIABLE = /^[ -<>-~]+$/;
const VARIABLE_RULE =
  "a valid environment variable name must consist only of printable ASCII characters other than '='";

/** What is wrong with one variable of a container. */
export function variableErrors(env: JsonObject, path: string): readonly FieldError[] {
  const name = textAt(env, 'name');
  const errors: FieldError[] = [];
  if (name === '') errors.push(required(`${path}.name`));
  else if (!VARIABLE.test(name)) errors.push(invalid(`${path}.name`, name, VARIABLE_RULE));
  const from = valueAt(env, 'valueFrom');
  if (!isObject(from)) return errors;
  const at = `${path}.valueFrom`;
  const sources = SOURCES.filter((source) => isObject(valueAt(from, source)));
  for (const source of sources) errors.push(...sourceErrors(source, valueAt(from, source) as JsonObject, at));
  if (sources.length === 0) errors.push(invalid(at, '', NO_SOURCE));
  else if (textAt(env, 'value') !== '') {
    errors.push(invalid(at, '', 'may not be specified when `value` is not empty'));
  } else if (sources.length > 1) errors.push(invalid(at, '', 'may not have more than one field specified at a time'));
  return errors;
}

function sourceErrors(kind: string, source: JsonObject, at: string): FieldError[] {
  const path = `${at}.${kind}`;
  if (kind === 'fieldRef') return fieldErrors(source, VARIABLE_FIELDS, path);
  if (kind === 'resourceFieldRef') return resourceErrors(source, path, false);
  if (kind === 'fileKeyRef') return fileKeyErrors(source, path);
  const [name, key] = [textAt(source, 'name'), textAt(source, 'key')];
  return [...faults(`${path}.name`, name, checkSubdomain(name)), ...requiredText(`${path}.key`, key, checkDataKey)];
}

/** A key of a file of variables that an init container wrote into a volume. */
function fileKeyErrors(source: JsonObject, at: string): FieldError[] {
  const [volume, file] = [textAt(source, 'volumeName'), textAt(source, 'path')];
  return [
    ...(textAt(source, 'key') === '' ? [required(`${at}.key`)] : []),
    ...requiredText(`${at}.volumeName`, volume, checkLabelName),
    ...(file === '' ? [required(`${at}.path`)] : backstepErrors(file, `${at}.path`)),
  ];
}

/** What is wrong with one source of many variables. Upstream tells of its number at the list. */
export function variablesErrors(
  from: JsonObject,
  { path, i }: { readonly path: string; readonly i: number },
): FieldError[] {
  const at = `${path}[${i}]`;
  const prefix = textAt(from, 'prefix');
  const errors = prefix !== '' && !VARIABLE.test(prefix) ? [invalid(`${at}.prefix`, prefix, VARIABLE_RULE)] : [];
  const sources = ['configMapRef', 'secretRef'].filter((source) => isObject(valueAt(from, source)));
  for (const source of sources) {
    const name = textAt(from, source, 'name');
    const check = (text: string) => checkName(text, 'subdomain', { prefix: true });
    errors.push(...requiredText(`${at}.${source}.name`, name, check));
  }
  if (sources.length === 0) errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
  else if (sources.length > 1) errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
  return errors;
}

/** What is wrong with the hooks of a container. */
export function lifecycleErrors(lifecycle: unknown, path: string): FieldError[] {
  return ['postStart', 'preStop'].flatMap((hook) => {
    const value = valueAt(lifecycle, hook);
    return isObject(value) ? handlerErrors(value, `${path}.${hook}`) : [];
  });
}

function handlerErrors(handler: JsonObject, path: string): FieldError[] {
  const given = HANDLERS.filter((one) => isObject(valueAt(handler, one)));
  const errors: FieldError[] = [];
  for (const [i, one] of given.entries()) {
    const at = `${path}.${one}`;
    if (i > 0) errors.push(forbidden(at, 'may not specify more than 1 handler type'));
    else errors.push(...actionErrors(one, valueAt(handler, one), at));
  }
  if (given.length === 0) errors.push(required(path, 'must specify a handler type'));
  return errors;
}

function actionErrors(kind: string, action: unknown, at: string): FieldError[] {
  if (kind === 'exec') return listAt(action, 'command').length > 0 ? [] : [required(`${at}.command`)];
  if (kind === 'sleep') return [];
  const errors: FieldError[] = [];
  if (kind === 'httpGet' && textAt(action, 'path') === '') errors.push(required(`${at}.path`));
  const port = valueAt(action, 'port');
  if (typeof port === 'string' && kind !== 'grpc') {
    errors.push(...faults(`${at}.port`, port, checkPortName(port)));
  } else if (!isPort(port)) errors.push(invalid(`${at}.port`, port ?? 0, PORT_RANGE));
  if (kind !== 'httpGet') return errors;
  const scheme = valueAt(action, 'scheme');
  if (typeof scheme === 'string' && !SCHEMES.includes(scheme)) {
    errors.push(unsupported(`${at}.scheme`, scheme, SCHEMES));
  }
  for (const header of objectsAt(action, 'httpHeaders')) {
    const name = textAt(header, 'name');
    if (!HEADER.test(name)) errors.push(invalid(`${at}.httpHeaders`, name, HEADER_RULE));
  }
  return errors;
}

const HEADER = /^[-A-Za-z0-9]+$/;
const HEADER_RULE =
  "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/** What is wrong with a probe; only readiness may need more than one success. */
export function probeErrors(probe: JsonObject, kind: string, path: string): FieldError[] {
  const errors = handlerErrors(probe, path);
  for (const field of COUNTS) {
    errors.push(...nonNegative(probe, field, `${path}.${field}`));
  }
  const grace = valueAt(probe, 'terminationGracePeriodSeconds');
  if (typeof grace === 'number') {
    const at = `${path}.terminationGracePeriodSeconds`;
    if (kind === 'readinessProbe') errors.push(invalid(at, grace, 'must not be set for readinessProbes'));
    else if (grace <= 0) errors.push(invalid(at, grace, 'must be greater than 0'));
  }
  const successes = valueAt(probe, 'successThreshold');
  if (kind !== 'readinessProbe' && typeof successes === 'number' && successes !== 1) {
    errors.push(invalid(`${path}.successThreshold`, successes, 'must be 1'));
  }
  return errors;
}

const NO_ESCALATION = 'cannot set `allowPrivilegeEscalation` to false and';

/** What is wrong with the security context of a container. */
export function securityErrors(context: JsonObject, path: string): FieldError[] {
  const errors = idErrors(context, ['runAsUser', 'runAsGroup'], path);
  if (valueAt(context, 'allowPrivilegeEscalation') !== false) return errors;
  if (isTrueAt(context, 'privileged')) {
    errors.push(invalid(path, context, `${NO_ESCALATION} \`privileged\` to true`));
  }
  for (const capability of textsAt(context, 'capabilities', 'add')) {
    if (capability !== 'CAP_SYS_ADMIN') continue;
    errors.push(invalid(path, context, `${NO_ESCALATION} \`capabilities.Add\` CAP_SYS_ADMIN`));
  }
  return errors;
}
