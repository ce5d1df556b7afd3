/**
 * Rules of kinds as data: what the tables `*-rules.json` say of an object, in the order in which it is reported. A rule is
 * about a field of `self`, the object or the part of it that the rules stand for; expressions are CEL over `self` and `name`.
 */
import {
  checkDns1035Label,
  checkLabelName,
  checkPathSegment,
  checkPortName,
  checkQualifiedName,
  checkSubdomain,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, listAt, valueAt } from '@coracle/apimachinery/types/read-value';
import {
  addAll,
  duplicate,
  faults,
  invalid,
  required,
  tooLong,
  unsupported,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, CelEvaluationError, type CelProgram, celBudget, compileCel, DYN, STRING } from '@coracle/cel/cel';
import { backstepErrors, descendingErrors } from './volume-paths.ts';

/** One rule. Of `required` to `cel` it has one, or it stands for the rules of a part. */
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
  readonly format?: string;
  readonly maxLength?: number;
  /** Of a number, 0 where there is none. */
  readonly range?: readonly number[];
  /** True where all is well. */
  readonly cel?: string;
  /** Of a broken expression; `Invalid` when absent. */
  readonly reason?: string;
  /** An `enum` or `format` is asked of what is empty or not there as well. */
  readonly orEmpty?: boolean;
  /** Of each item of the list `field`, of the object `field` where there is one, or where an expression is true. */
  readonly each?: readonly Rule[];
  readonly within?: readonly Rule[];
  readonly when?: string;
  readonly rules?: readonly Rule[];
}

interface Subject {
  readonly self: unknown;
  /** Path of `self`. */
  readonly at: string;
  /** Name of the object or volume, or the kind: what the expressions of a table want to know beside `self`. */
  readonly name: string;
}

const detailsOf = (errors: readonly FieldError[]): string[] => errors.map(({ detail = '' }) => detail);
const INITIATOR = /^iqn\.\d{4}-\d{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)$|^eui.[A-Za-z0-9]{16}$|^naa.[A-Za-z0-9]{32}$/;

function initiatorDetails(name: string): string[] {
  if (!/^(iqn|eui|naa)/.test(name)) return ['must be valid format starting with iqn, eui, or naa'];
  return INITIATOR.test(name) ? [] : ['must be valid format'];
}

const FORMATS: Readonly<Record<string, (text: string) => readonly string[]>> = {
  subdomain: checkSubdomain,
  driver: (text) => checkSubdomain(text.toLowerCase()),
  label: checkLabelName,
  'dns-1035': checkDns1035Label,
  'path-segment': checkPathSegment,
  'port-name': checkPortName,
  'qualified-name': checkQualifiedName,
  'without-backsteps': (text) => detailsOf(backstepErrors(text, '')),
  descending: (text) => detailsOf(descendingErrors(text, '')),
  initiator: initiatorDetails,
};

const PROGRAMS = new Map<string, CelProgram>();
/** What one expression may cost: a table holds none that comes near it for an object of 3 MiB. */
const MOST_COST = 10_000_000;

function isTrue(expression: string, { self, name }: Subject): boolean {
  let program = PROGRAMS.get(expression);
  if (program === undefined) {
    program = compileCel(expression, { variables: { self: DYN, name: STRING }, resultTypes: [BOOL] });
    PROGRAMS.set(expression, program);
  }
  try {
    return program.run({ self: withoutNulls(self), name }, celBudget(MOST_COST, MOST_COST)) === true;
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

/** Adds what the rules say of `self`. */
export function validateByRules(errors: FieldError[], rules: readonly Rule[], subject: Subject): void {
  for (const rule of rules) validateByRule(errors, rule, subject);
}

function validateByRule(errors: FieldError[], rule: Rule, subject: Subject): void {
  const { field = '', each, within, when } = rule;
  const path = (step: string): string => [subject.at, step].filter((part) => part !== '').join('.');
  const steps = field === '' ? [] : field.split('.');
  const value = valueAt(subject.self, ...steps);
  if (each) {
    const list = listAt(subject.self, ...steps);
    validateNested(errors, list, (self, i) =>
      validateByRules(errors, each, { ...subject, self, at: `${path(field)}[${i}]` }),
    );
  } else if (within) {
    if (isObject(value)) validateByRules(errors, within, { ...subject, self: value, at: path(field) });
  } else if (when !== undefined) {
    if (isTrue(when, subject)) validateByRules(errors, rule.rules ?? [], subject);
  } else if (rule.unique !== undefined) {
    validateUnique(errors, { list: listAt(subject.self, ...steps), at: path(field), member: rule.unique });
  } else addAll(errors, brokenBy(rule, { ...subject, value, at: path(rule.at ?? field) }));
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

function brokenBy(rule: Rule, subject: Subject & { readonly value: unknown }): readonly FieldError[] {
  const { at, self, value } = subject;
  const text = typeof value === 'string' ? value : '';
  // Worked out only where something is wrong, which is seldom.
  const detailOf = (): string =>
    (rule.detail ?? '').replace(/\{([\w.]+)\}/g, (_, path: string) => String(valueAt(self, ...path.split('.')) ?? ''));
  if (rule.required) return isEmpty(value) ? [required(at, detailOf())] : [];
  if (rule.enum) {
    const isAsked = rule.orEmpty || !isEmpty(value);
    return isAsked && !rule.enum.includes(text) ? [unsupported(at, value ?? '', rule.enum)] : [];
  }
  if (rule.format !== undefined) {
    const details = text !== '' || rule.orEmpty ? FORMATS[rule.format]!(text) : [];
    return faults(
      at,
      text,
      details.map((one) => detailOf() + one),
    );
  }
  if (rule.maxLength !== undefined) return text.length > rule.maxLength ? [tooLong(at, rule.maxLength)] : [];
  if (rule.range) {
    const [low = 0, high = 0] = rule.range;
    const number = typeof value === 'number' ? value : 0;
    if (number >= low && number <= high) return [];
    return [invalid(at, number, detailOf() || `must be between ${low} and ${high}, inclusive`)];
  }
  if (isTrue(rule.cel!, subject)) return [];
  const { reason = 'Invalid' } = rule;
  const shown = reason === 'Invalid' || reason === 'NotSupported' ? { value: value ?? '' } : {};
  return [{ type: `FieldValue${reason}` as FieldError['type'], field: at, detail: detailOf(), ...shown }];
}
