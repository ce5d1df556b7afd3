/** Options that stand in the query string. Absent query: shared constants, nothing is parsed. */
import { badRequest, type FieldError, invalid } from '@coracle/apimachinery/meta/status';
import { validateFieldManager } from '@coracle/apimachinery/meta/validate-object-meta';
import { type ListOptions, NO_LIST_OPTIONS } from '../registry/list-options.ts';
import { isTrue } from './request-info.ts';

export type Query = Pick<URLSearchParams, 'get' | 'getAll' | 'has'>;

const EMPTY: Query = new URLSearchParams();

export const parseQuery = (query: string): Query => (query === '' ? EMPTY : new URLSearchParams(query));

/** Options of list, watch and deletecollection. Throws ApiError 400 when a number is none. */
export function parseListOptions(query: Query): ListOptions {
  if (query === EMPTY) return NO_LIST_OPTIONS;
  const sendInitialEvents = query.get('sendInitialEvents');
  return {
    labelSelector: query.get('labelSelector') ?? '',
    fieldSelector: query.get('fieldSelector') ?? '',
    limit: Math.max(0, int64Of(query.get('limit') ?? '0')),
    continue: query.get('continue') ?? '',
    resourceVersion: query.get('resourceVersion') ?? '',
    resourceVersionMatch: query.get('resourceVersionMatch') ?? '',
    sendInitialEvents: sendInitialEvents === null ? undefined : isTrue(sendInitialEvents),
    allowWatchBookmarks: isTrue(query.get('allowWatchBookmarks')),
    timeoutSeconds: int64Of(query.get('timeoutSeconds') ?? '0'),
  };
}

/** A number of a query as Go reads it. Throws ApiError 400 in the words of its `strconv`. */
export function int64Of(text: string): number {
  const isNumber = /^[+-]?[0-9]+$/.test(text);
  const value = isNumber ? Number(text) : Number.NaN;
  if (Math.abs(value) < MAX_INT64) return value;
  const why = isNumber ? 'value out of range' : 'invalid syntax';
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
}

const MAX_INT64 = 2 ** 63;

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** Options of create, update and patch. */
export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldManager: string;
  readonly fieldValidation: FieldValidation;
  /** Only for apply. */
  readonly force: boolean | undefined;
}

const NO_WRITE_OPTIONS: WriteOptions = { dryRun: false, fieldManager: '', fieldValidation: 'Warn', force: undefined };

/** Throws ApiError 422 of the options kind (`CreateOptions`, ...) when a value is not supported. */
export function parseWriteOptions(query: Query, kind: string): WriteOptions {
  if (query === EMPTY) return NO_WRITE_OPTIONS;
  const fieldValidation = query.get('fieldValidation') ?? '';
  const fieldManager = query.get('fieldManager') ?? '';
  const force = query.get('force');
  const errors = dryRunErrors(query.getAll('dryRun'));
  if (!['', 'Ignore', 'Warn', 'Strict'].includes(fieldValidation)) {
    errors.push({
      type: 'FieldValueNotSupported',
      field: 'fieldValidation',
      value: fieldValidation,
      detail: 'supported values: "", "Ignore", "Strict", "Warn"',
    });
  }
  errors.push(...validateFieldManager(fieldManager, 'fieldManager'));
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind }, '', errors);
  return {
    dryRun: query.getAll('dryRun').length > 0,
    fieldManager,
    fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation),
    force: force === null ? undefined : isTrue(force),
  };
}

/** `All` is the only dry run there is. */
export function dryRunErrors(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === 'All')) return [];
  return [{ type: 'FieldValueNotSupported', field: 'dryRun', value: values, detail: 'supported values: "All"' }];
}
