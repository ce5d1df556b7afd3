/** The document a webhook answers with: an AdmissionReview, whose members are of the types they have to be. */

import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { decodeProblem } from '@coracle/apimachinery/schema/decode-errors';
import { parseJson } from '@coracle/apimachinery/schema/parse-json';
import type { Schema } from '@coracle/apimachinery/schema/schema';

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
