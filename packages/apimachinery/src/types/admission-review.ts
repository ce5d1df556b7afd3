/** AdmissionReview of admission.k8s.io/v1 as a webhook takes and answers it. */
import type { ApiResponse } from '@coracle/runtime/http/seam';
import type { DeepReadonly, KubeObject } from '../meta/object.ts';
import { isJsonObject } from '../meta/own-property.ts';

/** What a webhook is asked. */
export interface ReviewRequest {
  readonly uid: string;
  readonly operation: string;
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: { readonly group: string; readonly resource: string };
  readonly subResource?: string;
  readonly dryRun?: boolean;
  readonly object?: DeepReadonly<KubeObject> | null;
  readonly oldObject?: DeepReadonly<KubeObject> | null;
  readonly userInfo?: { readonly username?: string };
}

/** Largest AdmissionReview that is read: old and new state of an object at the API's limit. */
const MAX_BODY = 7 * 1024 * 1024;
const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Reads one; undefined for what is none. */
export function readReview(body: Uint8Array): ReviewRequest | undefined {
  if (body.length > MAX_BODY) return undefined;
  try {
    const review: unknown = JSON.parse(decoder.decode(body));
    if (!isJsonObject(review) || review['kind'] !== 'AdmissionReview' || !isJsonObject(review['request']))
      return undefined;
    const request = review['request'] as unknown as ReviewRequest;
    return typeof request.uid === 'string' && isJsonObject(request.resource) ? request : undefined;
  } catch {
    return undefined;
  }
}

/** The answer of a webhook, with the request's uid. */
export const reviewAnswer = (response: Readonly<Record<string, unknown>>): ApiResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: encoder.encode(JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response })),
});

/** What a webhook says to a request that it cannot be meant by. */
export const reviewProblem = (status: 400 | 404, words: string): ApiResponse => ({
  status,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: encoder.encode(`${words}\n`),
});
