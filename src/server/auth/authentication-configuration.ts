/**
 * AuthenticationConfiguration of apiserver.config.k8s.io: issuers whose tokens are believed, and who may come without a
 * credential (apis/apiserver/validation, pkg/kubeapiserver/options).
 */
import { CelCompileError, type CelProgram } from '../../api/cel/cel.ts';
import { deepEqual } from '../../api/meta/deep-equal.ts';
import { checkDomainPath } from '../../api/meta/name-rules.ts';
import type { FieldError } from '../../api/meta/status.ts';
import {
  type ClaimSource,
  type Condition,
  compileClaimsExpression,
  compileUserExpression,
  type JwtMapping,
  mappedUser,
} from './jwt-mapping.ts';
import type { JwtIssuer } from './jwt-users.ts';
import { SIGNING_ALGORITHMS } from './oidc-keys.ts';
import {
  decodeConfiguration,
  duplicate,
  FLAG,
  invalidValue,
  list,
  required,
  struct,
  TEXT,
  TEXTS,
  toldFieldErrors,
  tooMany,
} from './structured-configuration.ts';

/** Who may come without a credential. */
export interface AnonymousRule {
  readonly enabled: boolean;
  /** Only to these; everywhere when absent. */
  readonly paths?: readonly string[];
}

export interface AuthenticationSetup {
  readonly issuers: readonly JwtIssuer[];
  /** Absent when the file says nothing of it. */
  readonly anonymous?: AnonymousRule;
}

interface ClaimOrExpression {
  claim?: string;
  prefix?: string | null;
  expression?: string;
}

interface JwtFields {
  issuer?: {
    url?: string;
    discoveryURL?: string;
    certificateAuthority?: string;
    audiences?: string[];
    audienceMatchPolicy?: string;
    egressSelectorType?: string;
  };
  claimValidationRules?: { claim?: string; requiredValue?: string; expression?: string; message?: string }[];
  claimMappings?: {
    username?: ClaimOrExpression;
    groups?: ClaimOrExpression;
    uid?: ClaimOrExpression;
    extra?: { key?: string; valueExpression?: string }[];
  };
  userValidationRules?: { expression?: string; message?: string }[];
}

interface AnonymousFields {
  enabled?: boolean;
  conditions?: { path?: string }[];
}

const PREFIXED = struct({ claim: TEXT, prefix: TEXT, expression: TEXT });
const FIELDS = {
  jwt: list(
    struct({
      issuer: struct({
        url: TEXT,
        discoveryURL: TEXT,
        certificateAuthority: TEXT,
        audiences: TEXTS,
        audienceMatchPolicy: TEXT,
        egressSelectorType: TEXT,
      }),
      claimValidationRules: list(struct({ claim: TEXT, requiredValue: TEXT, expression: TEXT, message: TEXT })),
      claimMappings: struct({
        username: PREFIXED,
        groups: PREFIXED,
        uid: struct({ claim: TEXT, expression: TEXT }),
        extra: list(struct({ key: TEXT, valueExpression: TEXT })),
      }),
      userValidationRules: list(struct({ expression: TEXT, message: TEXT })),
    }),
  ),
  anonymous: struct({ enabled: FLAG, conditions: list(struct({ path: TEXT })) }),
};

const MAX_ISSUERS = 64;

export interface ReadAuthenticationOptions {
  /** Issuers that are this server itself. */
  readonly disallowedIssuers: readonly string[];
  /** What is wrong with PEM certificates; undefined when they parse. */
  readonly caProblem: (pem: string) => string | undefined;
  /** Of a configuration that takes the place of another. */
  readonly initial?: AuthenticationSetup;
}

