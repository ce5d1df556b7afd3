/** Validation of flow schemas and priority levels (apis/flowcontrol/validation). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkLabelName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  forbidden,
  invalid,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { MANDATORY_LEVELS, MANDATORY_SCHEMAS } from '../flow-control-objects.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch'];
const METHODS = ['ByNamespace', 'ByUser'];
const MAX_PRECEDENCE = 10_000;
const MAX_QUEUES = 10_000_000;
const MAX_HASH_BITS = 60;
const NAMESPACE_RULE = "each member of this list must be '*' or a DNS-1123 label; ";

const SUBJECTS = { Group: 'group', ServiceAccount: 'serviceAccount', User: 'user' } as const;
const isKind = (kind: string): kind is keyof typeof SUBJECTS => Object.hasOwn(SUBJECTS, kind);

export function validateFlowSchema(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = objectAt(object, 'spec');
  const precedence = numberAt(spec, 'matchingPrecedence');
  const wrong = (detail: string): unknown => errors.push(invalid('spec.matchingPrecedence', precedence, detail));
  if (precedence <= 0) wrong('must be a positive value');
  if (precedence > MAX_PRECEDENCE) wrong(`must not be greater than ${MAX_PRECEDENCE}`);
  if (precedence === 1 && textAt(object, 'metadata', 'name') !== 'exempt') {
    wrong("only the schema named 'exempt' may have matchingPrecedence 1");
  }
  const method = valueAt(spec, 'distinguisherMethod');
  if (isObject(method) && !METHODS.includes(textAt(method, 'type'))) {
    errors.push(unsupported('spec.distinguisherMethod.type', method, METHODS));
  }
  const level = textAt(spec, 'priorityLevelConfiguration', 'name');
  const at = 'spec.priorityLevelConfiguration.name';
  if (level === '') errors.push(required(at, 'must reference a priority level'));
  else for (const detail of checkSubdomain(level)) errors.push(invalid(at, level, detail));
  for (const [i, rule] of objectsAt(spec, 'rules').entries()) validateRule(errors, rule, `spec.rules[${i}]`);
  const name = textAt(object, 'metadata', 'name');
  const fixed = Object.hasOwn(MANDATORY_SCHEMAS, name) ? MANDATORY_SCHEMAS[name] : undefined;
  if (fixed !== undefined && !deepEqual(spec, fixed)) {
    errors.push(invalid('spec', spec, `spec of '${name}' must equal the fixed value`));
  }
  validateTypes(errors, object);
  return errors;
}

function validateRule(errors: FieldError[], rule: JsonObject, at: string): void {
  const subjects = objectsAt(rule, 'subjects');
  if (subjects.length === 0) errors.push(required(`${at}.subjects`, 'subjects must contain at least one value'));
  validateEach(errors, subjects, (subject, i) => subjectErrors(subject, `${at}.subjects[${i}]`));
  const resources = objectsAt(rule, 'resourceRules');
  const paths = objectsAt(rule, 'nonResourceRules');
  if (resources.length === 0 && paths.length === 0) {
    errors.push(required(at, 'at least one of resourceRules and nonResourceRules has to be non-empty'));
  }
  validateEach(errors, resources, (one, i) => resourceErrors(one, `${at}.resourceRules[${i}]`));
  validateEach(errors, paths, (one, i) => pathErrors(one, `${at}.nonResourceRules[${i}]`));
}

function subjectErrors(subject: JsonObject, at: string): FieldError[] {
  const kind = textAt(subject, 'kind');
  if (!isKind(kind)) return [unsupported(`${at}.kind`, kind, Object.keys(SUBJECTS))];
  const errors: FieldError[] = [];
  const own = SUBJECTS[kind];
  const named = valueAt(subject, own);
  if (!isObject(named)) errors.push(required(`${at}.${own}`, `${own} is required when subject kind is '${kind}'`));
  else {
    if (textAt(named, 'name') === '') errors.push(required(`${at}.${own}.name`));
    if (kind === 'ServiceAccount') errors.push(...accountErrors(named, `${at}.${own}`));
  }
  for (const other of ['ServiceAccount', 'User', 'Group'] as const) {
    const field = SUBJECTS[other];
    if (other === kind || !isObject(valueAt(subject, field))) continue;
    errors.push(forbidden(`${at}.${field}`, `${field} is forbidden when subject kind is not '${other}'`));
  }
  return errors;
}

function accountErrors(account: JsonObject, at: string): FieldError[] {
  const [name, namespace] = [textAt(account, 'name'), textAt(account, 'namespace')];
  const errors: FieldError[] = [];
  if (name !== '' && name !== '*') {
    for (const detail of checkSubdomain(name)) errors.push(invalid(`${at}.name`, name, detail));
  }
  if (namespace === '') errors.push(required(`${at}.namespace`, 'must specify namespace for service account'));
  else for (const detail of checkLabelName(namespace)) errors.push(invalid(`${at}.namespace`, namespace, detail));
  return errors;
}

/** What a list must not be: empty, or everything and something else. */
function listErrors(
  rule: JsonObject,
  field: string,
  reported: { at: string; empty: string; others: string },
): FieldError[] {
  const values = textsAt(rule, field);
  const at = `${reported.at}.${field}`;
  if (values.length === 0) return [required(at, reported.empty)];
  if (values.length === 1 || !values.includes('*')) return [];
  return [invalid(at, values, `if '*' is present, must not specify other ${reported.others}`)];
}

