/**
 * The CEL rules of a custom kind (x-kubernetes-validations), run over an object (apiextensions schema/cel/validation.go).
 * Compiled when the first object comes, once for each version; an object pays for the nodes that have rules only.
 */

import { sortMembers } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type FieldError, type FieldErrorType, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { counterpart, isSame, NO_COUNTERPART, OldItems } from '@coracle/apimachinery/schema/ratcheting';
import type { Schema, ValidationRule } from '@coracle/apimachinery/schema/schema';
import { createTreeSearch } from '@coracle/apimachinery/schema/schema-reach';
import {
  BOOL,
  type CelBudget,
  CelBudgetError,
  type CelProgram,
  type CelType,
  celBudget,
  celOptional,
  celTypeOfSchema,
  compileCel,
  optionalOf,
  STRING,
} from '@coracle/cel/cel';
import type { RawSchema } from './crd.ts';
import { findFieldPath } from './field-path.ts';

/** What all rules of one object may cost, and one evaluation (apiserver apis/cel/config.go). */
const OBJECT_BUDGET = 10_000_000;
const CALL_BUDGET = 1_000_000;
const MAX_MESSAGE_BYTES = 5 * 1024;

/** A rule ready to run. `problem` stands in its place when it does not compile, which admission would have refused. */
interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: CelProgram | undefined;
  readonly message: CelProgram | undefined;
  readonly problem: string;
  readonly usesOldSelf: boolean;
  /** Where the error is shown, below the node: `spec.replicas`; '' = at the node. */
  readonly field: string;
}

/** The variables that rules of a node see. */
export const ruleVariables = (
  self: CelType,
  rule: Pick<ValidationRule, 'optionalOldSelf'>,
): Record<string, CelType> => ({
  self,
  oldSelf: rule.optionalOldSelf ? optionalOf(self) : self,
});

interface RuleNode {
  readonly schema: Schema;
  readonly rules: readonly CompiledRule[];
  readonly properties: ReadonlyMap<string, RuleNode>;
  readonly rest: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

/**
 * The check of a kind's rules; undefined when it has none. `old` is the object before an update. Elsewhere than on whole
 * objects: the value stands at `path`, is not `whole` (an object with apiVersion, kind and metadata), or is validated where
 * it is as it was as well (no `ratchet`).
 */
export function createRuleCheck(
  schema: Schema,
  {
    path = '',
    whole = true,
    ratchet = true,
  }: { readonly path?: string; readonly whole?: boolean; readonly ratchet?: boolean } = {},
): ((object: unknown, old: unknown, warn?: (text: string) => void) => readonly FieldError[]) | undefined {
  if (!hasRules(schema)) return undefined;
  let node: RuleNode | undefined;
  return (object, old, warn) => {
    node ??= compileNode(schema, whole)!;
    const pass: Pass = {
      budget: celBudget(OBJECT_BUDGET, CALL_BUDGET),
      errors: [],
      spent: false,
      ratchet,
      warn,
      items: new OldItems(),
    };
    const before = old ?? NO_COUNTERPART;
    check(node, { value: object, old: before, before, path, parentUnchanged: () => false }, pass);
    return pass.errors;
  };
}

/** Whether a node has rules at or below it: once it was looked for, making a check takes no time. */
export const hasRules = createTreeSearch((schema) => (schema['x-kubernetes-validations']?.length ?? 0) > 0);

function compileNode(schema: Schema, root: boolean): RuleNode | undefined {
  if (!hasRules(schema)) return undefined;
  const whole = root || schema['x-kubernetes-embedded-resource'] === true;
  const rules = schema['x-kubernetes-validations'] ?? [];
  const self = rules.length > 0 ? celTypeOfSchema(schema, { root: whole }) : undefined;
  const properties = new Map<string, RuleNode>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const node = compileNode(property, false);
    if (node !== undefined) properties.set(name, node);
  }
  const rest = schema.additionalProperties;
  return {
    schema,
    rules: rules.map((rule) => compileRule(rule, { schema, self: self! })),
    properties,
    rest: typeof rest === 'object' ? compileNode(rest, false) : undefined,
    items: schema.items && compileNode(schema.items, false),
  };
}

