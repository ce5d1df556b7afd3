/** Validation of ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings. */

import {
  byteLength,
  checkDns1035Label,
  checkQualifiedName,
  checkSubdomain,
} from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '@coracle/apimachinery/types/read-value';
import {
  duplicate,
  invalid,
  invalidEach,
  required,
  unsupported,
  validateNested,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, type CelType, DYN, JSON_PATCH, listOf, MUTATION_OBJECT, NULL, STRING } from '@coracle/cel/cel';
import { expressionVariables, typeOfVariables } from '../policy-expressions.ts';
import rules from './admission-rules.json' with { type: 'json' };
import { checkExpression, MATCHING, validateMatchConditions } from './admission-rules.ts';
import { byRules, type RuleCheck, validateByRules, validateConditions } from './table-rules.ts';

const MAX_AUDIT_ANNOTATIONS = 20;
const MAX_VALUE_EXPRESSION_BYTES = 5 * 1024;

/** The names of a policy. */
interface Names {
  readonly params: CelType | undefined;
  /** Undefined where nothing declares `variables`. */
  readonly variables: CelType | undefined;
  readonly libraries: readonly 'mutation'[];
}

const variablesOf = ({ params, variables }: Names, authorizer: boolean): Record<string, CelType> =>
  expressionVariables({ params, authorizer, ...(variables && { variables }) });

/** Validates the expression of a part of a policy, which may use all its names; the type of its result if it has one. */
function validateExpression(
  errors: FieldError[],
  part: unknown,
  { at, names, resultTypes }: { readonly at: string; readonly names: Names; readonly resultTypes?: readonly CelType[] },
): CelType | undefined {
  const expression = textAt(part, 'expression');
  const field = `${at}.expression`;
  const { libraries } = names;
  if (expression.trim() !== '') {
    const variables = variablesOf(names, true);
    return checkExpression(errors, expression, { field, variables, libraries, ...(resultTypes && { resultTypes }) });
  }
  errors.push(required(field, 'expression is not specified'));
  return undefined;
}

/** Validates what both kinds of policies share; the names that their own expressions may use. */
function validateShared(errors: FieldError[], spec: JsonObject, libraries: Names['libraries']): Names {
  const params = isObject(valueAt(spec, 'paramKind')) ? DYN : undefined;
  const checks = { ...MATCHING.checks, groupVersion };
  validateByRules(errors, rules.policy, { ...MATCHING, self: spec, at: 'spec', checks });
  validateMatchConditions(errors, spec, { at: 'spec.matchConditions', params });
  const fields: Record<string, CelType> = {};
  const variables = objectsAt(spec, 'variables');
  for (const [i, variable] of variables.entries()) {
    // Each sees all before it.
    const at = `spec.variables[${i}]`;
    const name = textAt(variable, 'name');
    if (name.trim() === '') errors.push(required(`${at}.name`, 'name is not specified'));
    else if (!isIdentifier(name)) errors.push(invalid(`${at}.name`, name, 'name is not a valid CEL identifier'));
    else if (Object.hasOwn(fields, name)) errors.push(duplicate(`${at}.name`, name));
    // The types of patches are known to mutations only.
    const names: Names = { params, variables: typeOfVariables(fields), libraries: [] };
    const type = validateExpression(errors, variable, { at, names });
    if (textAt(variable, 'expression').trim() !== '') fields[name] = type ?? DYN;
  }
  // A validating policy without variables is compiled without the name, a mutating one always with it.
  const composed = libraries.includes('mutation') || variables.length > 0;
  return { params, variables: composed ? typeOfVariables(fields) : undefined, libraries };
}

const RESERVED = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
const isIdentifier = (name: string): boolean => /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !RESERVED.has(name);

/** Upstream shows the part that is wrong, and the whole only where a part is missing. */
const groupVersion: RuleCheck = (errors, value, { at }) => {
  if (typeof value !== 'string' || value === '') return;
  const parts = value === '/' ? [''] : value.split('/');
  const [group, version] = parts.length === 2 ? (parts as [string, string]) : ['', parts[0]!];
  const refuse = (shown: string, problems: readonly string[]): void => {
    if (problems.length > 0) errors.push(invalid(at, shown, problems.join(',')));
  };
  if (parts.length > 2) refuse(value, [`unexpected GroupVersion string: ${value}`]);
  else {
    refuse(group, group === '' ? [] : checkSubdomain(group));
    if (version === '') refuse(value, ['version must be specified']);
    else refuse(version, checkDns1035Label(version));
  }
};