function verbErrors(rule: JsonObject, at: string): FieldError[] {
  const verbs = textsAt(rule, 'verbs');
  const errors = listErrors(rule, 'verbs', { at, empty: 'verbs must contain at least one value', others: 'verbs' });
  const isKnown = verbs.includes('*') || verbs.every((verb) => VERBS.includes(verb));
  return isKnown ? errors : [...errors, unsupported(`${at}.verbs`, verbs, VERBS)];
}

function resourceErrors(rule: JsonObject, at: string): FieldError[] {
  const errors = verbErrors(rule, at);
  const groups = { at, empty: 'resource rules must supply at least one api group', others: 'api groups' };
  const resources = { at, empty: 'resource rules must supply at least one resource', others: 'resources' };
  errors.push(...listErrors(rule, 'apiGroups', groups), ...listErrors(rule, 'resources', resources));
  const namespaces = textsAt(rule, 'namespaces');
  const empty = 'resource rules that are not cluster scoped must supply at least one namespace';
  if (namespaces.length > 0 || !isTrueAt(rule, 'clusterScope')) {
    errors.push(...listErrors(rule, 'namespaces', { at, empty, others: 'namespaces' }));
  }
  if (namespaces.includes('*')) return errors;
  for (const [i, namespace] of namespaces.entries()) {
    for (const detail of checkLabelName(namespace)) {
      errors.push(invalid(`${at}.namespaces[${i}]`, namespace, NAMESPACE_RULE + detail));
    }
  }
  return errors;
}

function pathErrors(rule: JsonObject, at: string): FieldError[] {
  const errors = verbErrors(rule, at);
  const reported = { at, empty: 'nonResourceURLs must contain at least one value', others: 'non-resource URLs' };
  errors.push(...listErrors(rule, 'nonResourceURLs', reported));
  const paths = textsAt(rule, 'nonResourceURLs');
  if (paths.includes('*')) return errors;
  for (const [i, path] of paths.entries()) {
    const detail = pathFault(path);
    if (detail !== undefined) errors.push(invalid(`${at}.nonResourceURLs[${i}]`, path, detail));
  }
  return errors;
}

function pathFault(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (!path.startsWith('/')) return 'must start with slash';
  if (path.includes(' ')) return 'must not contain white-space';
  if (path.includes('//')) return 'must not contain double slash';
  const stars = path.split('*').length - 1;
  return stars > 1 || (stars === 1 && !path.endsWith('/*')) ? 'wildcard can only do suffix matching' : undefined;
}

