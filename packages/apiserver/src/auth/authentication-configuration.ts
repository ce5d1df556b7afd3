/**
 * AuthenticationConfiguration of apiserver.config.k8s.io: issuers whose tokens are believed, and who may come without a
 * credential (apis/apiserver/validation, pkg/kubeapiserver/options).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  isObject,
  isTrueAt,
  type JsonObject,
  objectAt,
  objectsAt,
  textAt,
  textsAt,
} from '@coracle/apimachinery/types/read-value';
import { duplicate, forbidden, invalid, required, tooMany } from '@coracle/apimachinery/validation/field-errors';
import { type RuleCheck, validateByRules } from '../kinds/builtin/validation/table-rules.ts';
import tables from './authentication-configuration.json' with { type: 'json' };
import { mappedUser } from './jwt-mapping.ts';
import { type MappingFields, readJwtMapping } from './jwt-mapping-rules.ts';
import type { JwtIssuer } from './jwt-users.ts';
import { SIGNING_ALGORITHMS } from './oidc-keys.ts';
import { decodeConfiguration, type Fields, reportedFieldErrors } from './structured-configuration.ts';

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

type JwtFields = JsonObject & MappingFields;

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
  const document = decodeConfiguration(text, 'AuthenticationConfiguration', tables.fields as Fields);
  const jwt = objectsAt(document, 'jwt') as readonly JwtFields[];
  const errors: FieldError[] = [];
  const issuers = jwt.length > MAX_ISSUERS ? [] : jwt.map((one, at) => readJwt(one, `jwt[${at}]`, errors, options));
  if (jwt.length > MAX_ISSUERS) errors.push(tooMany('jwt', jwt.length, MAX_ISSUERS));
  else errors.push(...repeated(jwt));
  const anonymous = readAnonymous(document['anonymous'], errors);
  const { initial } = options;
  if (initial && !deepEqual(initial.anonymous ?? null, anonymous ?? null))
    errors.push(forbidden('anonymous', 'changed from initial configuration file'));
  const wrong = reportedFieldErrors(errors);
  if (wrong !== undefined) throw new Error(wrong);
  return { issuers, ...(anonymous && { anonymous }) };
}

function readAnonymous(fields: unknown, errors: FieldError[]): AnonymousRule | undefined {
  if (!isObject(fields)) return undefined;
  const enabled = isTrueAt(fields, 'enabled');
  const paths = objectsAt(fields, 'conditions').map((condition) => textAt(condition, 'path'));
  if (!enabled && paths.length > 0) {
    const detail = 'enabled should be set to true when conditions are defined';
    errors.push(invalid('anonymous.conditions', fields['conditions'], detail));
  }
  return { enabled, ...(paths.length > 0 && { paths }) };
}

function repeated(jwt: readonly JwtFields[]): FieldError[] {
  const errors: FieldError[] = [];
  const seen = { url: new Set<string>(), discoveryURL: new Set<string>() };
  for (const [at, one] of jwt.entries()) {
    for (const name of ['url', 'discoveryURL'] as const) {
      const value = textAt(one, 'issuer', name);
      if (value === '' && name === 'discoveryURL') continue;
      if (seen[name].has(value)) errors.push(duplicate(`jwt[${at}].issuer.${name}`, value));
      seen[name].add(value);
    }
  }
  return errors;
}

/** The issuer with its rules. What is wrong is in `errors`; the result counts only when nothing is. */
function readJwt(
  fields: JwtFields,
  field: string,
  errors: FieldError[],
  options: ReadAuthenticationOptions,
): JwtIssuer {
  const issuer = objectAt(fields, 'issuer');
  const checks = issuerChecks(options);
  validateByRules(errors, tables.issuer, { self: issuer, at: `${field}.issuer`, name: '', checks });
  const mapping = readJwtMapping(fields, field, errors);
  const [discoveryUrl, ca] = [textAt(issuer, 'discoveryURL'), textAt(issuer, 'certificateAuthority')];
  return {
    issuerUrl: textAt(issuer, 'url'),
    ...(discoveryUrl !== '' && { discoveryUrl }),
    ...(ca !== '' && { ca }),
    audiences: textsAt(issuer, 'audiences'),
    signingAlgorithms: SIGNING_ALGORITHMS,
    userOf: (claims) => mappedUser(mapping, claims),
  };
}

const withoutSlashes = (text: string): string => text.replace(/\/+$/, '');

const issuerChecks = ({ disallowedIssuers, caProblem }: ReadAuthenticationOptions): Record<string, RuleCheck> => ({
  ownUrl(errors, url, { at }) {
    if (typeof url === 'string' && url !== '') errors.push(...urlErrors(at, url, disallowedIssuers));
  },
  discovery(errors, url, { at, self }) {
    if (typeof url !== 'string' || url === '') return;
    const own = textAt(self, 'url');
    const isOwn = own !== '' && withoutSlashes(own) === withoutSlashes(url);
    if (isOwn) errors.push(invalid(at, url, 'discoveryURL must be different from URL'));
    errors.push(...urlErrors(at, url, []));
  },
  audiences(errors, value, { at }) {
    const audiences = textsAt(value);
    if (audiences.length === 0) errors.push(required(at, `at least one ${at} is required`));
    for (const [i, audience] of audiences.entries()) {
      if (audience === '') errors.push(required(`${at}[${i}]`));
      if (audiences.indexOf(audience) < i) errors.push(duplicate(`${at}[${i}]`, audience));
    }
  },
  authority(errors, pem, { at }) {
    const unfit = typeof pem === 'string' && pem !== '' ? caProblem(pem) : undefined;
    if (unfit !== undefined) errors.push(invalid(at, '<omitted>', unfit));
  },
});

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