function compileRule(
  rule: ValidationRule,
  { schema, self }: { readonly schema: Schema; readonly self: CelType },
): CompiledRule {
  const variables = ruleVariables(self, rule);
  let program: CelProgram | undefined;
  let message: CelProgram | undefined;
  let problem = '';
  try {
    program = compileCel(rule.rule, { variables, resultTypes: [BOOL] });
    if (rule.messageExpression) message = compileCel(rule.messageExpression, { variables, resultTypes: [STRING] });
  } catch (error) {
    problem = (error as Error).message;
  }
  const found = rule.fieldPath ? findFieldPath(schema as RawSchema, rule.fieldPath) : undefined;
  return {
    rule,
    program,
    message,
    problem,
    usesOldSelf: program?.references.has('oldSelf') === true,
    field: found !== undefined && 'path' in found ? found.path : '',
  };
}

/** One object's evaluation. */
interface Pass {
  readonly budget: CelBudget;
  readonly errors: FieldError[];
  /** Nothing more is run. */
  spent: boolean;
  readonly ratchet: boolean;
  readonly items: OldItems;
  /** Called with what is let pass because it was so before. */
  readonly warn: ((text: string) => void) | undefined;
}

interface Here {
  readonly value: unknown;
  /** What `oldSelf` is; NO_COUNTERPART where there is none. */
  readonly old: unknown;
  /** What the value is compared with to see if it was touched: parts of an atomic map have nothing of the kind. */
  readonly before: unknown;
  readonly path: string;
  /** Whether the nearest value above that has a counterpart is as it was. */
  readonly parentUnchanged: () => boolean;
}