export function validatePriorityLevel(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  const spec = objectAt(object, 'spec');
  const type = textAt(spec, 'type');
  const [isLimited, isExempt] = [isObject(valueAt(spec, 'limited')), isObject(valueAt(spec, 'exempt'))];
  if ((textAt(object, 'metadata', 'name') === 'exempt') !== (type === 'Exempt')) {
    errors.push(invalid('spec.type', type, "type must be 'Exempt' if and only if name is 'exempt'"));
  }
  if (type === 'Exempt') {
    if (isLimited) errors.push(forbidden('spec.limited', 'must be nil if the type is not Limited'));
    if (isExempt) errors.push(...shareErrors(objectAt(spec, 'exempt'), 'spec.exempt'));
  } else if (type === 'Limited') {
    if (isExempt) errors.push(forbidden('spec.exempt', 'must be nil if the type is Limited'));
    if (isLimited) errors.push(...limitErrors(objectAt(spec, 'limited')));
    else errors.push(required('spec.limited', 'must not be empty when type is Limited'));
  } else errors.push(unsupported('spec.type', type, ['Exempt', 'Limited']));
  const name = textAt(object, 'metadata', 'name');
  const fixed = Object.hasOwn(MANDATORY_LEVELS, name) ? MANDATORY_LEVELS[name] : undefined;
  // How much room what is exempt takes up is up to the administrator.
  const beside = (level: JsonObject): JsonObject => (name === 'exempt' ? { ...level, exempt: undefined } : level);
  if (fixed !== undefined && !deepEqual(beside(spec), beside(fixed))) {
    errors.push(invalid('spec', spec, `spec of '${name}' except the 'spec.exempt' field must equal the fixed value`));
  }
  validateTypes(errors, object);
  return errors;
}

function shareErrors(level: JsonObject, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const shares = numberAt(level, 'nominalConcurrencyShares');
  const lendable = numberAt(level, 'lendablePercent');
  if (shares < 0) {
    errors.push(invalid(`${at}.nominalConcurrencyShares`, shares, 'must be a non-negative integer'));
  }
  if (lendable < 0 || lendable > 100) {
    errors.push(invalid(`${at}.lendablePercent`, lendable, 'must be between 0 and 100, inclusive'));
  }
  return errors;
}

function limitErrors(limited: JsonObject): FieldError[] {
  const errors = shareErrors(limited, 'spec.limited');
  const borrowing = valueAt(limited, 'borrowingLimitPercent');
  if (typeof borrowing === 'number' && borrowing < 0) {
    const detail = 'if specified, must be a non-negative integer';
    errors.push(invalid('spec.limited.borrowingLimitPercent', borrowing, detail));
  }
  const at = 'spec.limited.limitResponse';
  const response = objectAt(limited, 'limitResponse');
  const type = textAt(response, 'type');
  const queuing = valueAt(response, 'queuing');
  if (type === 'Reject') {
    const detail = 'must be nil if limited.limitResponse.type is not Limited';
    if (isObject(queuing)) errors.push(forbidden(`${at}.queuing`, detail));
  } else if (type === 'Queue') {
    if (isObject(queuing)) errors.push(...queueErrors(queuing, `${at}.queuing`));
    else errors.push(required(`${at}.queuing`, 'must not be empty if limited.limitResponse.type is Limited'));
  } else errors.push(unsupported(`${at}.type`, type, ['Queue', 'Reject']));
  return errors;
}

function queueErrors(queuing: JsonObject, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const [length, queues, hand] = ['queueLengthLimit', 'queues', 'handSize'].map((field) => numberAt(queuing, field));
  const wrong = (field: string, value: unknown, detail: string): unknown =>
    errors.push(invalid(`${at}.${field}`, value, detail));
  if (length! <= 0) wrong('queueLengthLimit', length, 'must be positive');
  if (queues! <= 0) wrong('queues', queues, 'must be positive');
  else if (queues! > MAX_QUEUES) wrong('queues', queues, `must not be greater than ${MAX_QUEUES}`);
  if (hand! <= 0) wrong('handSize', hand, 'must be positive');
  else if (hand! > queues!) wrong('handSize', hand, `should not be greater than queues (${queues})`);
  else if (entropyBits(queues!, hand!) > MAX_HASH_BITS) {
    const sizes = `deckSize ${queues} and handSize ${hand}`;
    wrong('handSize', hand, `required entropy bits of ${sizes} should not be greater than ${MAX_HASH_BITS}`);
  }
  return errors;
}

/** Bits of a hash that are used up to deal a hand, a little more than needed (shufflesharding.RequiredEntropyBits). */
const entropyBits = (deck: number, hand: number): number => Math.ceil(Math.log2(deck) * hand);

/** Of each type of condition there is one. */
function validateTypes(errors: FieldError[], object: JsonObject): void {
  const seen = new Set<string>();
  validateEach(errors, objectsAt(object, 'status', 'conditions'), (condition, i) => {
    const type = textAt(condition, 'type');
    const at = `status.conditions[${i}].type`;
    const errors = seen.has(type) ? [duplicate(at, type)] : [];
    seen.add(type);
    return type === '' ? [...errors, required(at, 'must not be empty')] : errors;
  });
}
