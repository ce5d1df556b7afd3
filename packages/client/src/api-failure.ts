/** Turns a response that is no success into the ApiError to throw. */
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, type Status } from '@coracle/apimachinery/meta/status';

/** Reasons of answers that carry no Status: a proxy's page, a plain 404. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** How much of a foreign error page goes into a message, characters. */
const MAX_TEXT = 1024;

/** True for a value that is a failed Status. */
export const isStatus = (value: unknown): value is Status =>
  isJsonObject(value) && value['kind'] === 'Status' && typeof value['code'] === 'number';

/** The error of a failed response; `what` is the request in words: `GET /api/v1/pods`. */
export function errorOfResponse(code: number, text: string, what: string): ApiError {
  try {
    const parsed: unknown = JSON.parse(text);
    if (isStatus(parsed)) return new ApiError(parsed);
  } catch {
    // Not JSON: described below.
  }
  const shown = text.trim().slice(0, MAX_TEXT);
  return new ApiError({
    code,
    reason: REASONS[code] ?? 'Unknown',
    message: `the server answered ${code} to ${what}${shown === '' ? '' : `: ${shown}`}`,
  });
}

/** True for an ApiError of one of these HTTP codes. */
export const isApiError = (error: unknown, ...codes: readonly number[]): error is ApiError =>
  error instanceof ApiError && codes.includes(error.code);

/** True for a 404 of the API. */
export const isNotFound = (error: unknown): error is ApiError => isApiError(error, 404);

/** True for a lost race: the object changed since it was read. AlreadyExists (also 409) is none. */
export const isConflict = (error: unknown): error is ApiError =>
  isApiError(error, 409) && error.reason !== 'AlreadyExists';

/** True when the object to create is there already. */
export const isAlreadyExists = (error: unknown): error is ApiError =>
  isApiError(error, 409) && error.reason === 'AlreadyExists';

/** True for a 403 because the namespace is on its way out. */
export const isNamespaceTerminating = (error: unknown): error is ApiError =>
  isApiError(error, 403) &&
  (error.status.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating');

/** What a request answers; undefined for a failure that one of `expected` knows. Rejects with any other failure of it. */
export async function orExpected<T>(
  pending: Promise<T>,
  ...expected: readonly ((error: unknown) => boolean)[]
): Promise<T | undefined> {
  try {
    return await pending;
  } catch (error) {
    if (expected.some((isExpected) => isExpected(error))) return undefined;
    throw error;
  }
}

/** What a request answers; undefined for a 404. */
export const orAbsent = <T>(pending: Promise<T>): Promise<T | undefined> => orExpected(pending, isNotFound);

/** The same of a delete or patch of an object that is gone, or another one by now. */
export const orGone = <T>(pending: Promise<T>): Promise<T | undefined> => orExpected(pending, isNotFound, isConflict);

/** The same of a create of what is there already. */
export const orThere = <T>(pending: Promise<T>): Promise<T | undefined> => orExpected(pending, isAlreadyExists);
