/** DeleteOptions: the body when there is one, else the query. */
import { goNumber } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import type { DeleteOptions } from '../registry/graceful-deletion.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';
import { dryRunErrors, int64Of, type Query } from './query.ts';
import { isTrue } from './request-info.ts';

const POLICIES = ['Background', 'Foreground', 'Orphan'];

export interface ParsedDeleteOptions {
  readonly options: DeleteOptions;
  readonly dryRun: boolean;
}

/** Throws ApiError 400 when a value has the wrong type, 422 when values contradict one another. */
export function parseDeleteOptions(exchange: Exchange): ParsedDeleteOptions {
  if (exchange.request.body.length === 0) return validated(fromQuery(exchange.query));
  return readDeleteOptions(bodyOf(exchange) ?? {});
}

function bodyOf(exchange: Exchange): unknown {
  try {
    return parseBody(exchange, undefined).value;
  } catch (error) {
    if (!(error instanceof ApiError) || !error.message.startsWith('json parse error')) throw error;
    throw badRequest(`couldn't get version/kind; ${error.message}`);
  }
}

/** DeleteOptions as a JSON value: a body, or the `deleteOptions` of an Eviction. Any group may have sent them. */
export function readDeleteOptions(value: unknown): ParsedDeleteOptions {
  if (!isJsonObject(value)) {
    const type = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;
    const why = `json: cannot unmarshal ${goKind(value)} into Go value of type ${type}`;
    throw badRequest(`couldn't get version/kind; json parse error: ${why}`);
  }
  const { kind, apiVersion } = value;
  if (kind && kind !== 'DeleteOptions') {
    const version = typeof apiVersion === 'string' && apiVersion !== '' ? apiVersion : 'v1';
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)} in scheme "${SCHEME}"`,
    );
  }
  const preconditions = field(value, { name: 'preconditions', is: isJsonObject, type: 'v1.Preconditions' });
  const within = { struct: 'Preconditions', path: 'preconditions.' };
  const uid = preconditions && field(preconditions, { name: 'uid', is: isString, type: 'types.UID', within });
  const resourceVersion =
    preconditions && field(preconditions, { name: 'resourceVersion', is: isString, type: 'string', within });
  const dryRun = field(value, { name: 'dryRun', is: isList, type: '[]string' }) ?? [];
  for (const item of dryRun)
    if (!isString(item)) throw mistyped('DeleteOptions.dryRun', { value: item, type: 'string' });
  return validated({
    gracePeriodSeconds: field(value, { name: 'gracePeriodSeconds', is: isInteger, type: 'int64' }),
    propagationPolicy: field(value, { name: 'propagationPolicy', is: isString, type: 'v1.DeletionPropagation' }),
    orphanDependents: field(value, { name: 'orphanDependents', is: isBoolean, type: 'bool' }),
    dryRun: dryRun as string[],
    preconditions: { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) },
  });
}

interface RawOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly dryRun: readonly string[];
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
}

function fromQuery(query: Query): RawOptions {
  const grace = query.get('gracePeriodSeconds');
  const orphan = query.get('orphanDependents');
  return {
    gracePeriodSeconds: grace === null ? undefined : int64Of(grace),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    orphanDependents: orphan === null ? undefined : isTrue(orphan),
    dryRun: query.getAll('dryRun'),
    preconditions: {},
  };
}

function validated(raw: RawOptions): ParsedDeleteOptions {
  const errors: FieldError[] = dryRunErrors(raw.dryRun);
  const policy = raw.propagationPolicy || undefined;
  if (raw.orphanDependents !== undefined && policy !== undefined) {
    errors.push({
      type: 'FieldValueInvalid',
      field: 'propagationPolicy',
      value: policy,
      detail: 'orphanDependents and deletionPropagation cannot be both set',
    });
  } else if (policy !== undefined && !POLICIES.includes(policy)) {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'propagationPolicy',
      value: policy,
      detail: 'supported values: "Foreground", "Background", "Orphan", "nil"',
    });
  }
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', errors);
  return {
    dryRun: raw.dryRun.length > 0,
    options: {
      ...(raw.gracePeriodSeconds !== undefined && { gracePeriodSeconds: raw.gracePeriodSeconds }),
      ...(policy !== undefined && { propagationPolicy: policy as NonNullable<DeleteOptions['propagationPolicy']> }),
      ...(raw.orphanDependents !== undefined && { orphanDependents: raw.orphanDependents }),
      preconditions: raw.preconditions,
    },
  };
}

const isString = (value: unknown): value is string => typeof value === 'string';
const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
const isList = (value: unknown): value is unknown[] => Array.isArray(value);
const isInteger = (value: unknown): value is number => Number.isSafeInteger(value);

/** Where upstream makes the scheme that knows DeleteOptions. */
const SCHEME = 'k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27';
const TOP = { struct: 'DeleteOptions', path: '' };

function field<T>(
  object: Record<string, unknown>,
  {
    name,
    is,
    type,
    within: { struct, path } = TOP,
  }: {
    readonly name: string;
    readonly is: (value: unknown) => value is T;
    /** The Go type, for messages. */
    readonly type: string;
    readonly within?: { readonly struct: string; readonly path: string };
  },
): T | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (!is(value)) throw mistyped(`${struct}.${path}${name}`, { value, type });
  return value;
}

function mistyped(into: string, { value, type }: { readonly value: unknown; readonly type: string }): ApiError {
  const given = typeof value === 'number' && type === 'int64' ? `number ${goNumber(value)}` : goKind(value);
  return badRequest(`json: cannot unmarshal ${given} into Go struct field ${into} of type ${type}`);
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
