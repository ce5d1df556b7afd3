/** Validation of ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings. */

import { checkDns1035Label, checkQualifiedName, checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
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
  addAll,
  duplicate,
  invalid,
  invalidEach,
  oneOf,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, type CelType, DYN, JSON_PATCH, listOf, MUTATION_OBJECT, NULL, STRING } from '@coracle/cel/cel';
import { expressionVariables, typeOfVariables } from '../policy-expressions.ts';
import rules from './admission-rules.json' with { type: 'json' };
import { checkExpression, MATCHING, validateMatchConditions } from './admission-rules.ts';
import { validateConditions } from './conditions.ts';
import { byRules, type RuleCheck, validateByRules } from './table-rules.ts';

const MAX_AUDIT_ANNOTATIONS = 20;
const MAX_VALUE_EXPRESSION_BYTES = 5 * 1024;

type Libraries = readonly 'mutation'[];

/** The names of a policy: with and without `authorizer`. */
interface Names {
  readonly params: CelType | undefined;
  /** Undefined where nothing declares `variables`. */
  readonly variables: CelType | undefined;
  readonly libraries: Libraries;
}

const full = ({ params, variables, libraries }: Names) => ({
  variables: expressionVariables({ params, authorizer: true, ...(variables && { variables }) }),
  libraries,
});

/** What both kinds of policies share; the names that their own expressions may use. */
function validateShared(spec: JsonObject, libraries: Libraries, errors: FieldError[]): Names {
  const params = isObject(valueAt(spec, 'paramKind')) ? DYN : undefined;
  validateByRules(errors, rules.policy, { self: spec, at: 'spec', name: '', checks: { ...MATCHING, groupVersion } });
  validateMatchConditions(errors, spec, { at: 'spec.matchConditions', params });
  const fields: Record<string, CelType> = {};
  const variables = objectsAt(spec, 'variables');
  for (const [i, variable] of variables.entries()) {
    // Each sees all before it.
    const at = `spec.variables[${i}]`;
    const name = textAt(variable, 'name');
    const expression = textAt(variable, 'expression');
    if (name.trim() === '') errors.push(required(`${at}.name`, 'name is not specified'));
    else if (!isIdentifier(name)) errors.push(invalid(`${at}.name`, name, 'name is not a valid CEL identifier'));
    else if (Object.hasOwn(fields, name)) errors.push(duplicate(`${at}.name`, name));
    if (expression.trim() === '') {
      errors.push(required(`${at}.expression`, 'expression is not specified'));
      continue;
    }
    // The types of patches are known to mutations only.
    const names = full({ params, variables: typeOfVariables(fields), libraries: [] });
    const checked = checkExpression(expression, `${at}.expression`, names);
    addAll(errors, checked.errors);
    fields[name] = checked.type ?? DYN;
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
  const names = validateShared(spec, [], errors);
  validateConditions(errors, objectAt(object, 'status'), 'status');
  const validations = objectsAt(spec, 'validations');
  const annotations = objectsAt(spec, 'auditAnnotations');
  if (validations.length === 0 && annotations.length === 0) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    return [...errors, required('spec.validations', detail), required('spec.auditAnnotations', detail)];
  }
  const validateOne = (one: JsonObject, i: number) => validationErrors(one, `spec.validations[${i}]`, names);
  validateEach(errors, validations, validateOne);
  if (annotations.length > MAX_AUDIT_ANNOTATIONS) {
    const detail = `must not have more than ${MAX_AUDIT_ANNOTATIONS} auditAnnotations`;
    errors.push(invalid('spec.auditAnnotations', annotations, detail));
  }
  const keys = new Set<string>();
  const validateAnnotation = (annotation: JsonObject, i: number): FieldError[] => {
    const at = `spec.auditAnnotations[${i}]`;
    const key = textAt(annotation, 'key');
    const found = annotationErrors(annotation, { at, policy: textAt(object, 'metadata', 'name'), names });
    if (keys.has(key)) found.push(duplicate(`${at}.key`, key));
    keys.add(key);
    return found;
  };
  validateEach(errors, annotations, validateAnnotation);
  return errors;
}

