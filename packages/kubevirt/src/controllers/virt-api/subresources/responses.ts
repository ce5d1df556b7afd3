/** Bodies and codes of the subresource API. */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest, conflict, forbidden, internalError, notFound } from '@coracle/apimachinery/meta/status';
import type { ApiResponse } from '@coracle/runtime/http/seam';

const encoder = new TextEncoder();

/** The API names its resources in the singular in messages. */
const VM = { group: 'kubevirt.io', resource: 'virtualmachine' };
const VMI = { group: 'kubevirt.io', resource: 'virtualmachineinstance' };

export const vmNotFound = (name: string): ApiError => notFound(VM, name);
export const vmiNotFound = (name: string): ApiError => notFound(VMI, name);
export const vmConflict = (name: string, why: string): ApiError => conflict(VM, name, why);
export const vmiConflict = (name: string, why: string): ApiError => conflict(VMI, name, why);
export const vmiForbidden = (name: string, why: string): ApiError => forbidden(VMI, name, why);

export const VM_NOT_RUNNING = 'VM is not running';
export const VMI_NOT_RUNNING = 'VMI is not running';

/** Success without a body. */
export const empty = (status: 200 | 202): ApiResponse => ({ status, headers: {} });

export const json = (status: number, value: unknown): ApiResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: encoder.encode(JSON.stringify(value)),
});

export const text = (status: number, message: string): ApiResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: encoder.encode(message),
});

/** A failure as Status JSON; whatever is no ApiError is an internal error. */
export function failure(error: unknown): ApiResponse {
  const { status } = error instanceof ApiError ? error : internalError(messageOf(error), error);
  return json(status.code, status);
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const decoder = new TextDecoder();
/** Options are small; what is larger is no set of options. */
const MAX_OPTIONS = 64 * 1024;

/** The options in a body; none are an empty object. Throws ApiError 400 for what is no JSON object. */
export const readOptions = (body: Uint8Array): Readonly<JsonObject> =>
  body.length === 0 ? {} : readBody(body, MAX_OPTIONS, {});

/** The JSON object in a body of at most `max` bytes; `ofNull` where it is null. Throws ApiError 400 for anything else. */
export function readBody(body: Uint8Array, max: number, ofNull?: JsonObject): JsonObject {
  if (body.length > max) throw badRequest(`the body exceeds ${max} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(body));
  } catch (error) {
    throw notDecoded(messageOf(error));
  }
  if (value === null && ofNull) return ofNull;
  if (!isJsonObject(value)) throw notDecoded('the body is not an object');
  return value;
}

/** What was sent is not what the endpoint reads. */
export const notDecoded = (why: string): ApiError =>
  badRequest(`Can not unmarshal Request body to struct, error: ${why}`);

/** True for `dryRun: ["All"]`; throws ApiError 400 for any other directive. */
export function isDryRun({ dryRun }: Readonly<JsonObject>): boolean {
  if (dryRun === undefined || dryRun === null) return false;
  if (!Array.isArray(dryRun) || dryRun.some((directive) => directive !== 'All'))
    throw badRequest('dryRun must be ["All"] or absent');
  return dryRun.length > 0;
}
