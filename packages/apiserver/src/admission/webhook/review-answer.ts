/** The document a webhook answers with, as Go decodes an AdmissionReview: what it cannot hold is reported in Go's words. */

import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { jsonKind } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';

const TYPE_META =
  'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/** Reads the document. Throws Error with what Go says of it. */
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
    const why = `json: cannot unmarshal ${jsonKind(value)} into Go value of type ${TYPE_META}`;
    throw new Error(`couldn't get version/kind; json parse error: ${why}`);
  }
  for (const member of ['apiVersion', 'kind']) {
    const problem = textProblem(value[member], `.${member}`);
    if (problem !== undefined) throw new Error(`couldn't get version/kind; json parse error: ${problem}`);
  }
  const problem = responseProblem(value['response']);
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

const TEXTS = { uid: 'types.UID', patchType: 'v1.PatchType' };

function responseProblem(response: unknown): string | undefined {
  if (response === undefined || response === null) return undefined;
  if (!isJsonObject(response)) return mismatch(response, 'AdmissionReview.response', 'v1.AdmissionResponse');
  for (const [member, value] of Object.entries(response)) {
    const problem = memberProblem(member, value);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function memberProblem(member: string, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined;
  const at = `AdmissionResponse.response.${member}`;
  switch (member) {
    case 'allowed':
      return typeof value === 'boolean' ? undefined : mismatch(value, at, 'bool');
    case 'uid':
    case 'patchType':
      return textProblem(value, at, TEXTS[member]);
    case 'patch':
      return textProblem(value, at, '[]uint8') ?? base64Problem(value as string);
    case 'status':
      return isJsonObject(value) ? undefined : mismatch(value, at, 'v1.Status');
    case 'warnings':
      if (!Array.isArray(value)) return mismatch(value, at, '[]string');
      return firstProblem(value, at);
    case 'auditAnnotations':
      if (!isJsonObject(value)) return mismatch(value, at, 'map[string]string');
      return firstProblem(Object.values(value), at);
    default:
      return undefined;
  }
}

function firstProblem(values: readonly unknown[], at: string): string | undefined {
  for (const value of values) {
    const problem = textProblem(value, at);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const textProblem = (value: unknown, at: string, type = 'string'): string | undefined =>
  value === undefined || value === null || typeof value === 'string' ? undefined : mismatch(value, at, type);

const mismatch = (value: unknown, at: string, type: string): string =>
  `json: cannot unmarshal ${jsonKind(value)} into Go struct field ${at} of type ${type}`;

/** Go tells the byte as well, of which the client has nothing. */
function base64Problem(text: string): string | undefined {
  try {
    decodeBase64(text);
    return undefined;
  } catch {
    const good = /^[A-Za-z0-9+/]*/.exec(text)![0].length;
    return `illegal base64 data at input byte ${good}`;
  }
}