function validationErrors(validation: JsonObject, at: string, names: Names): FieldError[] {
  const errors: FieldError[] = [];
  const expression = textAt(validation, 'expression');
  if (expression.trim() === '') errors.push(required(`${at}.expression`, 'expression is not specified'));
  else {
    const how = { ...full(names), resultTypes: [BOOL] };
    errors.push(...checkExpression(expression, `${at}.expression`, how).errors);
  }
  const messageExpression = textAt(validation, 'messageExpression');
  if (messageExpression !== '' && messageExpression.trim() === '') {
    errors.push(invalid(`${at}.messageExpression`, messageExpression, 'must be non-empty if specified'));
  } else if (messageExpression !== '') {
    const { params, variables } = names;
    const how = {
      variables: expressionVariables({ params, authorizer: false, ...(variables && { variables }) }),
      resultTypes: [STRING],
    };
    errors.push(...checkExpression(messageExpression, `${at}.messageExpression`, how).errors);
  }
  validateByRules(errors, rules.validation, { self: validation, at, name: '' });
  return errors;
}

function annotationErrors(
  annotation: JsonObject,
  { at, policy, names }: { readonly at: string; readonly policy: string; readonly names: Names },
): FieldError[] {
  const key = textAt(annotation, 'key');
  const name = `${policy}/${key}`;
  const errors =
    policy === ''
      ? [invalid(`${at}.key`, key, 'requires metadata.name be non-empty')]
      : invalidEach(`${at}.key`, name, checkQualifiedName(name));
  const written = textAt(annotation, 'valueExpression');
  const expression = written.trim();
  if (expression === '') return [...errors, required(`${at}.valueExpression`, 'valueExpression is not specified')];
  if (new TextEncoder().encode(expression).length > MAX_VALUE_EXPRESSION_BYTES) {
    const detail = `must not exceed ${MAX_VALUE_EXPRESSION_BYTES} bytes in length`;
    return [...errors, required(`${at}.valueExpression`, detail)];
  }
  const how = { ...full(names), resultTypes: [STRING, NULL] };
  const checked = checkExpression(expression, `${at}.valueExpression`, how);
  // Compiled without the blanks around it, and shown with them.
  return [...errors, ...checked.errors.map((error) => ({ ...error, value: written }))];
}

export function validateMutatingPolicy(object: JsonObject): readonly FieldError[] {
  const spec = objectAt(object, 'spec');
  const errors: FieldError[] = [];
  const names = validateShared(spec, ['mutation'], errors);
  const mutations = objectsAt(spec, 'mutations');
  if (mutations.length === 0) errors.push(required('spec.mutations', 'mutations must contain at least one item'));
  const validateOne = (one: JsonObject, i: number) => mutationErrors(one, `spec.mutations[${i}]`, names);
  validateEach(errors, mutations, validateOne);
  if (textAt(spec, 'reinvocationPolicy') === '') errors.push(required('spec.reinvocationPolicy'));
  else {
    const at = { name: 'reinvocationPolicy', path: 'spec.reinvocationPolicy' };
    errors.push(...oneOf(spec, at, ['IfNeeded', 'Never']));
  }
  return errors;
}

const PATCH_TYPES = [
  { type: 'ApplyConfiguration', field: 'applyConfiguration', other: 'jsonPatch', result: MUTATION_OBJECT },
  { type: 'JSONPatch', field: 'jsonPatch', other: 'applyConfiguration', result: listOf(JSON_PATCH) },
] as const;

function mutationErrors(mutation: JsonObject, at: string, names: Names): FieldError[] {
  const patchType = textAt(mutation, 'patchType');
  if (patchType === '') return [required(`${at}.patchType`)];
  const kind = PATCH_TYPES.find(({ type }) => type === patchType);
  if (!kind) {
    const types = PATCH_TYPES.map(({ type }) => type);
    return [unsupported(`${at}.patchType`, patchType, types)];
  }
  const errors: FieldError[] = [];
  if (valueAt(mutation, kind.other) !== undefined) {
    const detail = `must not be specified when patchType is ${patchType}`;
    errors.push(invalid(`${at}.${kind.other}`, `{${kind.other}}`, detail));
  }
  const body = valueAt(mutation, kind.field);
  if (!isObject(body)) {
    return [...errors, required(`${at}.${kind.field}`, `must be specified when patchType is ${patchType}`)];
  }
  const field = `${at}.${kind.field}.expression`;
  const expression = textAt(body, 'expression');
  if (expression.trim() === '') return [...errors, required(field, 'expression is not specified')];
  const how = { ...full(names), resultTypes: [kind.result] };
  return [...errors, ...checkExpression(expression, field, how).errors];
}

export const validateMutatingBinding = byRules(rules.binding, { checks: MATCHING });
export const validateValidatingBinding = byRules([...rules.binding, ...rules.actions], { checks: MATCHING });