/** Reads and checks a file's text. Throws an Error of one line in upstream's words. */
export function readAuthenticationConfiguration(text: string, options: ReadAuthenticationOptions): AuthenticationSetup {
  if (text === '') throw new Error('empty config data');
  const document = decodeConfiguration(text, 'AuthenticationConfiguration', FIELDS);
  const jwt = (document['jwt'] ?? []) as JwtFields[];
  const errors: FieldError[] = [];
  const issuers = jwt.length > MAX_ISSUERS ? [] : jwt.map((one, at) => checkJwt(one, `jwt[${at}]`, errors, options));
  if (jwt.length > MAX_ISSUERS) errors.push(tooMany('jwt', jwt.length, MAX_ISSUERS));
  else errors.push(...repeated(jwt));
  const anonymous = checkAnonymous(document['anonymous'] as AnonymousFields | null | undefined, errors);
  const { initial } = options;
  if (initial && !deepEqual(initial.anonymous ?? null, anonymous ?? null))
    errors.push({
      type: 'FieldValueForbidden',
      field: 'anonymous',
      detail: 'changed from initial configuration file',
    });
  const wrong = toldFieldErrors(errors);
  if (wrong !== undefined) throw new Error(wrong);
  return { issuers, ...(anonymous && { anonymous }) };
}

function checkAnonymous(fields: AnonymousFields | null | undefined, errors: FieldError[]): AnonymousRule | undefined {
  if (fields === undefined || fields === null) return undefined;
  const { enabled = false, conditions = [] } = fields;
  if (!enabled && conditions.length > 0)
    errors.push(
      invalidValue('anonymous.conditions', conditions, 'enabled should be set to true when conditions are defined'),
    );
  return { enabled, ...(conditions.length > 0 && { paths: conditions.map(({ path = '' }) => path) }) };
}

