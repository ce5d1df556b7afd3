/**
 * AuthenticationConfiguration of apiserver.config.k8s.io: issuers whose tokens are believed, and who may come without a
 * credential (apis/apiserver/validation, pkg/kubeapiserver/options).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { duplicate, forbidden, invalid, required, tooMany } from '@coracle/apimachinery/validation/field-errors';
import { mappedUser } from './jwt-mapping.ts';
import { type MappingFields, readJwtMapping } from './jwt-mapping-rules.ts';
import type { JwtIssuer } from './jwt-users.ts';
import { SIGNING_ALGORITHMS } from './oidc-keys.ts';
import {
  decodeConfiguration,
  FLAG,
  list,
  reportedFieldErrors,
  struct,
  TEXT,
  TEXTS,
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

interface JwtFields extends MappingFields {
  issuer?: {
    url?: string;
    discoveryURL?: string;
    certificateAuthority?: string;
    audiences?: string[];
    audienceMatchPolicy?: string;
    egressSelectorType?: string;
  };
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
    errors.push(forbidden('anonymous', 'changed from initial configuration file'));
  const wrong = reportedFieldErrors(errors);
  if (wrong !== undefined) throw new Error(wrong);
  return { issuers, ...(anonymous && { anonymous }) };
}

function checkAnonymous(fields: AnonymousFields | null | undefined, errors: FieldError[]): AnonymousRule | undefined {
  if (fields === undefined || fields === null) return undefined;
  const { enabled = false, conditions = [] } = fields;
  if (!enabled && conditions.length > 0)
    errors.push(
      invalid('anonymous.conditions', conditions, 'enabled should be set to true when conditions are defined'),
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
  const mapping = readJwtMapping(fields, field, errors);
  return {
    issuerUrl: url,
    ...(discoveryURL !== '' && { discoveryUrl: discoveryURL }),
    ...(certificateAuthority !== '' && { ca: certificateAuthority }),
    audiences,
    signingAlgorithms: SIGNING_ALGORITHMS,
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
      errors.push(invalid(`${field}.discoveryURL`, discoveryURL, 'discoveryURL must be different from URL'));
    errors.push(...urlErrors(`${field}.discoveryURL`, discoveryURL, []));
  }
  errors.push(...audienceErrors(issuer, field));
  const unfit = certificateAuthority === '' ? undefined : caProblem(certificateAuthority);
  if (unfit !== undefined) errors.push(invalid(`${field}.certificateAuthority`, '<omitted>', unfit));
  if (egressSelectorType !== '' && egressSelectorType !== 'controlplane' && egressSelectorType !== 'cluster')
    errors.push(
      invalid(
        `${field}.egressSelectorType`,
        egressSelectorType,
        'egress selector must be either controlplane or cluster',
      ),
    );
  return errors;
}

function urlErrors(field: string, text: string, disallowed: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = (detail: string): unknown => errors.push(invalid(field, text, detail));
  if (disallowed.includes(text)) wrong(`URL must not overlap with disallowed issuers: [${disallowed.join(' ')}]`);
  const url = URL.parse(text);
  // What has no scheme parses upstream, and is reported its scheme.
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
    errors.push(invalid(policy, audienceMatchPolicy, 'audienceMatchPolicy must be MatchAny for multiple audiences'));
  if (audiences.length === 1 && audienceMatchPolicy !== '' && !any)
    errors.push(
      invalid(policy, audienceMatchPolicy, 'audienceMatchPolicy must be empty or MatchAny for single audience'),
    );
  return errors;
}
