/** Request bodies of `application/vnd.kubernetes.protobuf`: what typed Go clients send for built-in kinds by default. */
import { apiVersionOf } from '@coracle/apimachinery/meta/gvk';
import type { JsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest } from '@coracle/apimachinery/meta/status';
import type { ParsedJson } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { unwrapEnvelope } from './envelope.ts';
import { planOf } from './message-plan.ts';
import { readMessage } from './messages.ts';
import { WireInput } from './wire-input.ts';
import { wireSchemaOf } from './wire-schemas.ts';

/** The resource a body is meant for. */
type Target = Pick<ResourceInfo, 'group' | 'version' | 'resource' | 'kind'> & {
  readonly strategy: Pick<ResourceInfo['strategy'], 'custom'>;
};

/**
 * Decodes an enveloped object into the JSON its sender would have written. `info` is the resource it is meant for and
 * gives the kind when the envelope names none.
 * @throws ApiError 415 for custom resources, which have no protobuf form; 400 for everything that does not decode
 */
export function protobufBody(bytes: Uint8Array, info: Target | undefined): ParsedJson {
  if (info?.strategy.custom) {
    throw new ApiError({
      code: 415,
      reason: 'UnsupportedMediaType',
      message: `the body of the request was in an unknown format - ${info.resource}.${info.group} accepts: application/json, application/yaml`,
    });
  }
  let value: JsonObject;
  try {
    value = decode(bytes, info);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(`unable to decode the protobuf body: ${error instanceof Error ? error.message : String(error)}`);
  }
  return { value, duplicates: () => [] };
}

function decode(bytes: Uint8Array, info: Target | undefined): JsonObject {
  const envelope = unwrapEnvelope(bytes);
  const kind = envelope.kind || (info?.kind ?? '');
  const apiVersion = envelope.apiVersion || (info === undefined ? '' : apiVersionOf(info));
  if (kind === '') throw badRequest("Object 'Kind' is missing in the protobuf body");
  const schema = wireSchemaOf({ apiVersion, kind });
  if (schema === undefined) throw badRequest(`no kind "${kind}" is registered for version "${apiVersion}"`);
  const { message } = envelope;
  const target = { kind, apiVersion };
  return readMessage(new WireInput(message), { plan: planOf(schema), end: message.length, target });
}
