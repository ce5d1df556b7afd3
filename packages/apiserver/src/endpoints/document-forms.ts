/**
 * Documents in other forms than the JSON they are kept in. What is large is written by another thread where there is one:
 * bytes go there and bytes come back.
 */

import { parseStored } from '@coracle/apimachinery/schema/parse-json';
import { stringify } from 'yaml';
import { encodeOpenApiV2, encodeOpenApiV3 } from '../kinds/openapi/gnostic.ts';
import { encodeMessage, encodeProtobuf } from '../kinds/protobuf/documents.ts';
import type { WriteClient } from '../registry/write-contract.ts';

export type DocumentForm =
  | { readonly type: 'yaml' }
  /** JSON with two blanks for each level, without a newline at its end. */
  | { readonly type: 'indented' }
  /** With its envelope. */
  | { readonly type: 'protobuf' }
  /** Some members of a document of that type, without its envelope: messages may be written in parts. */
  | { readonly type: 'protobuf-part'; readonly apiVersion: string; readonly kind: string }
  /** An OpenAPI document in gnostic's protobuf. */
  | { readonly type: 'openapi-v2' | 'openapi-v3' };

/** A JSON document, and the form that it is wanted in. */
export interface FormWork {
  readonly json: Uint8Array;
  readonly form: DocumentForm;
}

/** Writes a document on another thread, in turn with the work of other owners; undefined for one that has no such form. */
export type WriteElsewhere = (work: FormWork, client?: WriteClient) => Promise<Uint8Array | undefined>;

/** Bytes of JSON from which on a document is written elsewhere: a hundred times as many of YAML take the library as long. */
const LARGE = 64 * 1024;
const LARGE_YAML = 4 * 1024;

/** YAML 1.1, which the parsers of clients read; lines are not folded. */
const YAML_STYLE = { lineWidth: 0, version: '1.1' } as const;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The document in its form; undefined when it has none, as a custom resource in protobuf. */
export function writeForm({ json, form }: FormWork): Uint8Array | undefined {
  const document = parseStored(decoder.decode(json)) as Record<string, unknown>;
  switch (form.type) {
    case 'yaml':
      return encoder.encode(stringify(document, YAML_STYLE));
    case 'indented':
      return encoder.encode(JSON.stringify(document, null, 2));
    case 'protobuf':
      return encodeProtobuf(document);
    case 'protobuf-part':
      return encodeMessage(form, document);
    case 'openapi-v2':
      return encodeOpenApiV2(document);
    case 'openapi-v3':
      return encodeOpenApiV3(document);
    default:
      return form satisfies never;
  }
}

/** The same, a promise where the document is large and another thread writes it. */
export function inForm(
  work: FormWork,
  elsewhere: ((work: FormWork) => Promise<Uint8Array | undefined>) | undefined,
): Uint8Array | undefined | Promise<Uint8Array | undefined> {
  const isLarge = work.json.length > (work.form.type === 'yaml' ? LARGE_YAML : LARGE);
  return isLarge && elsewhere ? elsewhere(work) : writeForm(work);
}
