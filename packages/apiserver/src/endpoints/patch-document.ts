/** The body of a PATCH: which kind of patch it is, parsed and bounded, and how it is applied to a document. */

import { goJson, wrongType } from '@coracle/apimachinery/meta/go-text';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { type ApiError, badRequest, invalid } from '@coracle/apimachinery/meta/status';
import { applyJsonPatch, unknownMembers } from '@coracle/apimachinery/patch/json-patch';
import { applyMergePatch } from '@coracle/apimachinery/patch/merge-patch';
import { applyStrategicMergePatch } from '@coracle/apimachinery/patch/strategic-merge-patch';
import { type ParsedJson, parseJson, parseYaml } from '@coracle/apimachinery/schema/parse-json';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { bodyTooLarge, MAX_BODY_BYTES, mediaTypeOf, unsupportedMediaType } from './body.ts';
import type { Exchange } from './exchange.ts';
import type { WriteOptions } from './query.ts';

export interface PatchDocument {
  readonly type: 'json' | 'merge' | 'strategic' | 'apply';
  readonly value: unknown;
  /** As sent, for messages; cut short. */
  readonly text: string;
  readonly duplicates: () => string[];
  /** Duplicates are worded as the YAML reader words them. */
  readonly yaml: boolean;
}

const TYPES: ReadonlyMap<string, PatchDocument['type']> = new Map([
  ['application/json-patch+json', 'json'],
  ['application/merge-patch+json', 'merge'],
  ['application/strategic-merge-patch+json', 'strategic'],
  ['application/apply-patch+yaml', 'apply'],
]);

const SHOWN_TEXT = 1024;
const YAML_ERROR = 'error decoding YAML';

/** The kind of patch that is sent. Throws ApiError 413, 415. */
export function patchTypeOf(exchange: Exchange, info: ResourceInfo): PatchDocument['type'] {
  const { body, headers } = exchange.request;
  const type = TYPES.get(mediaTypeOf(headers));
  const offered = TYPES.entries()
    .filter(([, one]) => !(one === 'strategic' && info.strategy.custom))
    .filter(([, one]) => !(one === 'apply' && exchange.server.registry.fields === undefined))
    .map(([media]) => media)
    .toArray();
  if (type === undefined || !offered.some((media) => TYPES.get(media) === type)) throw unsupportedMediaType(offered);
  if (body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  return type;
}

/** Throws ApiError 413, 415, or 400 when the patch is malformed. */
export const readPatch = (exchange: Exchange, info: ResourceInfo): PatchDocument =>
  decodePatch(patchTypeOf(exchange, info), exchange.request.body, info);

/** The kind of patch of a `content-type` header. */
export const patchType = (header: string): PatchDocument['type'] | undefined =>
  TYPES.get(mediaTypeOf({ 'content-type': header }));

/** Throws ApiError 400 when the patch is malformed. */
export function decodePatch(type: PatchDocument['type'], body: Uint8Array, { strategy }: ResourceInfo): PatchDocument {
  const text = new TextDecoder().decode(body);
  let parsed: ParsedJson;
  try {
    parsed = type === 'apply' ? parseYaml(text, strategy) : parseJson(body, strategy);
  } catch (error) {
    throw unreadable(type, error);
  }
  // To a strategic patch null is a map without members, and so it is to an applied configuration.
  const value = parsed.value === null && (type === 'strategic' || type === 'apply') ? {} : parsed.value;
  if (type !== 'json' && !isJsonObject(value)) throw notAnObject(type, value);
  const { yaml = false } = parsed;
  return { type, value, text: text.slice(0, SHOWN_TEXT), duplicates: () => parsed.duplicates(), yaml };
}

/** A patch that is no JSON gets the decoder's own words, without a place. */
function unreadable(type: PatchDocument['type'], error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (type === 'apply') {
    if (!error.message.startsWith('yaml: ')) return error;
    return badRequest(`${YAML_ERROR}: error converting YAML to JSON: ${error.message}`);
  }
  const found = /^json parse error: (.*?)(?: \(line \d+, column \d+\))?$/s.exec(error.message);
  if (!found) return error;
  return badRequest(type === 'strategic' ? found[1]! : `error decoding patch: ${found[1]}`);
}

function notAnObject(type: PatchDocument['type'], value: unknown): ApiError {
  if (value === null) return badRequest('Invalid JSON Patch');
  const problem = wrongType(value, 'object');
  if (type === 'apply') return badRequest(`${YAML_ERROR}: error unmarshaling JSON: while decoding JSON: ${problem}`);
  return badRequest(type === 'merge' ? `error decoding patch: ${problem}` : problem);
}

/** What an error about a result shows: a strategic patch, else the patched document. */
export const shownPatch = ({ type, value }: PatchDocument, patched: () => unknown): string =>
  goJson(type === 'strategic' ? value : patchedMembers(patched())).slice(0, SHOWN_TEXT);

/** The library that patches keeps the document in a map: its members come out sorted. */
function patchedMembers(document: unknown): unknown {
  if (!isJsonObject(document)) return document;
  return Object.fromEntries(Object.entries(document).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Sentences about the patch itself, for warnings and strict mode. */
export function patchProblems({ type, value, duplicates }: PatchDocument): string[] {
  const repeated = duplicates().map((path) => `duplicate field ${JSON.stringify(path)}`);
  if (type !== 'json') return repeated;
  return [...unknownMembers(value), ...repeated].map((fault) => `json patch ${fault}`);
}

/** The document after the patch; neither is changed. Throws ApiError 400, 413 or 422 as the kind of patch has it. */
export function applyPatch(info: Pick<ResourceInfo, 'schema'>, document: unknown, patch: PatchDocument): unknown {
  switch (patch.type) {
    case 'json':
      return applyJsonPatch(document, patch.value);
    case 'merge':
      return applyMergePatch(document, patch.value);
    case 'strategic':
      return applyStrategicMergePatch(info.schema, document, patch.value);
    case 'apply':
      throw new TypeError('an apply patch is merged by field management');
    default:
      return patch.type satisfies never;
  }
}

/** Throws ApiError 422 when the options do not fit the kind of patch. */
export function checkPatchOptions(patch: Pick<PatchDocument, 'type'>, options: WriteOptions): void {
  const apply = patch.type === 'apply';
  const wrong = (field: string, detail: string, required = false): ApiError =>
    invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      { type: required ? 'FieldValueRequired' : 'FieldValueForbidden', field, detail },
    ]);
  if (apply && options.fieldManager === '') throw wrong('fieldManager', 'is required for apply patch', true);
  if (!apply && options.force !== undefined) throw wrong('force', 'may not be specified for non-apply patch');
}
