/**
 * Status, the one error shape of the API, and `ApiError`, the only error that crosses HTTP. Messages and codes follow
 * apimachinery's api/errors; see the table of the API conventions, "Response Status Kind".
 */
import { goValue } from './go-text.ts';
import { qualifiedResource as text } from './gvk.ts';
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

const detailsOf = (gr: GroupResource, name?: string): StatusDetails => ({
  ...(name !== undefined && name !== '' && { name }),
  ...(gr.group !== '' && { group: gr.group }),
  kind: gr.resource,
});

const failure = (code: number, reason: string, message: string, details?: StatusDetails): ApiError =>
  new ApiError({ code, reason, message, ...(details && { details }) });

export const notFound = (gr: GroupResource, name: string): ApiError =>
  failure(404, 'NotFound', `${text(gr)} "${name}" not found`, detailsOf(gr, name));

export const alreadyExists = (gr: GroupResource, name: string, prefix = ''): ApiError =>
  failure(409, 'AlreadyExists', `${prefix}${text(gr)} "${name}" already exists`, detailsOf(gr, name));

export const STALE_RESOURCE_VERSION =
  'the object has been modified; please apply your changes to the latest version and try again';

export const conflict = (gr: GroupResource, name: string, why: string = STALE_RESOURCE_VERSION): ApiError =>
  failure(409, 'Conflict', `Operation cannot be fulfilled on ${text(gr)} "${name}": ${why}`, detailsOf(gr, name));

export function forbidden(gr: GroupResource, name: string, why: string, causes?: StatusCause[]): ApiError {
  const what = name === '' ? text(gr) : `${text(gr)} "${name}"`;
  return failure(403, 'Forbidden', `${what} is forbidden: ${why}`, {
    ...detailsOf(gr, name),
    ...(causes && { causes }),
  });
}

export const badRequest = (message: string): ApiError => failure(400, 'BadRequest', message);

export const unauthorized = (): ApiError => failure(401, 'Unauthorized', 'Unauthorized');

export const methodNotSupported = (gr: GroupResource, verb: string): ApiError =>
  failure(405, 'MethodNotAllowed', `${verb} is not supported on resources of kind "${text(gr)}"`, detailsOf(gr));

/** What upstream's router says where a path has no such method; custom resources use `methodNotSupported`. */
export const methodNotAllowed = (): ApiError =>
  failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export const expired = (message: string): ApiError => failure(410, 'Expired', message);

export function internalError(text: string, cause?: unknown): ApiError {
  // What a full disk refuses is no internal error of whoever passes it on.
  if (cause instanceof ApiError && cause.reason === 'InsufficientStorage') return cause;
  const message = `Internal error occurred: ${text}`;
  const details = { causes: [{ message: text }] };
  return new ApiError({ code: 500, reason: 'InternalError', message, details }, { cause });
}

export const tooLargeResourceVersion = (wanted: number, current: number): ApiError =>
  failure(504, 'Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });

/** By the type of an error of one field, as it stands in `causes[].reason`: what its message begins with. */
const PREFIX = {
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
export type FieldErrorType = keyof typeof PREFIX;

/** One wrong field. `value` is shown quoted; leave it out for Required, Forbidden and TooLong. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** `spec.containers[0].name`, `metadata.labels[key]`. */
  readonly field: string;
  readonly detail?: string;
  readonly value?: unknown;
}

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
  const unique = [...new Set(reported.map(({ field, message }) => `${field}: ${message}`))];
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
      causes: reported,
    },
  });
}

/** Mistakes reported in one answer. Upstream has no bound: there an object of 1 MiB of bad labels is answered with 50 MiB. */
const REPORTED_ERRORS = 1000;
const REPORTED_LENGTH = 512 * 1024;

function reportedErrors(errors: readonly FieldError[]): Required<StatusCause>[] {
  const reported: Required<StatusCause>[] = [];
  let length = 0;
  for (const error of errors) {
    if (reported.length === REPORTED_ERRORS || length > REPORTED_LENGTH) break;
    const message = fieldErrorBody(error);
    length += message.length + error.field.length;
    reported.push({ reason: error.type, message, field: error.field });
  }
  return reported;
}
