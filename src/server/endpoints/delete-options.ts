/** DeleteOptions: the body when there is one, else the query. */
import { isJsonObject } from '../../api/meta/own-property.ts';
import { badRequest, type FieldError, invalid } from '../../api/meta/status.ts';
import type { DeleteOptions } from '../registry/graceful-deletion.ts';
import { parseBody } from './body.ts';
import type { Exchange } from './exchange.ts';
import { dryRunErrors, type Query } from './query.ts';
import { isTrue } from './request-info.ts';

const POLICIES = ['Background', 'Foreground', 'Orphan'];

export interface ParsedDeleteOptions {
  readonly options: DeleteOptions;
  readonly dryRun: boolean;
}

/** Throws ApiError 400 when a value has the wrong type, 422 when values contradict one another. */
export function parseDeleteOptions(exchange: Exchange): ParsedDeleteOptions {
  if (exchange.request.body.length === 0) return validated(fromQuery(exchange.query));
  return readDeleteOptions(parseBody(exchange, undefined).value);
}

/** DeleteOptions as a JSON value: a body, or the `deleteOptions` of an Eviction. */
export function readDeleteOptions(value: unknown): ParsedDeleteOptions {
  if (!isJsonObject(value)) throw badRequest('DeleteOptions must be a JSON object');
  if (value['kind'] !== undefined && value['kind'] !== '' && value['kind'] !== 'DeleteOptions') {
    throw badRequest(`decoded object cannot be converted to DeleteOptions: it is a ${JSON.stringify(value['kind'])}`);
  }
  const preconditions = field(value, 'preconditions', isJsonObject);
  const uid = preconditions && field(preconditions, 'uid', isString);
  const resourceVersion = preconditions && field(preconditions, 'resourceVersion', isString);
  return validated({
    gracePeriodSeconds: field(value, 'gracePeriodSeconds', isInteger),
    propagationPolicy: field(value, 'propagationPolicy', isString),
    orphanDependents: field(value, 'orphanDependents', isBoolean),
    dryRun: field(value, 'dryRun', isStrings) ?? [],
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
  if (grace !== null && !/^-?[0-9]{1,15}$/.test(grace)) {
    throw badRequest(`unable to convert query parameter gracePeriodSeconds: ${JSON.stringify(grace)} is not a number`);
  }
  return {
    gracePeriodSeconds: grace === null ? undefined : Number(grace),
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
      detail: 'supported values: "Background", "Foreground", "Orphan", "nil"',
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
const isInteger = (value: unknown): value is number => Number.isInteger(value);
const isStrings = (value: unknown): value is string[] => Array.isArray(value) && value.every(isString);

function field<T>(object: Record<string, unknown>, name: string, is: (value: unknown) => value is T): T | undefined {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (!is(value)) throw badRequest(`DeleteOptions.${name} has the wrong type: ${JSON.stringify(value)}`);
  return value;
}
