/**
 * Conversion of custom objects between versions by a webhook (apiextensions apiserver/conversion/webhook_converter.go).
 * Objects of one request go out in one ConversionReview; what comes back may differ in everything but identity.
 */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError } from '@coracle/apimachinery/meta/status';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { Crd } from '../kinds/custom/crd.ts';
import { answerProblem } from '../outbound/answer-problem.ts';
import type { ConnectOutbound } from '../outbound/outbound.ts';
import { readWhole } from '../outbound/read-whole.ts';
import { webhookTarget } from '../outbound/webhook-target.ts';

const TIMEOUT_MS = 30_000;
const QUERY = `timeout=${TIMEOUT_MS / 1000}s`;
/** Largest answer that is read: the objects of a long list, converted. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const REVIEW_VERSIONS = new Set(['v1', 'v1beta1']);
const GROUP = 'apiextensions.k8s.io';

/** Converts objects to `apiVersion`, in order; those that have it already are given back. Rejects with ApiError 500. */
export type Convert = (objects: readonly Readonly<JsonObject>[], apiVersion: string) => Promise<JsonObject[]>;

/** The converter of a definition whose strategy is Webhook; undefined for any other. */
export function createWebhookConverter(
  crd: Crd,
  { connect, clock }: { readonly connect: ConnectOutbound; readonly clock: Clock },
): Convert | undefined {
  const { conversion } = crd.spec;
  const config = conversion?.webhook?.clientConfig;
  if (conversion?.strategy !== 'Webhook' || config === undefined) return undefined;
  const { target, path, url } = webhookTarget(config);
  const version = conversion.webhook?.conversionReviewVersions?.find((one) => REVIEW_VERSIONS.has(one)) ?? 'v1';
  let handler: ApiHandler | undefined;
  return async (objects, apiVersion) => {
    const sent = objects.filter((object) => object['apiVersion'] !== apiVersion);
    if (sent.length === 0) return objects as JsonObject[];
    handler ??= connect(target);
    const converted = await review(sent, { apiVersion, version, path, url, handler, clock });
    let next = 0;
    return objects.map((object) => (object['apiVersion'] === apiVersion ? object : converted[next++]!)) as JsonObject[];
  };
}

interface Call {
  readonly apiVersion: string;
  readonly version: string;
  readonly path: string;
  /** As messages show it. */
  readonly url: string;
  readonly handler: ApiHandler;
  readonly clock: Clock;
}

async function review(objects: readonly Readonly<JsonObject>[], call: Call): Promise<JsonObject[]> {
  const first = objects[0]!;
  const gvk = `${String(first['apiVersion'])}, Kind=${String(first['kind'])}`;
  const failed = (why: string, cause?: unknown) => plainError(`conversion webhook for ${gvk} failed: ${why}`, cause);
  const uid = crypto.randomUUID();
  const request = { uid, desiredAPIVersion: call.apiVersion, objects };
  const expected = apiVersionOf({ group: GROUP, version: call.version });
  let answer: unknown;
  try {
    answer = await post({ kind: 'ConversionReview', apiVersion: expected, request }, call);
  } catch (error) {
    throw failed(error instanceof Error ? error.message : String(error), error);
  }
  const response = isJsonObject(answer) ? answer['response'] : undefined;
  if (!isJsonObject(answer) || !isJsonObject(response)) throw failed('no response provided');
  // The beta version was not strict about its own kind and uid.
  if (call.version === 'v1') {
    const found = `${String(answer['apiVersion'] ?? '')}, Kind=${String(answer['kind'] ?? '')}`;
    const wanted = `${expected}, Kind=ConversionReview`;
    if (found !== wanted) throw failed(`expected webhook response of ${wanted}, got ${found}`);
    if (response['uid'] !== uid)
      throw failed(`expected response.uid="${uid}", got ${JSON.stringify(response['uid'] ?? '')}`);
  }
  const result = isJsonObject(response['result']) ? response['result'] : {};
  if (result['status'] !== 'Success') {
    const status = String(result['status'] ?? '');
    throw failed(String(result['message'] || `response.result.status was '${status}', not 'Success'`));
  }
  const converted = Array.isArray(response['convertedObjects']) ? response['convertedObjects'] : [];
  if (converted.length !== objects.length) {
    throw plainError(`conversion webhook for ${gvk} returned ${converted.length} objects, expected ${objects.length}`);
  }
  return converted.map((object, i) => {
    const problem = identityProblem(objects[i]!, object, call.apiVersion);
    if (problem !== undefined) {
      throw plainError(`conversion webhook for ${gvk} returned invalid converted object at index ${i}: ${problem}`);
    }
    return withOriginalMetadata(objects[i]!, object as JsonObject);
  });
}

/** Upstream's converters speak in plain errors: a status without a reason. */
const plainError = (message: string, cause?: unknown): ApiError => new ApiError({ code: 500, message }, { cause });

/** What must not change: version as asked for, kind, name, namespace, uid. */
function identityProblem(original: Readonly<JsonObject>, converted: unknown, apiVersion: string): string | undefined {
  if (!isJsonObject(converted)) return 'it is not an object';
  if (converted['apiVersion'] !== apiVersion) {
    return `invalid groupVersion (expected ${apiVersion}, received ${String(converted['apiVersion'])})`;
  }
  if (converted['kind'] !== original['kind']) {
    return `invalid kind (expected ${String(original['kind'])}, received ${String(converted['kind'])})`;
  }
  const before = (original['metadata'] ?? {}) as JsonObject;
  const after = isJsonObject(converted['metadata']) ? converted['metadata'] : {};
  for (const [field, text] of Object.entries({ name: 'name', namespace: 'namespace', uid: 'UID' })) {
    const [wanted, found] = [before[field] ?? '', after[field] ?? ''];
    if (wanted !== found) return `must have the same ${text}: ${String(wanted)} != ${String(found)}`;
  }
  return undefined;
}

/** Of metadata a webhook may change labels and annotations only. */
function withOriginalMetadata(original: Readonly<JsonObject>, converted: JsonObject): JsonObject {
  const given = isJsonObject(converted['metadata']) ? converted['metadata'] : {};
  const metadata = cloneJson(original['metadata']) as JsonObject;
  for (const key of ['labels', 'annotations']) {
    if (given[key] === undefined || given[key] === null) delete metadata[key];
    else metadata[key] = given[key];
  }
  return { ...converted, metadata } as unknown as UnstructuredObject;
}

async function post(body: object, { path, url, handler, clock }: Call): Promise<unknown> {
  const timeout = new AbortController();
  const cancel = clock.schedule(TIMEOUT_MS, () => timeout.abort(new Error('context deadline exceeded')));
  try {
    const response = await abortable(
      handler({
        method: 'POST',
        path,
        query: QUERY,
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: new TextEncoder().encode(JSON.stringify(body)),
        peer: { address: '' },
        signal: timeout.signal,
      }),
      timeout.signal,
    ).catch((error: unknown) => {
      // As Go's client says what it was doing.
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`Post "${url}?${QUERY}": ${why}`, { cause: error });
    });
    const bytes = await readWhole(response, { limit: MAX_ANSWER_BYTES, signal: timeout.signal });
    if (response.status < 200 || response.status > 206) throw new Error(answerProblem(response, bytes));
    return parseJson(bytes, { wideIntegers: true }).value;
  } finally {
    cancel();
  }
}
