/**
 * AuthorizationConfiguration of apiserver.config.k8s.io: which authorizers are asked, in which order, and how webhooks
 * among them are called (apis/apiserver/validation, pkg/kubeapiserver/authorizer).
 */

import { goDuration, parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import {
  duplicate,
  invalid,
  required,
  tooMany,
  unsupportedInOrder,
} from '@coracle/apimachinery/validation/field-errors';
import { CelCompileError, type CelProgram } from '@coracle/cel/cel';
import { compileAccessCondition } from './access-conditions.ts';
import { AUTHORIZATION_MODES } from './authorization-modes.ts';
import { decodeConfiguration, FLAG, list, reportedFieldErrors, struct, TEXT } from './structured-configuration.ts';
import { aggregated } from './union.ts';
import type { AuthorizationWebhook } from './webhook-authorizer.ts';

/** A webhook whose kubeconfig has not been read. */
export interface ConfiguredWebhook extends Omit<AuthorizationWebhook, 'handler' | 'path' | 'query' | 'headers'> {
  readonly kubeConfigFile: string;
}

export type ConfiguredAuthorizer =
  | { readonly type: 'Node' | 'RBAC' | 'AlwaysAllow' | 'AlwaysDeny' }
  | { readonly type: 'Webhook'; readonly webhook: ConfiguredWebhook };

interface WebhookFields {
  authorizedTTL?: string;
  cacheAuthorizedRequests?: boolean;
  unauthorizedTTL?: string;
  cacheUnauthorizedRequests?: boolean;
  timeout?: string;
  subjectAccessReviewVersion?: string;
  matchConditionSubjectAccessReviewVersion?: string;
  failurePolicy?: string;
  connectionInfo?: { type?: string; kubeConfigFile?: string };
  matchConditions?: { expression?: string }[];
}

interface AuthorizerFields {
  type?: string;
  name?: string;
  webhook?: WebhookFields | null;
}

const FIELDS = {
  authorizers: list(
    struct({
      type: TEXT,
      name: TEXT,
      webhook: struct({
        authorizedTTL: TEXT,
        cacheAuthorizedRequests: FLAG,
        unauthorizedTTL: TEXT,
        cacheUnauthorizedRequests: FLAG,
        timeout: TEXT,
        subjectAccessReviewVersion: TEXT,
        matchConditionSubjectAccessReviewVersion: TEXT,
        failurePolicy: TEXT,
        connectionInfo: struct({ type: TEXT, kubeConfigFile: TEXT }),
        matchConditions: list(struct({ expression: TEXT })),
      }),
    }),
  ),
};

const AUTHORIZED_TTL = '5m';
const UNAUTHORIZED_TTL = '30s';
const MAX_TIMEOUT_MS = 30_000;
const MAX_CONDITIONS = 64;

export interface ReadAuthorizationOptions {
  /** What is wrong with a file of that name, in upstream's words; undefined = it is a regular file. */
  readonly fileProblem: (path: string) => string | undefined;
  /** Of a configuration that takes the place of another: the types other than Webhook that the first one had. */
  readonly initialTypes?: ReadonlySet<string>;
}

/** Reads and checks a file's text. Throws an Error of one line in upstream's words. */
export function readAuthorizationConfiguration(
  text: string,
  { fileProblem, initialTypes }: ReadAuthorizationOptions,
): readonly ConfiguredAuthorizer[] {
  let authorizers: AuthorizerFields[];
  try {
    const document = decodeConfiguration(text, 'AuthorizationConfiguration', FIELDS);
    authorizers = (document['authorizers'] ?? []) as AuthorizerFields[];
  } catch (error) {
    throw new Error(`failed to load AuthorizationConfiguration from file: ${(error as Error).message}`);
  }
  const errors: FieldError[] = [];
  const configured = checkAuthorizers(authorizers, errors, fileProblem);
  const wrong = reportedFieldErrors(errors) ?? aggregated(serverProblems(authorizers, initialTypes));
  if (wrong !== undefined) throw new Error(wrong);
  return configured;
}

/** What holds for a kube-apiserver beside what holds for every server. */
function serverProblems(authorizers: readonly AuthorizerFields[], initial: ReadonlySet<string> | undefined): string[] {
  const problems: string[] = [];
  const types = new Set<string>();
  for (const { type = '', name = '' } of authorizers) {
    if (type === 'Webhook') continue;
    types.add(type);
    const wanted = type.toLowerCase();
    if (name !== wanted) problems.push(`expected name ${wanted} for authorizer ${type} instead of ${name}`);
    if (type === 'ABAC' || (initial && !initial.has(type) && (type === 'Node' || type === 'RBAC')))
      problems.push(`authorizer type ${type} is not allowed if it was not enabled at initial server startup`);
  }
  const missing = [...(initial ?? [])].filter((type) => !types.has(type)).sort();
  if (missing.length > 0) problems.push(`missing required types: [${missing.join(' ')}]`);
  return problems;
}

function checkAuthorizers(
  authorizers: readonly AuthorizerFields[],
  errors: FieldError[],
  fileProblem: ReadAuthorizationOptions['fileProblem'],
): ConfiguredAuthorizer[] {
  if (authorizers.length === 0) errors.push(required('authorizers', 'at least one authorization mode must be defined'));
  const configured: ConfiguredAuthorizer[] = [];
  const types = new Set<string>();
  const names = new Set<string>();
  for (const [at, { type = '', name = '', webhook }] of authorizers.entries()) {
    const field = `authorizers[${at}]`;
    if (type === '') {
      errors.push(required(`${field}.type`));
      continue;
    }
    if (!AUTHORIZATION_MODES.some((mode) => mode === type)) {
      errors.push(unsupportedInOrder(`${field}.type`, type, AUTHORIZATION_MODES));
      continue;
    }
    if (types.has(type) && type !== 'Webhook') {
      errors.push(duplicate(`${field}.type`, type));
      continue;
    }
    types.add(type);
    errors.push(...nameErrors(`${field}.name`, name, names));
    names.add(name);
    if (type !== 'Webhook') {
      if (webhook) errors.push(invalid(`${field}.webhook`, 'non-null', 'may only be specified when type=Webhook'));
      configured.push({ type: type as 'Node' });
    } else if (!isJsonObject(webhook)) errors.push(required(`${field}.webhook`, 'required when type=Webhook'));
    else configured.push({ type, webhook: checkWebhook(webhook, { name, field, errors, fileProblem }) });
  }
  return configured;
}

function nameErrors(field: string, name: string, taken: ReadonlySet<string>): FieldError[] {
  if (name === '') return [required(field)];
  if (taken.has(name)) return [duplicate(field, name)];
  const wrong = checkSubdomain(name);
  return wrong.length === 0 ? [] : [invalid(field, name, `authorizer name is invalid: ${wrong.join(', ')}`)];
}

interface Checking extends Pick<ReadAuthorizationOptions, 'fileProblem'> {
  readonly name: string;
  readonly field: string;
  readonly errors: FieldError[];
}

/** The webhook with its defaults. What is wrong is in `errors`; the result counts only when nothing is. */
function checkWebhook(fields: WebhookFields, checking: Checking): ConfiguredWebhook {
  const { name, field, errors } = checking;
  const timeoutMs = duration(fields.timeout, `${field}.timeout`, errors);
  if (timeoutMs === 0) errors.push(required(`${field}.timeout`));
  else if (timeoutMs < 0 || timeoutMs > MAX_TIMEOUT_MS)
    errors.push(invalid(`${field}.timeout`, goDuration(timeoutMs), 'must be > 0s and <= 30s'));
  const ttl = (value: string | undefined, key: string, fallback: string): number => {
    const at = `${field}.${key}`;
    const ms = duration(value, at, errors) || duration(fallback, at, errors);
    if (ms < 0) errors.push(invalid(at, goDuration(ms), 'must be > 0s'));
    return ms;
  };
  const authorizedMs = ttl(fields.authorizedTTL, 'authorizedTTL', AUTHORIZED_TTL);
  const unauthorizedMs = ttl(fields.unauthorizedTTL, 'unauthorizedTTL', UNAUTHORIZED_TTL);
  const conditions = fields.matchConditions ?? [];
  const version = choice(fields.subjectAccessReviewVersion, `${field}.subjectAccessReviewVersion`, {
    among: ['v1', 'v1beta1'],
    errors,
  });
  const conditionVersion = fields.matchConditionSubjectAccessReviewVersion ?? '';
  const conditionField = `${field}.matchConditionSubjectAccessReviewVersion`;
  if (conditionVersion === '' && conditions.length > 0)
    errors.push(required(conditionField, 'required if match conditions are specified'));
  else if (conditionVersion !== '' && conditionVersion !== 'v1')
    errors.push(unsupportedInOrder(conditionField, conditionVersion, ['v1']));
  const failurePolicy = choice(fields.failurePolicy, `${field}.failurePolicy`, {
    among: ['NoOpinion', 'Deny'],
    errors,
  });
  return {
    name,
    timeoutMs,
    authorizedMs: fields.cacheAuthorizedRequests === false ? 0 : authorizedMs,
    unauthorizedMs: fields.cacheUnauthorizedRequests === false ? 0 : unauthorizedMs,
    version: version as ConfiguredWebhook['version'],
    failurePolicy: failurePolicy as ConfiguredWebhook['failurePolicy'],
    kubeConfigFile: checkConnection(fields.connectionInfo ?? {}, checking),
    conditions: checkConditions(conditions, checking),
  };
}

function choice(
  value: string | undefined,
  field: string,
  { among, errors }: { readonly among: readonly string[]; readonly errors: FieldError[] },
): string {
  if (!value) errors.push(required(field));
  else if (!among.includes(value)) errors.push(unsupportedInOrder(field, value, among));
  return value ?? '';
}

/** In milliseconds, 0 for none. */
function duration(text: string | undefined, field: string, errors: FieldError[]): number {
  if (!text) return 0;
  const read = parseGoDuration(text);
  if (read === undefined) errors.push(invalid(field, text, `time: invalid duration ${JSON.stringify(text)}`));
  return read ?? 0;
}

function checkConnection(
  { type = '', kubeConfigFile = '' }: NonNullable<WebhookFields['connectionInfo']>,
  { field: above, errors, fileProblem }: Checking,
): string {
  const field = `${above}.connectionInfo`;
  const file = `${field}.kubeConfigFile`;
  switch (type) {
    case '':
      errors.push(required(`${field}.type`));
      break;
    case 'InClusterConfig':
      if (kubeConfigFile !== '') errors.push(invalid(file, kubeConfigFile, 'can only be set when type=KubeConfigFile'));
      // It means the cluster whose API server this very process is.
      else errors.push(invalid(`${field}.type`, type, 'not allowed for an API server: it would ask itself'));
      break;
    case 'KubeConfigFile': {
      const wrong =
        kubeConfigFile === ''
          ? undefined
          : kubeConfigFile.startsWith('/')
            ? fileProblem(kubeConfigFile)
            : 'must be an absolute path';
      if (kubeConfigFile === '') errors.push(required(file));
      else if (wrong !== undefined) errors.push(invalid(file, kubeConfigFile, wrong));
      break;
    }
    default:
      errors.push(unsupportedInOrder(`${field}.type`, type, ['InClusterConfig', 'KubeConfigFile']));
  }
  return kubeConfigFile;
}

function checkConditions(
  conditions: NonNullable<WebhookFields['matchConditions']>,
  { field: above, errors }: Checking,
): CelProgram[] {
  const field = `${above}.matchConditions`;
  if (conditions.length > MAX_CONDITIONS) {
    errors.push(tooMany(field, conditions.length, MAX_CONDITIONS));
    return [];
  }
  const seen = new Set<string>();
  const programs: CelProgram[] = [];
  for (const [at, { expression = '' }] of conditions.entries()) {
    const where = `${field}[${at}].expression`;
    if (expression.trim() === '') errors.push(required(where));
    else if (seen.has(expression)) errors.push(duplicate(where, expression));
    else {
      try {
        programs.push(compileAccessCondition(expression));
      } catch (error) {
        if (!(error instanceof CelCompileError)) throw error;
        errors.push(invalid(where, expression, error.message));
      }
    }
    seen.add(expression);
  }
  return programs;
}
