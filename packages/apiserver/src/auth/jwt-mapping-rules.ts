/**
 * How an AuthenticationConfiguration says what the claims of a token must hold and whom they make
 * (`claimValidationRules`, `claimMappings`, `userValidationRules`; apis/apiserver/validation).
 */

import { checkDomainPath } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { duplicate, invalid, required } from '@coracle/apimachinery/validation/field-errors';
import { CelCompileError, type CelProgram } from '@coracle/cel/cel';
import {
  type ClaimSource,
  type Condition,
  compileClaimsExpression,
  compileUserExpression,
  type JwtMapping,
} from './jwt-mapping.ts';

interface ClaimOrExpression {
  claim?: string;
  prefix?: string | null;
  expression?: string;
}

/** The part of a JWT authenticator that is about claims, decoded and not yet validated. */
export interface MappingFields {
  claimValidationRules?: { claim?: string; requiredValue?: string; expression?: string; message?: string }[];
  claimMappings?: {
    username?: ClaimOrExpression;
    groups?: ClaimOrExpression;
    uid?: ClaimOrExpression;
    extra?: { key?: string; valueExpression?: string }[];
  };
  userValidationRules?: { expression?: string; message?: string }[];
}

/** The rules and mappings below `field`. What is wrong is added to `errors`; the result counts only when nothing is. */
export function readJwtMapping(fields: MappingFields, field: string, errors: FieldError[]): JwtMapping {
  const rules = checkClaimRules(fields.claimValidationRules ?? [], `${field}.claimValidationRules`, errors);
  const mappings = checkMappings(fields.claimMappings ?? {}, {
    field: `${field}.claimMappings`,
    errors,
    rules: rules.claimConditions,
  });
  const userConditions = checkUserRules(fields.userValidationRules ?? [], `${field}.userValidationRules`, errors);
  return { ...rules, ...mappings, userConditions };
}

interface Place {
  readonly field: string;
  readonly errors: FieldError[];
}

/** Compiles; what does not compile is reported at `field`. */
function compiled(
  make: (expression: string) => CelProgram,
  expression: string,
  { field, errors }: Place,
): CelProgram | undefined {
  try {
    return make(expression);
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const detail = error.reason === 'result' ? error.message.replace(/ but got .*$/s, '') : error.message;
    errors.push(invalid(field, expression, detail));
    return undefined;
  }
}

/** The same of an expression that has to be there, and only once among those of `seen`. */
function compiledOnce(
  make: (expression: string) => CelProgram,
  expression: string,
  { field, errors, seen }: Place & { readonly seen: Set<string> },
): CelProgram | undefined {
  if (expression === '') errors.push(required(field));
  else if (seen.has(expression)) errors.push(duplicate(field, expression));
  else {
    seen.add(expression);
    return compiled(make, expression, { field, errors });
  }
  return undefined;
}

const ofBool = (expression: string): CelProgram => compileClaimsExpression(expression, 'bool');
const ofAny = (expression: string): CelProgram => compileClaimsExpression(expression, 'any');

function checkClaimRules(
  rules: NonNullable<MappingFields['claimValidationRules']>,
  above: string,
  errors: FieldError[],
): Pick<JwtMapping, 'requiredClaims' | 'claimConditions'> {
  const requiredClaims: { claim: string; value: string }[] = [];
  const claimConditions: Condition[] = [];
  const seen = { claim: new Set<string>(), expression: new Set<string>() };
  for (const [at, { claim = '', requiredValue = '', expression = '', message = '' }] of rules.entries()) {
    const field = `${above}[${at}]`;
    if (claim !== '' && expression !== '') errors.push(invalid(field, claim, "claim and expression can't both be set"));
    else if (claim === '' && expression === '') errors.push(required(field, 'claim or expression is required'));
    else if (claim !== '') {
      if (message !== '') errors.push(invalid(`${field}.message`, message, 'may not be specified when claim is set'));
      if (seen.claim.has(claim)) errors.push(duplicate(`${field}.claim`, claim));
      seen.claim.add(claim);
      requiredClaims.push({ claim, value: requiredValue });
    } else {
      if (requiredValue !== '')
        errors.push(invalid(`${field}.requiredValue`, requiredValue, 'may not be specified when expression is set'));
      const place = { field: `${field}.expression`, errors, seen: seen.expression };
      const program = compiledOnce(ofBool, expression, place);
      if (program) claimConditions.push({ expression: program, message });
    }
  }
  return { requiredClaims, claimConditions };
}

