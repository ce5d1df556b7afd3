/**
 * AuthorizationConfiguration of apiserver.config.k8s.io: which authorizers are asked, in which order, and how webhooks
 * among them are called (apis/apiserver/validation, pkg/kubeapiserver/authorizer).
 */

import { goDuration, parseGoDuration } from '@coracle/apimachinery/meta/go-duration';
import { checkSubdomain } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { duplicate, invalid, required, unsupportedInOrder } from '@coracle/apimachinery/validation/field-errors';
import { CelCompileError, type CelProgram } from '@coracle/cel/cel';
import { type RuleCheck, validateByRules } from '../kinds/builtin/validation/table-rules.ts';
import { compileAccessCondition } from './access-conditions.ts';
import tables from './authorization-configuration.json' with { type: 'json' };
import { AUTHORIZATION_MODES } from './authorization-modes.ts';
import { decodeConfiguration, type Fields, reportedFieldErrors } from './structured-configuration.ts';
import { aggregated } from './union.ts';
import type { AuthorizationWebhook } from './webhook-authorizer.ts';

/** A webhook whose kubeconfig has not been read. */
export interface ConfiguredWebhook extends Omit<AuthorizationWebhook, 'handler' | 'path' | 'query' | 'headers'> {
  readonly kubeConfigFile: string;
}

export type ConfiguredAuthorizer =
  | { readonly type: 'Node' | 'RBAC' | 'AlwaysAllow' | 'AlwaysDeny' }
  | { readonly type: 'Webhook'; readonly webhook: ConfiguredWebhook };

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
  let authorizers: readonly JsonObject[];
  try {
    const { fields } = tables;
    authorizers = objectsAt(decodeConfiguration(text, 'AuthorizationConfiguration', fields as Fields), 'authorizers');
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
function serverProblems(authorizers: readonly JsonObject[], initial: ReadonlySet<string> | undefined): string[] {
  const problems: string[] = [];
  const types = new Set<string>();
  for (const authorizer of authorizers) {
    const [type, name] = [textAt(authorizer, 'type'), textAt(authorizer, 'name')];
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
  authorizers: readonly JsonObject[],
  errors: FieldError[],
  fileProblem: ReadAuthorizationOptions['fileProblem'],
): ConfiguredAuthorizer[] {
  if (authorizers.length === 0) errors.push(required('authorizers', 'at least one authorization mode must be defined'));
  const configured: ConfiguredAuthorizer[] = [];
  const types = new Set<string>();
  const names = new Set<string>();
  for (const [at, authorizer] of authorizers.entries()) {
    const field = `authorizers[${at}]`;
    const [type, name, webhook] = [textAt(authorizer, 'type'), textAt(authorizer, 'name'), authorizer['webhook']];
    const unfit = typeErrors(`${field}.type`, type, types);
    errors.push(...unfit);
    if (unfit.length > 0) continue;
    types.add(type);
    errors.push(...nameErrors(`${field}.name`, name, names));
    names.add(name);
    if (type !== 'Webhook') {
      if (webhook) errors.push(invalid(`${field}.webhook`, 'non-null', 'may only be specified when type=Webhook'));
      configured.push({ type: type as 'Node' });
    } else if (!isObject(webhook)) errors.push(required(`${field}.webhook`, 'required when type=Webhook'));
    else configured.push({ type, webhook: readWebhook(webhook, { name, field, errors, fileProblem }) });
  }
  return configured;
}

function typeErrors(field: string, type: string, taken: ReadonlySet<string>): FieldError[] {
  if (type === '') return [required(field)];
  if (!AUTHORIZATION_MODES.some((mode) => mode === type)) return [unsupportedInOrder(field, type, AUTHORIZATION_MODES)];
  return taken.has(type) && type !== 'Webhook' ? [duplicate(field, type)] : [];
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
function readWebhook(webhook: JsonObject, { name, field: at, errors, fileProblem }: Checking): ConfiguredWebhook {
  const programs: CelProgram[] = [];
  const checks: Record<string, RuleCheck> = {
    timeout(errors, value, { at }) {
      const ms = duration(errors, value, at);
      if (ms === 0) errors.push(required(at));
      else if (ms < 0 || ms > MAX_TIMEOUT_MS) errors.push(invalid(at, goDuration(ms), 'must be > 0s and <= 30s'));
    },
    ttl(errors, value, { at }) {
      const ms = duration(errors, value, at);
      if (ms < 0) errors.push(invalid(at, goDuration(ms), 'must be > 0s'));
    },
    file(errors, path, { at }) {
      if (typeof path !== 'string' || path === '') return;
      const wrong = path.startsWith('/') ? fileProblem(path) : 'must be an absolute path';
      if (wrong !== undefined) errors.push(invalid(at, path, wrong));
    },
    conditions: (errors, value, { at }) => programs.push(...readConditions(errors, objectsAt(value), at)),
  };
  validateByRules(errors, tables.webhook, { self: webhook, at, name: '', checks });
  const text = (field: string): string => textAt(webhook, field);
  return {
    name,
    timeoutMs: parseGoDuration(text('timeout')) ?? 0,
    authorizedMs: heldFor(webhook, 'Authorized', text('authorizedTTL') || AUTHORIZED_TTL),
    unauthorizedMs: heldFor(webhook, 'Unauthorized', text('unauthorizedTTL') || UNAUTHORIZED_TTL),
    version: text('subjectAccessReviewVersion') as ConfiguredWebhook['version'],
    failurePolicy: text('failurePolicy') as ConfiguredWebhook['failurePolicy'],
    kubeConfigFile: textAt(webhook, 'connectionInfo', 'kubeConfigFile'),
    conditions: programs,
  };
}

/** How long answers of a kind are kept, in milliseconds. */
const heldFor = (webhook: JsonObject, kind: 'Authorized' | 'Unauthorized', ttl: string): number =>
  webhook[`cache${kind}Requests`] === false ? 0 : (parseGoDuration(ttl) ?? 0);

/** In milliseconds, 0 for none. */
function duration(errors: FieldError[], text: unknown, field: string): number {
  if (typeof text !== 'string' || text === '') return 0;
  const read = parseGoDuration(text);
  if (read === undefined) errors.push(invalid(field, text, `time: invalid duration ${JSON.stringify(text)}`));
  return read ?? 0;
}

function readConditions(errors: FieldError[], conditions: readonly JsonObject[], field: string): CelProgram[] {
  const seen = new Set<string>();
  return (conditions.length > MAX_CONDITIONS ? [] : conditions).flatMap((condition, i) => {
    const [where, expression] = [`${field}[${i}].expression`, textAt(condition, 'expression')];
    const isTwice = seen.has(expression);
    seen.add(expression);
    if (expression.trim() === '') errors.push(required(where));
    else if (isTwice) errors.push(duplicate(where, expression));
    else {
      try {
        return [compileAccessCondition(expression)];
      } catch (error) {
        if (!(error instanceof CelCompileError)) throw error;
        errors.push(invalid(where, expression, error.message));
      }
    }
    return [];
  });
}
