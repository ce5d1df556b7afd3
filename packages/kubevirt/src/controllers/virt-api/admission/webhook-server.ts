/** virt-api's webhooks over HTTP: AdmissionReview in, AdmissionReview out, for clusters that are not the embedded one. */

import { encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { KubeObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { CONTROLLER_REVISIONS } from '@coracle/apimachinery/types/resource-types';
import type { ControllerRevision } from '@coracle/apimachinery/types/types';
import type { JsonPatchOperation } from '@coracle/client/client';
import type { ApiHandler, ApiRequest } from '@coracle/runtime/http/seam';
import { DefaultsError } from '../../../rules/machine-defaults/implicit-devices.ts';
import { json, text } from '../subresources/responses.ts';
import type { AdmissionUser } from './admission-context.ts';
import { CauseRefusal, joinMessages, statusCauses, WebhookRefusal } from './causes.ts';
import { subjectOf, type VirtAdmissionOptions } from './virt-admission.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from './virt-webhooks.ts';
import type { Operation } from './webhook.ts';

/** The part of admission.k8s.io/v1 AdmissionRequest that is read here. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: string;
  readonly namespace?: string;
  readonly object?: KubeObject | null;
  readonly oldObject?: KubeObject | null;
  readonly dryRun?: boolean;
  readonly userInfo?: Partial<AdmissionUser>;
}

/** admission.k8s.io/v1 AdmissionResponse. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: Record<string, unknown>;
  readonly patchType?: 'JSONPatch';
  /** Base64 of the JSON patch. */
  readonly patch?: string;
  readonly warnings?: readonly string[];
}

/** Largest AdmissionReview that is read: an object and its old version, both at the API's limit. */
const MAX_BODY = 7 * 1024 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The handler that serves every webhook under its path. Answers 404 elsewhere and 400 to what is no review. */
export function createVirtApiWebhooks(options: VirtAdmissionOptions): ApiHandler {
  return async (request) => {
    const known = [...MUTATING_WEBHOOKS, ...VALIDATING_WEBHOOKS].some(({ path }) => path === request.path);
    if (!known) return text(404, `no webhook is served at ${request.path}\n`);
    if (request.method !== 'POST') return text(405, 'webhooks are called with POST\n');
    const review = readReview(request);
    if (review === undefined) return text(400, 'the body is not an AdmissionReview of admission.k8s.io/v1\n');
    const response = await admit(request.path, review, options);
    return json(200, { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response });
  };
}

function readReview(request: ApiRequest): AdmissionRequest | undefined {
  if (request.body.length > MAX_BODY) return undefined;
  try {
    const review: unknown = JSON.parse(decoder.decode(request.body));
    if (!isJsonObject(review) || review['kind'] !== 'AdmissionReview' || !isJsonObject(review['request']))
      return undefined;
    const { request: inner } = review as { request: Partial<AdmissionRequest> };
    return typeof inner.uid === 'string' && typeof inner.operation === 'string'
      ? (inner as AdmissionRequest)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The answer of the webhook at `path` (one of the table's). */
export async function admit(
  path: string,
  request: AdmissionRequest,
  options: VirtAdmissionOptions,
): Promise<AdmissionResponse> {
  const { uid } = request;
  const object = request.object ?? request.oldObject;
  if (object === undefined || object === null)
    return refusal(uid, { code: 400, message: 'the review carries no object' });
  const subject = subjectOf(options, {
    operation: request.operation as Operation,
    namespace: request.namespace ?? object.metadata.namespace ?? '',
    object,
    old: request.oldObject ?? undefined,
    dryRun: request.dryRun === true,
    user: { ...request.userInfo, username: request.userInfo?.username ?? '', groups: request.userInfo?.groups ?? [] },
  });
  const warnings: string[] = [];
  const warn = (text: string) => warnings.push(text);
  try {
    const mutating = MUTATING_WEBHOOKS.find((hook) => hook.path === path);
    if (mutating !== undefined) {
      const mutated = await mutating.mutate({ ...subject, warn });
      return { ...mutation(uid, object, mutated), ...(warnings.length > 0 && { warnings }) };
    }
    const validating = VALIDATING_WEBHOOKS.find((hook) => hook.path === path);
    const captures: ControllerRevision[] = [];
    const capture = (copy: ControllerRevision) => captures.push(copy);
    const causes = (await validating?.validate({ ...subject, capture, warn })) ?? [];
    if (causes.length > 0) return denialOf(uid, causes);
    // The object is not stored yet: should it never be, its owner reference has the copy collected. What cannot be
    // written here is captured by the controller.
    if (!subject.dryRun)
      await Promise.all(captures.map((copy) => options.client.create(CONTROLLER_REVISIONS, copy).catch(() => {})));
    warnings.push(...(validating?.warnings?.(subject) ?? []));
    return { uid, allowed: true, ...(warnings.length > 0 && { warnings }) };
  } catch (error) {
    if (error instanceof CauseRefusal) return denialOf(uid, error.causes);
    if (error instanceof DefaultsError) return refusal(uid, { code: 400, message: error.message });
    if (error instanceof WebhookRefusal) return refusal(uid, { code: error.code, message: error.message });
    throw error;
  }
}

const denialOf = (uid: string, causes: readonly FieldError[]): AdmissionResponse =>
  refusal(uid, {
    code: 422,
    reason: 'Invalid',
    message: joinMessages(causes),
    details: { causes: statusCauses(causes) },
  });

const refusal = (uid: string, status: Record<string, unknown>): AdmissionResponse => ({
  uid,
  allowed: false,
  status: { metadata: {}, status: 'Failure', ...status },
});

/** The members that changed, replaced as wholes. */
function mutation(uid: string, before: KubeObject, after: KubeObject): AdmissionResponse {
  const old = before as unknown as Record<string, unknown>;
  const next = after as unknown as Record<string, unknown>;
  const patch: JsonPatchOperation[] = ['spec', 'metadata', 'status']
    .filter((member) => !deepEqual(old[member], next[member]))
    .map((member) =>
      next[member] === undefined
        ? { op: 'remove', path: `/${member}` }
        : { op: old[member] === undefined ? 'add' : 'replace', path: `/${member}`, value: next[member] },
    );
  if (patch.length === 0) return { uid, allowed: true };
  return { uid, allowed: true, patchType: 'JSONPatch', patch: encodeBase64(encoder.encode(JSON.stringify(patch))) };
}
