/** The body of a PATCH: which kind of patch it is, parsed and bounded, and how it is applied to a document. */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { isJsonObject } from '../../api/meta/own-property.ts';
import { type ApiError, badRequest, invalid } from '../../api/meta/status.ts';
import type { Steps } from '../../api/meta/steps.ts';
import { applyJsonPatch, applyJsonPatchSteps } from '../../api/patch/json-patch.ts';
import { applyMergePatch } from '../../api/patch/merge-patch.ts';
import { applyStrategicMergePatch } from '../../api/patch/strategic-merge-patch.ts';
import {
  type ParsedJson,
  parseJson,
  parseJsonInPieces,
  parseYaml,
  parseYamlInPieces,
} from '../../api/schema/parse-json.ts';
import { bodyTooLarge, MAX_BODY_BYTES, mediaTypeOf, pauseOf, unsupportedMediaType } from './body.ts';
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

/**
 * A promise only for a large patch, which is read in pieces. Throws ApiError 413, 415, or 400 when the patch is
 * malformed.
 */
export function readPatch(exchange: Exchange, info: ResourceInfo): PatchDocument | Promise<PatchDocument> {
  const { body, headers } = exchange.request;
  const type = TYPES.get(mediaTypeOf(headers));
  const offered = acceptedTypes(exchange, info);
  if (type === undefined || !offered.some((media) => TYPES.get(media) === type)) throw unsupportedMediaType(offered);
  if (body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  const text = new TextDecoder().decode(body);
  const pause = pauseOf(exchange);
  if (pause) {
    const reading = type === 'apply' ? parseYamlInPieces(text, pause) : parseJsonInPieces(body, pause);
    return reading.then((parsed) => patchDocument(type, text, parsed));
  }
  return patchDocument(type, text, type === 'apply' ? parseYaml(text) : parseJson(body));
}

function patchDocument(type: PatchDocument['type'], text: string, parsed: ParsedJson): PatchDocument {
  if (type !== 'json' && !isJsonObject(parsed.value)) throw badRequest('the patch must be a JSON object');
  const { value, yaml = false } = parsed;
  return { type, value, text: text.slice(0, SHOWN_TEXT), duplicates: () => parsed.duplicates(), yaml };
}

function acceptedTypes(exchange: Exchange, info: ResourceInfo): string[] {
  return [...TYPES]
    .filter(([, type]) => !(type === 'strategic' && info.strategy.custom))
    .filter(([, type]) => !(type === 'apply' && exchange.server.registry.fields === undefined))
    .map(([media]) => media);
}

/** As `applyPatch`, in steps where the kind of patch has any. */
export function* applyPatchSteps(
  info: Pick<ResourceInfo, 'schema'>,
  given: { readonly document: unknown; readonly patch: PatchDocument },
): Steps<unknown> {
  const { document, patch } = given;
  return patch.type === 'json' ? yield* applyJsonPatchSteps(document, patch.value) : applyPatch(info, given);
}

/** The document after the patch; neither is changed. Throws ApiError 400, 413 or 422 as the kind of patch has it. */
export function applyPatch(
  info: Pick<ResourceInfo, 'schema'>,
  { document, patch }: { readonly document: unknown; readonly patch: PatchDocument },
): unknown {
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
export function checkPatchOptions(patch: PatchDocument, options: WriteOptions): void {
  const apply = patch.type === 'apply';
  const wrong = (field: string, detail: string, required = false): ApiError =>
    invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      { type: required ? 'FieldValueRequired' : 'FieldValueForbidden', field, detail },
    ]);
  if (apply && options.fieldManager === '') throw wrong('fieldManager', 'is required for apply patch', true);
  if (!apply && options.force !== undefined) throw wrong('force', 'may not be specified for non-apply patch');
}