export function validateValidatingPolicy(object: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const errors: FieldError[] = [];
  const names = validateShared(errors, spec, []);
  validateConditions(errors, objectAt(object, 'status'), 'status');
  const validations = objectsAt(spec, 'validations');
  const annotations = objectsAt(spec, 'auditAnnotations');
  if (validations.length === 0 && annotations.length === 0) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    return [...errors, required('spec.validations', detail), required('spec.auditAnnotations', detail)];
  }
  validateNested(errors, validations, (one, i) => validateOne(errors, one, { at: `spec.validations[${i}]`, names }));
  if (annotations.length > MAX_AUDIT_ANNOTATIONS) {
    const detail = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
    errors.push(invalid('spec.auditAnnotations', annotations, detail));
  }
  const keys = new Set<string>();
  validateNested(errors, annotations, (annotation, i) => {
    const at = `spec.auditAnnotations[${i}]`;
    const key = textAt(annotation, 'key');
    validateAnnotation(errors, annotation, { at, policy: textAt(object, 'metadata', 'name'), names });
    if (keys.has(key)) errors.push(duplicate(`${at}.key`, key));
    keys.add(key);
  });
  return errors;
}

interface Part {
  readonly at: string;
  readonly names: Names;
}

function validateOne(errors: FieldError[], validation: JsonObject, { at, names }: Part): void {
  validateExpression(errors, validation, { at, names, resultTypes: [BOOL] });
  const message = textAt(validation, 'messageExpression');
  const field = `${at}.messageExpression`;
  if (message !== '' && message.trim() === '') errors.push(invalid(field, message, 'must be non-empty if specified'));
  else if (message !== '') {
    checkExpression(errors, message, { field, variables: variablesOf(names, false), resultTypes: [STRING] });
  }
  validateByRules(errors, rules.validation, { self: validation, at });
}

function validateAnnotation(
  errors: FieldError[],
  annotation: JsonObject,
  { at, policy, names }: Part & { readonly policy: string },
): void {
  const key = textAt(annotation, 'key');
  const name = `${policy}/${key}`;
  if (policy === '') errors.push(invalid(`${at}.key`, key, 'requires metadata.name be non-empty'));
  else errors.push(...invalidEach(`${at}.key`, name, checkQualifiedName(name)));
  // Compiled without the blanks around it, and shown with them.
  const shown = textAt(annotation, 'valueExpression');
  const expression = shown.trim();
  const field = `${at}.valueExpression`;
  if (expression === '') errors.push(required(field, 'valueExpression is not specified'));
  else if (byteLength(expression) > MAX_VALUE_EXPRESSION_BYTES) {
    errors.push(required(field, `must not exceed ${MAX_VALUE_EXPRESSION_BYTES} bytes in length`));
  } else {
    const { libraries } = names;
    const how = { variables: variablesOf(names, true), libraries, resultTypes: [STRING, NULL] };
    checkExpression(errors, expression, { ...how, field, shown });
  }
}

export function validateMutatingPolicy(object: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const errors: FieldError[] = [];
  const names = validateShared(errors, spec, ['mutation']);
  const mutations = objectsAt(spec, 'mutations');
  if (mutations.length === 0) errors.push(required('spec.mutations', 'mutations must contain at least one item'));
  validateNested(errors, mutations, (one, i) => validateMutation(errors, one, { at: `spec.mutations[${i}]`, names }));
  validateByRules(errors, rules.reinvocation, { self: spec, at: 'spec' });
  return errors;
}

const PATCH_TYPES = [
  { type: 'ApplyConfiguration', field: 'applyConfiguration', other: 'jsonPatch', result: MUTATION_OBJECT },
  { type: 'JSONPatch', field: 'jsonPatch', other: 'applyConfiguration', result: listOf(JSON_PATCH) },
] as const;

function validateMutation(errors: FieldError[], mutation: JsonObject, { at, names }: Part): void {
  const patchType = textAt(mutation, 'patchType');
  const kind = PATCH_TYPES.find(({ type }) => type === patchType);
  if (patchType === '') errors.push(required(`${at}.patchType`));
  else if (!kind) {
    const types = PATCH_TYPES.map(({ type }) => type);
    errors.push(unsupported(`${at}.patchType`, patchType, types));
  }
  if (!kind) return;
  if (valueAt(mutation, kind.other) !== undefined) {
    const detail = `must not be specified when patchType is ${patchType}`;
    errors.push(invalid(`${at}.${kind.other}`, `{${kind.other}}`, detail));
  }
  const body = valueAt(mutation, kind.field);
  const field = `${at}.${kind.field}`;
  if (!isObject(body)) errors.push(required(field, `must be specified when patchType is ${patchType}`));
  else validateExpression(errors, body, { at: field, names, resultTypes: [kind.result] });
}

export const validateMutatingBinding = byRules(rules.binding, MATCHING);
export const validateValidatingBinding = byRules([...rules.binding, ...rules.actions], MATCHING);