function repeated(jwt: readonly JwtFields[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = { url: new Set<string>(), discoveryURL: new Set<string>() };
  for (const [at, { issuer = {} }] of jwt.entries()) {
    for (const name of ['url', 'discoveryURL'] as const) {
      const value = issuer[name] ?? '';
      if (value === '' && name === 'discoveryURL') continue;
      if (seen[name].has(value)) errors.push(duplicate(`jwt[${at}].issuer.${name}`, value));
      seen[name].add(value);
    }
  }
  return errors;
}

/** The issuer with its rules. What is wrong is in `errors`; the result counts only when nothing is. */
function checkJwt(
  fields: JwtFields,
  field: string,
  errors: FieldError[],
  options: ReadAuthenticationOptions,
): JwtIssuer {
  const { issuer = {} } = fields;
  const { url = '', discoveryURL = '', certificateAuthority = '', audiences = [] } = issuer;
  errors.push(...issuerErrors(issuer, `${field}.issuer`, options));
  const rules = checkClaimRules(fields.claimValidationRules ?? [], `${field}.claimValidationRules`, errors);
  const mappings = checkMappings(fields.claimMappings ?? {}, {
    field: `${field}.claimMappings`,
    errors,
    rules: rules.claimConditions,
  });
  const userConditions = checkUserRules(fields.userValidationRules ?? [], `${field}.userValidationRules`, errors);
  const mapping: JwtMapping = { ...rules, ...mappings, userConditions };
  return {
    issuerUrl: url,
    ...(discoveryURL !== '' && { discoveryUrl: discoveryURL }),
    ...(certificateAuthority !== '' && { ca: certificateAuthority }),
    audiences,
    signingAlgorithms: [...SIGNING_ALGORITHMS.keys()],
    ...(mapping.groups && 'claim' in mapping.groups && { distributedClaim: mapping.groups.claim }),
    userOf: (claims) => mappedUser(mapping, claims),
  };
}

function issuerErrors(
  issuer: NonNullable<JwtFields['issuer']>,
  field: string,
  { disallowedIssuers, caProblem }: ReadAuthenticationOptions,
): FieldError[] {
  const { url = '', discoveryURL = '', certificateAuthority = '', egressSelectorType = '' } = issuer;
  const errors = url === '' ? [required(`${field}.url`)] : urlErrors(`${field}.url`, url, disallowedIssuers);
  if (discoveryURL !== '') {
    const trimmed = (text: string): string => text.replace(/\/+$/, '');
    if (url !== '' && trimmed(url) === trimmed(discoveryURL))
      errors.push(invalidValue(`${field}.discoveryURL`, discoveryURL, 'discoveryURL must be different from URL'));
    errors.push(...urlErrors(`${field}.discoveryURL`, discoveryURL, []));
  }
  errors.push(...audienceErrors(issuer, field));
  const unfit = certificateAuthority === '' ? undefined : caProblem(certificateAuthority);
  if (unfit !== undefined) errors.push(invalidValue(`${field}.certificateAuthority`, '<omitted>', unfit));
  if (egressSelectorType !== '' && egressSelectorType !== 'controlplane' && egressSelectorType !== 'cluster')
    errors.push(
      invalidValue(
        `${field}.egressSelectorType`,
        egressSelectorType,
        'egress selector must be either controlplane or cluster',
      ),
    );
  return errors;
}

function urlErrors(field: string, text: string, disallowed: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = (detail: string): unknown => errors.push(invalidValue(field, text, detail));
  if (disallowed.includes(text)) wrong(`URL must not overlap with disallowed issuers: [${disallowed.join(' ')}]`);
  const url = URL.parse(text);
  // What has no scheme parses upstream, and is told of its scheme.
  if (url === null && /^[a-z][a-z0-9+.-]*:/i.test(text)) wrong(`parse ${JSON.stringify(text)}: invalid URL`);
  else {
    if (url?.protocol !== 'https:') wrong('URL scheme must be https');
    if (url && (url.username !== '' || url.password !== '')) wrong('URL must not contain a username or password');
    if (url && url.search !== '') wrong('URL must not contain a query');
    if (url && url.hash !== '') wrong('URL must not contain a fragment');
  }
  return errors;
}

function audienceErrors(
  { audiences = [], audienceMatchPolicy = '' }: NonNullable<JwtFields['issuer']>,
  above: string,
): FieldError[] {
  const field = `${above}.audiences`;
  const policy = `${above}.audienceMatchPolicy`;
  if (audiences.length === 0) return [required(field, `at least one ${field} is required`)];
  const errors: FieldError[] = [];
  for (const [at, audience] of audiences.entries()) {
    if (audience === '') errors.push(required(`${field}[${at}]`));
    if (audiences.indexOf(audience) < at) errors.push(duplicate(`${field}[${at}]`, audience));
  }
  const any = audienceMatchPolicy === 'MatchAny';
  if (audiences.length > 1 && !any)
    errors.push(
      invalidValue(policy, audienceMatchPolicy, 'audienceMatchPolicy must be MatchAny for multiple audiences'),
    );
  if (audiences.length === 1 && audienceMatchPolicy !== '' && !any)
    errors.push(
      invalidValue(policy, audienceMatchPolicy, 'audienceMatchPolicy must be empty or MatchAny for single audience'),
    );
  return errors;
}

/** Compiles; what does not compile is told at `field`. */
function compiled(
  make: (expression: string) => CelProgram,
  expression: string,
  { field, errors }: { readonly field: string; readonly errors: FieldError[] },
): CelProgram | undefined {
  try {
    return make(expression);
  } catch (error) {
    if (!(error instanceof CelCompileError)) throw error;
    const detail = error.reason === 'result' ? error.message.replace(/ but got .*$/s, '') : error.message;
    errors.push(invalidValue(field, expression, detail));
    return undefined;
  }
}

const ofBool = (expression: string): CelProgram => compileClaimsExpression(expression, 'bool');
const ofAny = (expression: string): CelProgram => compileClaimsExpression(expression, 'any');

function checkClaimRules(
  rules: NonNullable<JwtFields['claimValidationRules']>,
  above: string,
  errors: FieldError[],
): Pick<JwtMapping, 'requiredClaims' | 'claimConditions'> {
  const requiredClaims: { claim: string; value: string }[] = [];
  const claimConditions: Condition[] = [];
  const seen = { claim: new Set<string>(), expression: new Set<string>() };
  for (const [at, { claim = '', requiredValue = '', expression = '', message = '' }] of rules.entries()) {
    const field = `${above}[${at}]`;
    if (claim !== '' && expression !== '')
      errors.push(invalidValue(field, claim, "claim and expression can't both be set"));
    else if (claim === '' && expression === '') errors.push(required(field, 'claim or expression is required'));
    else if (claim !== '') {
      if (message !== '')
        errors.push(invalidValue(`${field}.message`, message, 'may not be specified when claim is set'));
      if (seen.claim.has(claim)) errors.push(duplicate(`${field}.claim`, claim));
      seen.claim.add(claim);
      requiredClaims.push({ claim, value: requiredValue });
    } else {
      if (requiredValue !== '')
        errors.push(
          invalidValue(`${field}.requiredValue`, requiredValue, 'may not be specified when expression is set'),
        );
      if (seen.expression.has(expression)) {
        errors.push(duplicate(`${field}.expression`, expression));
        continue;
      }
      seen.expression.add(expression);
      const program = compiled(ofBool, expression, { field: `${field}.expression`, errors });
      if (program) claimConditions.push({ expression: program, message });
    }
  }
  return { requiredClaims, claimConditions };
}

function checkMappings(
  { username = {}, groups = {}, uid = {}, extra = [] }: NonNullable<JwtFields['claimMappings']>,
  context: { readonly field: string; readonly errors: FieldError[]; readonly rules: readonly Condition[] },
): Pick<JwtMapping, 'username' | 'groups' | 'uid' | 'extra'> {
  const { field, errors } = context;
  const name = checkSource(username, { field: `${field}.username`, errors, isRequired: true });
  const member = checkSource(groups, { field: `${field}.groups`, errors });
  const id = checkUid(uid, { field: `${field}.uid`, errors });
  const more = checkExtra(extra, { field: `${field}.extra`, errors });
  const naming = name && 'expression' in name ? [name.expression] : [];
  const looking = [...naming, ...more.map((one) => one.expression), ...context.rules.map((one) => one.expression)];
  if (
    naming.some((one) => one.selects('claims', 'email')) &&
    !looking.some((one) => one.selects('claims', 'email_verified'))
  )
    errors.push(
      invalidValue(
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

interface Place {
  readonly field: string;
  readonly errors: FieldError[];
}

function checkSource(
  { claim = '', prefix, expression = '' }: ClaimOrExpression,
  { field, errors, isRequired = false }: Place & { readonly isRequired?: boolean },
): ClaimSource | undefined {
  if (claim !== '' && expression !== '') {
    errors.push(invalidValue(field, '', "claim and expression can't both be set"));
  } else if (expression !== '') {
    if (prefix !== undefined && prefix !== null)
      errors.push(invalidValue(`${field}.prefix`, prefix, 'may not be specified when expression is set'));
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

function checkUid(
  { claim = '', expression = '' }: ClaimOrExpression,
  { field, errors }: Place,
): ClaimSource | undefined {
  if (claim !== '' && expression !== '') {
    errors.push(invalidValue(field, '', "claim and expression can't both be set"));
    return undefined;
  }
  if (claim !== '') return { claim, prefix: '' };
  if (expression === '') return undefined;
  const program = compiled(ofAny, expression, { field: `${field}.expression`, errors });
  return program && { expression: program };
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
    else for (const wrong of checkDomainPath(key)) errors.push(invalidValue(field, key, wrong));
    if (key !== key.toLowerCase()) errors.push(invalidValue(field, key, 'must be lowercase'));
    const [domain = '', ...path] = key.split('/');
    if (path.length > 0 && RESERVED.test(domain))
      errors.push(
        invalidValue(field, key, 'k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use'),
      );
    if (seen.has(key)) {
      errors.push(duplicate(field, key));
      continue;
    }
    seen.add(key);
    if (valueExpression === '') {
      errors.push(required(where));
      continue;
    }
    const expression = compiled(ofAny, valueExpression, { field: where, errors });
    if (expression) found.push({ key, expression });
  }
  return found;
}

function checkUserRules(
  rules: readonly { readonly expression?: string; readonly message?: string }[],
  above: string,
  errors: FieldError[],
): Condition[] {
  const found: Condition[] = [];
  const seen = new Set<string>();
  for (const [at, { expression = '', message = '' }] of rules.entries()) {
    const field = `${above}[${at}].expression`;
    if (expression === '') {
      errors.push(required(field));
      continue;
    }
    if (seen.has(expression)) {
      errors.push(duplicate(field, expression));
      continue;
    }
    seen.add(expression);
    const program = compiled(compileUserExpression, expression, { field, errors });
    if (program) found.push({ expression: program, message });
  }
  return found;
}