function checkMappings(
  { username = {}, groups = {}, uid = {}, extra = [] }: NonNullable<MappingFields['claimMappings']>,
  context: { readonly field: string; readonly errors: FieldError[]; readonly rules: readonly Condition[] },
): Pick<JwtMapping, 'username' | 'groups' | 'uid' | 'extra'> {
  const { field, errors } = context;
  const name = checkSource(username, { field: `${field}.username`, errors, isRequired: true });
  const member = checkSource(groups, { field: `${field}.groups`, errors });
  // A uid has no prefix.
  const id = checkSource({ ...uid, ...(uid.claim && { prefix: '' }) }, { field: `${field}.uid`, errors });
  const more = checkExtra(extra, { field: `${field}.extra`, errors });
  const naming = name && 'expression' in name ? [name.expression] : [];
  const looking = [...naming, ...more.map((one) => one.expression), ...context.rules.map((one) => one.expression)];
  if (
    naming.some((one) => one.selects('claims', 'email')) &&
    !looking.some((one) => one.selects('claims', 'email_verified'))
  )
    errors.push(
      invalid(
        `${field}.username.expression`,
        username.expression,
        'claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression',
      ),
    );
  return {
    username: name ?? { claim: '', prefix: '' },
    ...(member && { groups: member }),
    ...(id && { uid: id }),
    extra: more,
  };
}

function checkSource(
  { claim = '', prefix, expression = '' }: ClaimOrExpression,
  { field, errors, isRequired = false }: Place & { readonly isRequired?: boolean },
): ClaimSource | undefined {
  if (claim !== '' && expression !== '') {
    errors.push(invalid(field, '', "claim and expression can't both be set"));
  } else if (expression !== '') {
    if (prefix !== undefined && prefix !== null)
      errors.push(invalid(`${field}.prefix`, prefix, 'may not be specified when expression is set'));
    const program = compiled(ofAny, expression, { field: `${field}.expression`, errors });
    return program && { expression: program };
  } else if (claim !== '') {
    if (prefix === undefined || prefix === null)
      errors.push(
        required(
          `${field}.prefix`,
          'prefix is required when claim is set. It can be set to an empty string to disable prefixing',
        ),
      );
    return { claim, prefix: prefix ?? '' };
  } else if (isRequired) errors.push(required(field, 'claim or expression is required'));
  return undefined;
}

const RESERVED = /(?:^|\.)(?:kubernetes|k8s)\.io$/;

function checkExtra(
  extra: readonly { readonly key?: string; readonly valueExpression?: string }[],
  { field: above, errors }: Place,
): { key: string; expression: CelProgram }[] {
  const found: { key: string; expression: CelProgram }[] = [];
  const seen = new Set<string>();
  for (const [at, { key = '', valueExpression = '' }] of extra.entries()) {
    const [field, where] = [`${above}[${at}].key`, `${above}[${at}].valueExpression`];
    if (key === '') errors.push(required(field));
    else for (const wrong of checkDomainPath(key)) errors.push(invalid(field, key, wrong));
    if (key !== key.toLowerCase()) errors.push(invalid(field, key, 'must be lowercase'));
    const [domain = '', ...path] = key.split('/');
    if (path.length > 0 && RESERVED.test(domain))
      errors.push(invalid(field, key, 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'));
    if (seen.has(key)) {
      errors.push(duplicate(field, key));
      continue;
    }
    seen.add(key);
    const expression = compiledOnce(ofAny, valueExpression, { field: where, errors, seen: new Set() });
    if (expression) found.push({ key, expression });
  }
  return found;
}

function checkUserRules(
  rules: readonly { readonly expression?: string; readonly message?: string }[],
  above: string,
  errors: FieldError[],
): Condition[] {
  const seen = new Set<string>();
  return rules.flatMap(({ expression = '', message = '' }, at) => {
    const place = { field: `${above}[${at}].expression`, errors, seen };
    const program = compiledOnce(compileUserExpression, expression, place);
    return program ? [{ expression: program, message }] : [];
  });
}