function check(node: RuleNode, here: Here, pass: Pass): void {
  const { value, old, before, path } = here;
  if (value === null || value === undefined || pass.spent) return;
  let same: boolean | undefined;
  const unchanged = (): boolean => {
    same ??=
      before === NO_COUNTERPART
        ? here.parentUnchanged()
        : isSame(node.schema, { value, old: before, items: pass.items });
    return same;
  };
  if (node.rules.length > 0) runRules(node, { ...here, parentUnchanged: unchanged }, pass);
  const checkBelow = (below: RuleNode, key: string | number, of: Pick<Here, 'value' | 'old' | 'path'>): void =>
    check(
      below,
      {
        ...of,
        before: counterpart(node.schema, { value, old: before, key, items: pass.items }),
        parentUnchanged: unchanged,
      },
      pass,
    );
  if (Array.isArray(value)) {
    if (node.items === undefined) return;
    for (let i = 0; i < value.length && !pass.spent; i++) {
      const oldItem = counterpart(node.schema, { value, old, key: i, items: pass.items });
      checkBelow(node.items, i, { value: value[i], old: oldItem, path: `${path}[${i}]` });
    }
  } else if (isJsonObject(value)) {
    for (const key of Object.keys(value)) {
      const declared = node.properties.get(key);
      const below = declared ?? (Object.hasOwn(node.schema.properties ?? {}, key) ? undefined : node.rest);
      if (below === undefined || pass.spent) continue;
      const oldMember = isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : NO_COUNTERPART;
      const at = declared === undefined ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`;
      checkBelow(below, key, { value: value[key], old: oldMember, path: at });
    }
  }
}

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

/** `here.parentUnchanged` speaks of this very node. */
function runRules({ rules, schema }: RuleNode, here: Here, pass: Pass): void {
  const { old, path } = here;
  const shown = schema.type ?? '';
  const fail = (detail: string, isLast: boolean): void => {
    pass.errors.push({ type: 'FieldValueInvalid', field: path || '<nil>', value: shown, detail });
    if (isLast) pass.spent = true;
  };
  if (pass.budget.remaining <= 0) fail(OUT_OF_BUDGET, true);
  const isNew = old === NO_COUNTERPART || old === null;
  for (const compiled of rules) {
    if (pass.spent) return;
    const { rule, program, problem, usesOldSelf } = compiled;
    if (program === undefined) {
      fail(`rule compile error: ${problem}`, false);
      continue;
    }
    // A transition rule has nothing to say about what was not there.
    if (usesOldSelf && isNew && !rule.optionalOldSelf) continue;
    const before = isNew ? undefined : old;
    // A message cannot speak of the old value when the rule does not.
    const oldSelf = rule.optionalOldSelf ? celOptional(before) : before;
    const bindings = { self: here.value, oldSelf: usesOldSelf ? oldSelf : undefined };
    try {
      if (program.run(bindings, pass.budget) === true) continue;
    } catch (error) {
      fail(failureText(rule, error), error instanceof CelBudgetError);
      continue;
    }
    // What was not touched may stay as it is; a transition rule has already had its say about that.
    const isValidated = usesOldSelf || !pass.ratchet || !here.parentUnchanged();
    const { text: detail, last } = messageOf(compiled, bindings, pass);
    const field = fieldOf(compiled, path);
    const value = shown === 'object' || shown === 'array' ? undefined : here.value;
    const error: FieldError = last
      ? { type: 'FieldValueInvalid', field, value: shown, detail }
      : errorOf(rule, { field, value }, detail);
    if (isValidated) pass.errors.push(error);
    else pass.warn?.(`${error.field}: ${fieldErrorBody(error)}`);
    if (last) pass.spent = true;
  }
}

/** Why a rule could not be evaluated. */
function failureText(rule: ValidationRule, error: unknown): string {
  const text = (error as Error).message;
  if (error instanceof CelBudgetError) {
    return error.scope === 'total'
      ? OUT_OF_BUDGET
      : `'${text}': no further validation rules will be run due to call cost exceeds limit for rule: ${textOf(rule)}`;
  }
  return text.startsWith('no such overload')
    ? `'${text}': call arguments did not match a supported operator, function or macro signature for rule: ${textOf(rule)}`
    : `${text} evaluating rule: ${textOf(rule)}`;
}

const textOf = (rule: ValidationRule): string => (rule.message || rule.rule).trim();

function messageOf(
  { rule, message }: CompiledRule,
  bindings: Readonly<Record<string, unknown>>,
  pass: Pass,
): { readonly text: string; readonly last: boolean } {
  const fallback = rule.message ? rule.message.trim() : `failed rule: ${rule.rule.trim()}`;
  if (message === undefined) return { text: fallback, last: false };
  try {
    const text = String(message.run(bindings, pass.budget)).trim();
    const usable = text !== '' && !text.includes('\n') && new TextEncoder().encode(text).length <= MAX_MESSAGE_BYTES;
    return { text: usable ? text : fallback, last: false };
  } catch (error) {
    if (!(error instanceof CelBudgetError)) return { text: fallback, last: false };
    const text =
      error.scope === 'total'
        ? 'messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run'
        : `no further validation rules will be run due to call cost exceeds limit for messageExpression: ${JSON.stringify(rule.messageExpression)}`;
    return { text, last: true };
  }
}

const fieldOf = ({ field }: CompiledRule, path: string): string =>
  (field === '' ? path : path === '' ? field : `${path}.${field}`) || '<nil>';

/** Objects and lists are not shown. */
function errorOf(
  rule: ValidationRule,
  { field, value }: { readonly field: string; readonly value: unknown },
  detail: string,
): FieldError {
  const type = (rule.reason ?? 'FieldValueInvalid') as FieldErrorType;
  if (type === 'FieldValueForbidden' || type === 'FieldValueRequired') return { type, field, detail };
  const shown = value === undefined ? {} : { value: sortMembers(value) };
  if (type === 'FieldValueDuplicate') return { type, field, ...shown };
  return { type: 'FieldValueInvalid', field, ...shown, detail };
}
