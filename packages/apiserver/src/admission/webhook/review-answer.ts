/** The document a webhook answers with: an AdmissionReview, whose members are of the types they have to be. */

import { isBase64 } from '@coracle/apimachinery/meta/base64';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';

/** Reads the document. Throws Error with what is wrong with it. */
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
  for (const member of ['apiVersion', 'kind']) {
    if (isText(value[member] ?? '')) continue;
    throw new Error(`couldn't get version/kind; json parse error: ${wrongType(value[member], 'string', member)}`);
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

const isText = (value: unknown): boolean => typeof value === 'string';

/** The members of a response that have to be of a type, where they are given. */
const MEMBERS: Readonly<Record<string, readonly [type: string, is: (value: unknown) => boolean]>> = {
  allowed: ['bool', (value) => typeof value === 'boolean'],
  uid: ['string', isText],
  patchType: ['string', isText],
  patch: ['string', isText],
  status: ['object', isJsonObject],
  warnings: ['[]string', (value) => Array.isArray(value) && value.every(isText)],
  auditAnnotations: ['map[string]string', (value) => isJsonObject(value) && Object.values(value).every(isText)],
};

function responseProblem(response: unknown): string | undefined {
  if (response === undefined || response === null) return undefined;
  if (!isJsonObject(response)) return wrongType(response, 'object', 'response');
  for (const [member, value] of Object.entries(response)) {
    const [type, is] = (Object.hasOwn(MEMBERS, member) && MEMBERS[member]) || [];
    if (type === undefined || value === undefined || value === null) continue;
    if (!is!(value)) return wrongType(value, type, `response.${member}`);
    if (member === 'patch' && !isBase64(value as string)) return 'illegal base64 data';
  }
  return undefined;
}
