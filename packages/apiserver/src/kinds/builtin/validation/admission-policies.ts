/** Validation of ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings. */

import {
  checkDns1035Label,
  checkPathSegment,
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
  addAll,
  duplicate,
  faults,
  forbidden,
  invalid,
  oneOf,
  required,
  unsupported,
  validateEach,
} from '@coracle/apimachinery/validation/field-errors';
import { BOOL, type CelType, DYN, JSON_PATCH, listOf, MUTATION_OBJECT, NULL, STRING } from '@coracle/cel/cel';
import { expressionVariables, typeOfVariables } from '../policy-expressions.ts';
import {
  checkExpression,
  validateMatchConditions,
  validateMatchResources,
  validateSelectorField,
} from './admission-rules.ts';
import { validateConditions } from './conditions.ts';
import bindingRules from './policy-binding-rules.json' with { type: 'json' };
import { validateByRules } from './table-rules.ts';

const MAX_AUDIT_ANNOTATIONS = 20;
const MAX_VALUE_EXPRESSION_BYTES = 5 * 1024;
/** Without `Unauthorized`, though the descriptions name it. */
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

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
  errors.push(
    ...oneOf(spec, { name: 'failurePolicy', path: 'spec.failurePolicy' }, ['Fail', 'Ignore']),
    ...paramKindErrors(valueAt(spec, 'paramKind')),
  );
  const constraints = valueAt(spec, 'matchConstraints');
  if (!isObject(constraints)) errors.push(required('spec.matchConstraints'));
  else {
    validateMatchResources(errors, constraints, 'spec.matchConstraints');
    if (objectsAt(constraints, 'resourceRules').length === 0) {
      errors.push(required('spec.matchConstraints.resourceRules'));
    }
  }
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

function paramKindErrors(kind: unknown): FieldError[] {
  if (!isObject(kind)) return [];
  const errors: FieldError[] = [];
  const at = 'spec.paramKind';
  const apiVersion = textAt(kind, 'apiVersion');
  if (apiVersion === '') errors.push(required(`${at}.apiVersion`));
  else addAll(errors, groupVersionErrors(apiVersion, `${at}.apiVersion`));
  const name = textAt(kind, 'kind');
  if (name === '') errors.push(required(`${at}.kind`));
  else {
    const problems = checkDns1035Label(name.toLowerCase());
    if (problems.length > 0) {
      const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
      errors.push(invalid(`${at}.kind`, name, detail));
    }
  }
  return errors;
}

/** Upstream shows the part that is wrong, and the whole only where a part is missing. */
function groupVersionErrors(apiVersion: string, at: string): FieldError[] {
  const parts = apiVersion === '/' ? [''] : apiVersion.split('/');
  if (parts.length > 2) return [invalid(at, apiVersion, `unexpected GroupVersion string: ${apiVersion}`)];
  const [group, version] = parts.length === 2 ? (parts as [string, string]) : ['', parts[0]!];
  const errors: FieldError[] = [];
  const groupProblems = group === '' ? [] : checkSubdomain(group);
  if (groupProblems.length > 0) errors.push(invalid(at, group, groupProblems.join(',')));
  if (version === '') return [...errors, invalid(at, apiVersion, 'version must be specified')];
  const versionProblems = checkDns1035Label(version);
  if (versionProblems.length > 0) errors.push(invalid(at, version, versionProblems.join(',')));
  return errors;
}

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
  const message = textAt(validation, 'message');
  if (message !== '' && message.trim() === '') {
    errors.push(invalid(`${at}.message`, message, 'message must be non-empty if specified'));
  } else if (/[\n\r]/.test(message.trim())) {
    errors.push(invalid(`${at}.message`, message, 'message must not contain line breaks'));
  }
  return [...errors, ...oneOf(validation, { name: 'reason', path: `${at}.reason` }, REASONS)];
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
      : faults(`${at}.key`, name, checkQualifiedName(name));
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

function validateBinding(errors: FieldError[], object: JsonObject): void {
  const spec = objectAt(object, 'spec');
  const policyName = textAt(spec, 'policyName');
  if (policyName === '') errors.push(required('spec.policyName'));
  else {
    for (const detail of checkSubdomain(policyName)) errors.push(invalid('spec.policyName', policyName, detail));
  }
  validateParamRef(errors, valueAt(spec, 'paramRef'));
  // Upstream's own spelling of the path.
  validateMatchResources(errors, valueAt(spec, 'matchResources'), 'spec.matchResouces');
}

function validateParamRef(errors: FieldError[], ref: unknown): void {
  if (!isObject(ref)) return;
  const at = 'spec.paramRef';
  const name = textAt(ref, 'name');
  const selected = isObject(valueAt(ref, 'selector'));
  const both = name !== '' && selected;
  for (const detail of checkPathSegment(name)) errors.push(invalid(`${at}.name`, name, detail));
  if (both) errors.push(forbidden(`${at}.name`, 'name and selector are mutually exclusive'));
  validateSelectorField(errors, ref, { field: 'selector', at });
  if (both) errors.push(forbidden(`${at}.selector`, 'name and selector are mutually exclusive'));
  if (name === '' && !selected) errors.push(required(at, 'one of name or selector must be specified'));
  if (textAt(ref, 'parameterNotFoundAction') === '') errors.push(required(`${at}.parameterNotFoundAction`));
  else {
    const field = { name: 'parameterNotFoundAction', path: `${at}.parameterNotFoundAction` };
    errors.push(...oneOf(ref, field, ['Allow', 'Deny']));
  }
}

export function validateMutatingBinding(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateBinding(errors, object);
  return errors;
}

export function validateValidatingBinding(object: JsonObject): readonly FieldError[] {
  const errors: FieldError[] = [];
  validateBinding(errors, object);
  validateByRules(errors, bindingRules, { self: objectAt(object, 'spec'), at: 'spec', name: '' });
  return errors;
}
