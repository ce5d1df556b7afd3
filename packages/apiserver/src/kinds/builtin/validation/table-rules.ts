/**
 * Rules of kinds as data: what the tables `*-rules.json` say of an object, in the order in which it is reported. A rule is
 * about a field of `self`, the object or the part of it that the rules stand for; expressions are CEL over `self`, `name`
 * and `old`, which is the same part before the update, and null where there is none.
 */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import {
  checkDns1035Label,
  checkLabelName,
  checkLabelValue,
  checkPathSegment,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { formatCheck } from '@coracle/apimachinery/schema/formats';
import { isObject, type JsonObject, listAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { validateLabelSelector } from '@coracle/apimachinery/validation/affinity';
import {
  addAll,
  duplicate,
  IMMUTABLE,
  invalid,
  nonNegative,
  required,
  tooLong,
  tooMany,
  unsupported,
  unsupportedInOrder,
  type Validate,
  validateLabels,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, CelEvaluationError, type CelProgram, celBudget, compileCel, DYN, STRING } from '@coracle/cel/cel';
import { getOrInsert } from '@coracle/runtime/collections/get-or-insert';
import conditionRules from './condition-rules.json' with { type: 'json' };
import { addressProblem, CIDR_RULE, DNS_NOT_IP, IP_RULE, isIp, networkProblem } from './strict-addresses.ts';

/** One rule. Of `required` to `check` it has one, or it stands for the rules of a part. */
export interface Rule {
  /** Path below `self`, which is meant itself where there is none. */
  readonly field?: string;
  /** Where it is reported, if not at the field. */
  readonly at?: string;
  /** `{path}` stands for a value; what a format says comes behind it. */
  readonly detail?: string;
  /** The member of a list's items that stands once, or the items themselves. */
  readonly unique?: string;
  /** A text or list that is not empty, or an object. */
  readonly required?: boolean;
  readonly enum?: readonly string[];
  /** The values of an `enum` are shown as they stand, where upstream does not sort them. */
  readonly inOrder?: boolean;
  readonly format?: string;
  readonly maxLength?: number;
  /** Most items of a list, or members of an object. */
  readonly maxItems?: number;
  /** Of a number, 0 where there is none. */
  readonly range?: readonly number[];
  /** A number that is not negative, where there is one. */
  readonly count?: boolean;
  /** The same as before an update. */
  readonly kept?: boolean;
  /** True where all is well. */
  readonly cel?: string;
  /** Of a broken expression, or of what is not kept; `Invalid` when absent. */
  readonly reason?: string;
  /** What is no row: a function by name, one that the caller has or one of all tables (`SHARED`). */
  readonly check?: string;
  /** Another of the caller's tables, by name: asked of `self`, or of the object `field` where there is one. */
  readonly use?: string;
  /** An `enum` or `format` is asked of what is empty or not there as well. */
  readonly orEmpty?: boolean;
  /** Asked of what is given, be it empty. */
  readonly ifGiven?: boolean;
  /** `create` or `update`: for one of the two alone. */
  readonly on?: string;
  /** Of each item of the list `field`, of the object `field` where there is one, or where an expression is true. */
  readonly each?: readonly Rule[];
  readonly within?: readonly Rule[];
  readonly when?: string;
  readonly rules?: readonly Rule[];
}

interface Subject {
  readonly self: unknown;
  /** `self` before an update. Items of lists are taken for new. */
  readonly old?: unknown;
  /** Path of `self`. */
  readonly at: string;
  /** Name of the object or volume, or the kind: what the expressions of a table want to know beside `self`. */
  readonly name?: string;
  readonly checks?: Readonly<Record<string, RuleCheck>>;
  readonly tables?: Readonly<Record<string, readonly Rule[]>>;
}

/** Adds what is wrong with the value of a field, which stands at `at`. */
export type RuleCheck = (
  errors: FieldError[],
  value: unknown,
  about: { readonly at: string; readonly self: unknown; readonly old: unknown },
) => void;

/** Validates objects by a table, and by what it names. Expressions are given `name`, or the object's. */
export const byRules =
  (rules: readonly Rule[], options: Pick<Subject, 'checks' | 'tables' | 'name'> = {}): Validate =>
  (self, old) => {
    const errors: FieldError[] = [];
    validateByRules(errors, rules, { name: textAt(self, 'metadata', 'name'), ...options, self, old, at: '' });
    return errors;
  };

/** Checks that tables of several kinds name. */
const SHARED: Readonly<Record<string, RuleCheck>> = {
  conditions: (errors, value, { at }) => isObject(value) && validateConditions(errors, value, at),
  labels: (errors, value, { at }) => isObject(value) && validateLabels(errors, value, at),
  selector: (errors, value, { at }) => validateLabelSelector(errors, value, at),
};

/**
 * Adds every mistake in the conditions of the common type (metav1.Condition) below `holder.conditions`, where upstream
 * validates them: not every kind that has some does.
 */
export const validateConditions = (errors: FieldError[], holder: JsonObject, at: string): void =>
  validateByRules(errors, conditionRules, { self: holder, at });

const isCidr = formatCheck('cidr')!;
const detailOf = (fault: string | undefined): string[] => (fault === undefined ? [] : [fault]);
const joined = (problems: readonly string[]): string[] => (problems.length === 0 ? [] : [problems.join(',')]);
const backsteps = (path: string): string[] => (path.split('/').includes('..') ? ["must not contain '..'"] : []);
const INITIATOR = /^iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$|^eui.[A-Za-z0-9]{16}$|^naa.[A-Za-z0-9]{32}$/;

function initiatorDetails(name: string): string[] {
  if (!/^(iqn|eui|naa)/.test(name)) return ['must be valid format starting with iqn, eui, or naa'];
  return INITIATOR.test(name) ? [] : ['must be valid format'];
}

const FORMATS: Readonly<Record<string, (text: string) => readonly string[]>> = {
  subdomain: checkSubdomain,
  driver: (text) => checkSubdomain(text.toLowerCase()),
  label: checkLabelName,
  'label-value': checkLabelValue,
  'dns-1035': checkDns1035Label,
  'path-segment': checkPathSegment,
  'port-name': checkPortName,
  'qualified-name': checkQualifiedName,
  'qualified-name-in-any-case': (text) => checkQualifiedName(text.toLowerCase()),
  'webhook-name': (text) => {
    const problems = checkSubdomain(text);
    if (problems.length > 0) return [problems.join(',')];
    return text.split('.').length < 3 ? ['should be a domain with at least three segments separated by dots'] : [];
  },
  'crd-group': (text) => {
    const problems = checkSubdomain(text);
    if (problems.length > 0) return [problems.join(',')];
    return text.includes('.') ? [] : ['should be a domain with at least one dot'];
  },
  'resource-name': (text) => joined(checkDns1035Label(text)),
  kind: (text) => {
    const problems = checkDns1035Label(text.toLowerCase());
    return problems.length === 0 ? [] : [`may have mixed case, but should otherwise match: ${problems.join(',')}`];
  },
  address: (text) => detailOf(addressProblem(text)),
  'no-address': (text) => (isIp(text) ? [DNS_NOT_IP] : []),
  ip: (text) => (isIp(text) ? [] : [IP_RULE]),
  cidr: (text) => (isCidr(text) ? [] : [CIDR_RULE]),
  network: (text) => detailOf(networkProblem(text)),
  'without-backsteps': backsteps,
  descending: (text) => [...(text.startsWith('/') ? ['must be a relative path'] : []), ...backsteps(text)],
  initiator: initiatorDetails,
};

const PROGRAMS = new Map<string, CelProgram>();
/** What one expression may cost: a table holds none that comes near it for an object of 3 MiB. */
const MOST_COST = 10_000_000;

function isTrue(expression: string, { self, old, name = '' }: Subject): boolean {
  const program = getOrInsert(PROGRAMS, expression, () =>
    compileCel(expression, { variables: { self: DYN, old: DYN, name: STRING }, resultTypes: [BOOL] }),
  );
  try {
    const bindings = { self: withoutNulls(self), old: withoutNulls(old) ?? null, name };
    return program.run(bindings, celBudget(MOST_COST, MOST_COST)) === true;
  } catch (error) {
    // A null further down: what cannot be said to be well is not.
    if (error instanceof CelEvaluationError) return false;
    throw error;
  }
}

/** A member that is null is one that is not there. */
function withoutNulls(value: unknown): unknown {
  if (!isObject(value) || !Object.values(value).includes(null)) return value;
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);

/** Whether an `enum` or `format` is asked of a value. */
const isAsked = ({ orEmpty, ifGiven }: Rule, value: unknown): boolean => orEmpty || ifGiven || !isEmpty(value);

/** How a rule is read. Rules are read very often, and what they say of a field is nearly always nothing. */
interface Reading {
  readonly steps: readonly string[];
  /** True for a rule that may have something to say of what is not there. */
  readonly ofAbsent: boolean;
  readonly on: string | undefined;
}

const READINGS = new WeakMap<Rule, Reading>();

function readingOf(rule: Rule): Reading {
  const known = READINGS.get(rule);
  if (known !== undefined) return known;
  const { field, ifGiven, orEmpty, on } = rule;
  const { each, within, use, maxLength, maxItems, count } = rule;
  const ofGiven = each ?? within ?? use ?? rule.enum ?? rule.format ?? maxLength ?? maxItems ?? count;
  const ofAbsent = !ifGiven && (orEmpty === true || ofGiven === undefined);
  const reading = { steps: field ? field.split('.') : [], ofAbsent, on };
  READINGS.set(rule, reading);
  return reading;
}

/** Adds what the rules say of `self`. */
export function validateByRules(errors: FieldError[], rules: readonly Rule[], subject: Subject): void {
  for (const rule of rules) validateByRule(errors, rule, subject);
}

const pathOf = (at: string, step = ''): string => (at === '' || step === '' ? `${at}${step}` : `${at}.${step}`);

function memberAt(holder: unknown, steps: readonly string[]): unknown {
  let value = holder;
  for (const step of steps) {
    if (!isObject(value) || !Object.hasOwn(value, step)) return undefined;
    value = value[step];
  }
  return value;
}

function validateByRule(errors: FieldError[], rule: Rule, subject: Subject): void {
  const { steps, ofAbsent, on } = readingOf(rule);
  const value = memberAt(subject.self, steps);
  if (value === undefined && !ofAbsent) return;
  if (on !== undefined && (on === 'update') !== isObject(subject.old)) return;
  const { field, each, when, unique, check, use } = rule;
  const within = use === undefined ? rule.within : subject.tables?.[use];
  if (each) {
    if (!Array.isArray(value)) return;
    const list = pathOf(subject.at, field);
    validateNested(errors, value, (self, i) =>
      validateByRules(errors, each, { ...subject, self, old: undefined, at: `${list}[${i}]` }),
    );
  } else if (within) {
    if (field !== undefined && !isObject(value)) return;
    const old = memberAt(subject.old, steps);
    validateByRules(errors, within, { ...subject, self: value, old, at: pathOf(subject.at, rule.at ?? field) });
  } else if (when !== undefined) {
    if (isTrue(when, subject)) validateByRules(errors, rule.rules ?? [], subject);
  } else if (unique !== undefined) {
    validateUnique(errors, { list: listAt(value), at: pathOf(subject.at, field), member: unique });
  } else if (check !== undefined) {
    const { self, old, checks = {} } = subject;
    (checks[check] ?? SHARED[check]!)(errors, value, {
      at: pathOf(subject.at, rule.at ?? field),
      self,
      old: memberAt(old, steps),
    });
  } else addAll(errors, brokenBy(rule, subject, value));
}

function validateUnique(
  errors: FieldError[],
  { list, at, member }: { readonly list: readonly unknown[]; readonly at: string; readonly member: string },
): void {
  const seen = new Set<unknown>();
  validateNested(errors, list, (item, i) => {
    const value = member === '' ? item : valueAt(item, member);
    if (seen.has(value)) errors.push(duplicate(`${at}[${i}]${member === '' ? '' : `.${member}`}`, value));
    seen.add(value);
  });
}

const NONE: readonly FieldError[] = [];

/** What is wrong with a value. Where and how it is said is worked out where something is, which is seldom. */
function brokenBy(rule: Rule, subject: Subject, value: unknown): readonly FieldError[] {
  const { self, old } = subject;
  const place = (): string => pathOf(subject.at, rule.at ?? rule.field);
  const text = typeof value === 'string' ? value : '';
  const detailOf = (): string =>
    (rule.detail ?? '').replace(/\{([\w.]+)\}/g, (_, path: string) => String(valueAt(self, ...path.split('.')) ?? ''));
  if (rule.ifGiven && (value === undefined || value === null)) return NONE;
  if (rule.required) return isEmpty(value) ? [required(place(), detailOf())] : NONE;
  if (rule.enum) {
    const refuse = rule.inOrder ? unsupportedInOrder : unsupported;
    return isAsked(rule, value) && !rule.enum.includes(text) ? [refuse(place(), value ?? '', rule.enum)] : NONE;
  }
  if (rule.format !== undefined) {
    const details = isAsked(rule, value) ? FORMATS[rule.format]!(text) : [];
    return details.length === 0 ? NONE : details.map((one) => invalid(place(), text, detailOf() + one));
  }
  if (rule.maxLength !== undefined) return text.length > rule.maxLength ? [tooLong(place(), rule.maxLength)] : NONE;
  if (rule.range) {
    const [low = 0, high = 0] = rule.range;
    const number = typeof value === 'number' ? value : 0;
    if (number >= low && number <= high) return NONE;
    return [invalid(place(), number, detailOf() || `must be between ${low} and ${high}, inclusive`)];
  }
  if (rule.maxItems !== undefined) {
    const count = Object.keys(isObject(value) || Array.isArray(value) ? value : {}).length;
    return count > rule.maxItems ? [tooMany(place(), count, rule.maxItems)] : NONE;
  }
  if (rule.count) return nonNegative({ value }, 'value', place());
  const isKept =
    rule.kept && (!isObject(old) || deepEqual(value ?? null, valueAt(old, ...readingOf(rule).steps) ?? null));
  if (isKept || (rule.cel !== undefined && isTrue(rule.cel, subject))) return NONE;
  const { reason = 'Invalid' } = rule;
  const shown = reason === 'Invalid' || reason === 'NotSupported' ? { value: value ?? (rule.kept ? null : '') } : {};
  const detail = detailOf() || (rule.kept ? IMMUTABLE : '');
  return [{ type: `FieldValue${reason}` as FieldError['type'], field: place(), detail, ...shown }];
}
