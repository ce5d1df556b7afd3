/** AdmissionReview, v1 and v1beta1: what is sent to a webhook, and what its answer says. */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { internalError } from '@coracle/apimachinery/meta/status';
import { decodeProblem } from '@coracle/apimachinery/schema/decode-errors';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { requestView } from '../matching/request-view.ts';
import { convertAnyObject } from '../matching/served-kinds.ts';
import type { AdmissionAttributes } from '../plugin.ts';

const KNOWN_VERSIONS = ['v1', 'v1beta1'];

export interface Review {
  readonly uid: string;
  readonly version: string;
  readonly body: Uint8Array;
}

/** The response of a webhook. `status` is present when it refused and said why. */
export interface AdmissionResponse {
  readonly allowed: boolean;
  readonly status: JsonObject | undefined;
  /** JSON text of a JSON patch; undefined without one. */
  readonly patch: string | undefined;
  readonly patchType: string;
  readonly warnings: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
}

/** An object in the version that a webhook asks for, or back. Rejects with ApiError 500 in the dispatchers' words. */
export async function convertForHook<T extends Readonly<UnstructuredObject>>(
  object: T,
  conversion: { readonly from: ResourceInfo; readonly to: ResourceInfo },
): Promise<T> {
  try {
    return await convertAnyObject(object, conversion);
  } catch (error) {
    throw internalError(error instanceof Error ? error.message : String(error), error);
  }
}

/** The review of a write with its objects in the version of `matched`. Rejects when no version is known to both. */
export async function buildReview(
  attributes: AdmissionAttributes,
  { matched, reviewVersions }: { readonly matched: ResourceInfo; readonly reviewVersions: readonly string[] },
): Promise<Review> {
  const version = reviewVersions.find((one) => KNOWN_VERSIONS.includes(one));
  if (version === undefined) throw new Error('webhook does not accept known AdmissionReview versions (v1, v1beta1)');
  const { info, object, oldObject } = attributes;
  const uid = crypto.randomUUID();
  const review = {
    kind: 'AdmissionReview',
    apiVersion: `admission.k8s.io/${version}`,
    request: {
      uid,
      ...requestView(attributes, matched),
      object: object ? await convertForHook(object, { from: info, to: matched }) : null,
      oldObject: oldObject ? await convertForHook(oldObject, { from: info, to: matched }) : null,
    },
  };
  return { uid, version, body: new TextEncoder().encode(JSON.stringify(review)) };
}

/** Reads and checks an answer (webhook/request VerifyAdmissionResponse). Throws Error with what is wrong with it. */
export function readResponse(
  answer: JsonObject,
  { uid, version, mutating }: { readonly uid: string; readonly version: string; readonly mutating: boolean },
): AdmissionResponse {
  const { response, kind = '', apiVersion = '' } = answer;
  if (!isJsonObject(response)) throw new Error('webhook response was absent');
  const strict = version === 'v1';
  if (strict && response['uid'] !== uid) {
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${JSON.stringify(response['uid'] ?? '')}`);
  }
  if (strict && (kind !== 'AdmissionReview' || apiVersion !== 'admission.k8s.io/v1')) {
    const given = String(apiVersion).includes('/') ? apiVersion : `/${apiVersion}`;
    throw new Error(
      `expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got ${given}, Kind=${kind}`,
    );
  }
  return {
    allowed: response['allowed'] === true,
    status: isJsonObject(response['status']) ? response['status'] : undefined,
    ...(mutating ? patchOf(response, strict) : noPatch(response, strict)),
    warnings: Array.isArray(response['warnings']) ? response['warnings'].map(String) : [],
    auditAnnotations: textsOf(response['auditAnnotations']),
  };
}

/** A validating webhook has nothing to change. */
function noPatch({ patch, patchType }: JsonObject, strict: boolean): Pick<AdmissionResponse, 'patch' | 'patchType'> {
  if (strict && typeof patch === 'string' && patch !== '') {
    throw new Error('validating webhook may not return response.patch');
  }
  if (strict && patchType !== undefined && patchType !== null) {
    throw new Error('validating webhook may not return response.patchType');
  }
  return { patch: undefined, patchType: '' };
}

function patchOf(response: JsonObject, strict: boolean): Pick<AdmissionResponse, 'patch' | 'patchType'> {
  const { patch, patchType } = response;
  const hasPatch = typeof patch === 'string' && patch !== '';
  if (!strict) return { patch: hasPatch ? decoded(patch) : undefined, patchType: 'JSONPatch' };
  if (hasPatch && patchType === undefined) {
    throw new Error('webhook returned response.patch but not response.patchType');
  }
  if (!hasPatch && patchType !== undefined && patchType !== null) {
    throw new Error('webhook returned response.patchType but not response.patch');
  }
  if (hasPatch && patchType === '') throw new Error('webhook returned invalid response.patchType of ""');
  return { patch: hasPatch ? decoded(patch) : undefined, patchType: String(patchType ?? '') };
}

function decoded(base64: string): string {
  try {
    return new TextDecoder().decode(decodeBase64(base64));
  } catch {
    throw new Error('response.patch is not base64');
  }
}

const textsOf = (value: unknown): Record<string, string> =>
  isJsonObject(value) ? Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)])) : {};

/** Reads the document that a webhook answers with. Throws Error with what is wrong with it. */
export function parseAnswer(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${parseProblem(text) ?? (error as Error).message}`);
  }
  // As an empty one.
  if (value === null) return {};
  if (!isJsonObject(value)) {
    throw new Error(`couldn't get version/kind; json parse error: ${wrongType(value, 'object')}`);
  }
  const problem = decodeProblem(REVIEW, value);
  if (problem !== undefined) throw new Error(problem);
  return value;
}

/** What Go's parser says, without the place. */
function parseProblem(text: string): string | undefined {
  try {
    parseJson(new TextEncoder().encode(text));
    return undefined;
  } catch (error) {
    return (error as Error).message.replace(/^json parse error: /, '').replace(/ \(line \d+, column \d+\)$/, '');
  }
}

const text: Schema = { type: 'string' };

/** The members of a response that have to be of a type, where they are given. */
const REVIEW: Schema = {
  type: 'object',
  properties: {
    apiVersion: text,
    kind: text,
    response: {
      type: 'object',
      properties: {
        allowed: { type: 'boolean' },
        uid: text,
        patchType: text,
        patch: { type: 'string', format: 'byte' },
        status: { type: 'object' },
        warnings: { type: 'array', items: text },
        auditAnnotations: { type: 'object', additionalProperties: text },
      },
    },
  },
};
