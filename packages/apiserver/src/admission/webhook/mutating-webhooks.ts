/** MutatingAdmissionWebhook: the configured webhooks one after the other, by configuration name. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { goJson, sortMembers, wrongType } from '@coracle/apimachinery/meta/go-text';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, internalError } from '@coracle/apimachinery/meta/status';
import { applyJsonPatch } from '@coracle/apimachinery/patch/json-patch';
import { parseWide } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { mutatedKind } from '../matching/mutated-kind.ts';
import { normalizeMutated, replaceObject } from '../matching/mutated-object.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../plugin.ts';
import { reinvocationOf } from '../reinvocation.ts';
import { type AdmissionResponse, convertForHook } from './admission-review.ts';
import { callWebhook } from './call-webhook.ts';
import { shouldCall, type WebhookServices } from './should-call.ts';
import { WebhookCallFailed } from './webhook-failure.ts';
import type { Candidate, WebhookSource } from './webhook-source.ts';

const NAME = 'MutatingAdmissionWebhook';

/** The plug-in over the configurations of `source`. */
export function mutatingWebhooks(source: WebhookSource, services: WebhookServices): AdmissionPlugin {
  return {
    name: NAME,
    matches: (operation, info, subresource) => source.candidates(operation, info, subresource).length > 0,
    async mutate(attributes) {
      const { operation, info, subresource } = attributes;
      const reinvocation = reinvocationOf(attributes);
      const callers = reinvocation.of(NAME);
      if (reinvocation.again && callers.outputChanged(attributes.object)) callers.requirePrevious();
      try {
        for (const candidate of source.candidates(operation, info, subresource)) {
          const wanted = shouldCall(candidate, attributes, services);
          if (!(wanted instanceof Promise ? await wanted : wanted)) continue;
          const { key, webhook } = candidate.hook;
          if (reinvocation.again && !callers.isDue(key)) continue;
          const changed = await callOne(candidate, attributes, services);
          if (changed) {
            callers.requirePrevious();
            reinvocation.wanted = true;
          }
          if (webhook.reinvocationPolicy === 'IfNeeded') callers.addReinvocable(key);
        }
      } finally {
        callers.keepOutput(attributes.object);
      }
    },
  };
}

/** True when the webhook changed the object. Throws ApiError to refuse. */
async function callOne(
  candidate: Candidate,
  attributes: AdmissionAttributes,
  { clock, log, metrics }: WebhookServices,
): Promise<boolean> {
  const { webhook, configuration } = candidate.hook;
  const place = `round_${attributes.reinvocation?.again ? 1 : 0}_index_${candidate.index}`;
  let changed = false;
  let failedOpen = false;
  try {
    const response = await callWebhook(candidate, { attributes, mutating: true, clock, metrics });
    changed = await applyResponse(candidate, response, { attributes, place });
  } catch (error) {
    if (!(error instanceof WebhookCallFailed)) throw error;
    if (webhook.failurePolicy !== 'Ignore') throw error.refusal();
    failedOpen = true;
    log.warn('admission webhook failed and is passed by', { webhook: webhook.name, error: error.message });
  } finally {
    // Of a refusal as well.
    attributes.annotate(
      `mutation.webhook.admission.k8s.io/${place}`,
      JSON.stringify({ configuration, webhook: webhook.name, mutated: changed }),
    );
  }
  if (failedOpen) attributes.annotate(`failed-open.mutation.webhook.admission.k8s.io/${place}`, webhook.name);
  return changed;
}

async function applyResponse(
  { hook, matched }: Candidate,
  response: AdmissionResponse,
  { attributes, place }: { readonly attributes: AdmissionAttributes; readonly place: string },
): Promise<boolean> {
  const { patch, patchType } = response;
  if (patch === undefined) return false;
  const { name } = hook.webhook;
  const operations = parsedPatch(patch, { matched, name });
  if (operations.length === 0) return false;
  const { object, info } = attributes;
  const who = `admission webhook ${JSON.stringify(name)}`;
  if (!object) {
    throw internalError(`${who} attempted to modify the object, which is not supported for this operation`);
  }
  if (patchType !== 'JSONPatch')
    throw new WebhookCallFailed(name, `unsupported patch type ${JSON.stringify(patchType)}`);
  const shown = await convertForHook(object, { from: info, to: matched });
  let result: unknown;
  try {
    result = applyJsonPatch(shown, operations);
  } catch (error) {
    const cause = error instanceof ApiError && error.cause instanceof Error ? error.cause : error;
    throw internalError(cause instanceof Error ? cause.message : String(cause));
  }
  if (!isJsonObject(result)) throw internalError(`${who} left no object`);
  const patched = result as UnstructuredObject;
  const { shape, version } = mutatedKind(matched, { subresource: attributes.subresource, object: patched });
  if (shape) normalizeMutated(shape, patched);
  const value = { configuration: hook.configuration, webhook: name, patch: sortMembers(operations), patchType };
  attributes.annotate(`patch.webhook.admission.k8s.io/${place}`, goJson(value), true);
  if (deepEqual(shown, patched)) return false;
  const next = await convertForHook(patched, { from: version, to: info });
  replaceObject(attributes, cloneJson(next) as UnstructuredObject);
  return true;
}

/** Throws WebhookCallFailed for what is no list of operations. */
function parsedPatch(
  text: string,
  { matched, name }: { readonly matched: ResourceInfo; readonly name: string },
): readonly unknown[] {
  const undecodable = (why: string): never => {
    throw new WebhookCallFailed(name, `received undecodable patch in webhook response: ${why}`);
  };
  let value: unknown;
  try {
    value = matched.strategy.wideIntegers ? parseWide(text) : JSON.parse(text);
  } catch (error) {
    return undecodable((error as Error).message);
  }
  if (value === null) return [];
  if (Array.isArray(value)) return value;
  return undecodable(wrongType(value, 'array'));
}
