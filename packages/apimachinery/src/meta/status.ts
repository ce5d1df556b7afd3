/**
 * Status, the one error shape of the API, and `ApiError`, the only error that crosses HTTP. Messages and codes follow
 * apimachinery's api/errors; see the table of the API conventions, "Response Status Kind".
 */
import { goValue } from './go-text.ts';
import type { ObjectList } from './object.ts';

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: ObjectList['metadata'];
  status: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code: number;
}

/** A failure that a client may see. Throw it anywhere below the endpoints; one place turns it into a response. */
export class ApiError extends Error {
  readonly status: Status;
  constructor(status: Omit<Status, 'kind' | 'apiVersion' | 'metadata' | 'status'>, options?: { cause?: unknown }) {
    super(status.message ?? status.reason ?? `status ${status.code}`, options);
    this.name = 'ApiError';
    const { message, reason, details, code } = status;
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      ...(message !== undefined && { message }),
      ...(reason !== undefined && { reason }),
      ...(details !== undefined && { details }),
      code,
    };
  }
  get code(): number {
    return this.status.code;
  }
  get reason(): string {
    return this.status.reason ?? '';
  }
}

/** Names a resource in messages; `resource` is the plural. */
export interface GroupResource {
  readonly group: string;
  readonly resource: string;
}

const text = (gr: GroupResource): string => (gr.group === '' ? gr.resource : `${gr.resource}.${gr.group}`);
const detailsOf = (gr: GroupResource, name?: string): StatusDetails => ({
  ...(name !== undefined && name !== '' && { name }),
  ...(gr.group !== '' && { group: gr.group }),
  kind: gr.resource,
});

export const notFound = (gr: GroupResource, name: string): ApiError =>
  new ApiError({
    code: 404,
    reason: 'NotFound',
    message: `${text(gr)} "${name}" not found`,
    details: detailsOf(gr, name),
  });

export const alreadyExists = (gr: GroupResource, name: string, prefix = ''): ApiError =>
  new ApiError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${prefix}${text(gr)} "${name}" already exists`,
    details: detailsOf(gr, name),
  });

export const STALE_RESOURCE_VERSION =
  'the object has been modified; please apply your changes to the latest version and try again';

export const conflict = (gr: GroupResource, name: string, why: string = STALE_RESOURCE_VERSION): ApiError =>
  new ApiError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${text(gr)} "${name}": ${why}`,
    details: detailsOf(gr, name),
  });

export const forbidden = (gr: GroupResource, name: string, why: string, causes?: StatusCause[]): ApiError =>
  new ApiError({
    code: 403,
    reason: 'Forbidden',
    message: name === '' ? `${text(gr)} is forbidden: ${why}` : `${text(gr)} "${name}" is forbidden: ${why}`,
    details: { ...detailsOf(gr, name), ...(causes && { causes }) },
  });

export const badRequest = (message: string): ApiError => new ApiError({ code: 400, reason: 'BadRequest', message });

export const unauthorized = (): ApiError =>
  new ApiError({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });

export const methodNotSupported = (gr: GroupResource, verb: string): ApiError =>
  new ApiError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: `${verb} is not supported on resources of kind "${text(gr)}"`,
    details: detailsOf(gr),
  });

/** What upstream's router says where a path has no such method; custom resources use `methodNotSupported`. */
export const methodNotAllowed = (): ApiError =>
  new ApiError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });

export const expired = (message: string): ApiError => new ApiError({ code: 410, reason: 'Expired', message });

export const internalError = (message: string, cause?: unknown): ApiError =>
  cause instanceof ApiError && cause.reason === 'InsufficientStorage'
    ? cause // what a full disk refuses is no internal error of whoever passes it on
    : new ApiError(
        {
          code: 500,
          reason: 'InternalError',
          message: `Internal error occurred: ${message}`,
          details: { causes: [{ message }] },
        },
        { cause },
      );

export const tooLargeResourceVersion = (wanted: number, current: number): ApiError =>
  new ApiError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });

/** Error types of one field, as they stand in `causes[].reason`. */
export type FieldErrorType =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTooFew'
  | 'FieldValueTooShort'
  | 'FieldValueNotFound'
  | 'FieldValueTypeInvalid'
  | 'InternalError';

/** One wrong field. `value` is shown quoted; leave it out for Required, Forbidden and TooLong. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** `spec.containers[0].name`, `metadata.labels[key]`. */
  readonly field: string;
  readonly detail?: string;
  readonly value?: unknown;
}

const PREFIX: Record<FieldErrorType, string> = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueForbidden: 'Forbidden',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueTooFew: 'Too few',
  FieldValueTooShort: 'Too short',
  FieldValueNotFound: 'Not found',
  FieldValueTypeInvalid: 'Invalid value',
  InternalError: 'Internal error',
};

const VALUELESS = new Set<FieldErrorType>([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
  'FieldValueTooShort',
  'InternalError',
]);

/** The message of one field error, without its path: what `causes[].message` holds. */
export function fieldErrorBody(error: FieldError): string {
  const prefix = PREFIX[error.type];
  const shown = VALUELESS.has(error.type) || error.value === undefined ? '' : `: ${goValue(error.value)}`;
  return error.detail ? `${prefix}${shown}: ${error.detail}` : `${prefix}${shown}`;
}

/** 422 Invalid for a Kind (`details.kind` is the Kind here, not the resource). */
export function invalid(gk: { group: string; kind: string }, name: string, errors: readonly FieldError[]): ApiError {
  const reported = reportedErrors(errors);
  const lines = reported.map((e) => `${e.field}: ${e.body}`);
  const unique = [...new Set(lines)];
  if (reported.length < errors.length) unique.push(`and ${errors.length - reported.length} more`);
  const list = unique.length === 1 ? unique[0] : `[${unique.join(', ')}]`;
  const kind = gk.group === '' ? gk.kind : `${gk.kind}.${gk.group}`;
  return new ApiError({
    code: 422,
    reason: 'Invalid',
    message: `${kind} "${name}" is invalid: ${list}`,
    details: {
      ...(name !== '' && { name }),
      ...(gk.group !== '' && { group: gk.group }),
      ...(gk.kind !== '' && { kind: gk.kind }),
      causes: reported.map((e) => ({ reason: e.type, message: e.body, field: e.field })),
    },
  });
}

/** Mistakes reported in one answer. Upstream has no bound: there an object of 1 MiB of bad labels is answered with 50 MiB. */
const REPORTED_ERRORS = 1000;
const REPORTED_LENGTH = 512 * 1024;

function reportedErrors(errors: readonly FieldError[]): { type: FieldError['type']; field: string; body: string }[] {
  const reported: { type: FieldError['type']; field: string; body: string }[] = [];
  let length = 0;
  for (const error of errors) {
    if (reported.length === REPORTED_ERRORS || length > REPORTED_LENGTH) break;
    const body = fieldErrorBody(error);
    length += body.length + error.field.length;
    reported.push({ type: error.type, field: error.field, body });
  }
  return reported;
}
