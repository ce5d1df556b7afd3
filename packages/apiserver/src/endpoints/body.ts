/** Request bodies: size, media type, parsing, and the checks that make a document an object of its resource. */

import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { wrongType } from '@coracle/apimachinery/meta/go-text';
import { apiVersionOf, parseApiVersion } from '@coracle/apimachinery/meta/gvk';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { ApiError, badRequest, fieldErrorBody } from '@coracle/apimachinery/meta/status';
import { decodeErrors } from '@coracle/apimachinery/schema/decode-errors';
import { coerceEmbedded, hasEmbedded } from '@coracle/apimachinery/schema/embedded-resource';
import { type ParsedJson, parseJson, parseJsonInPieces, parseYaml } from '@coracle/apimachinery/schema/parse-json';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { settleNumbers } from '@coracle/apimachinery/schema/settle-numbers';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import { nextTurn } from '@coracle/runtime/clock/next-turn';
import { foreignKind, isVersionOf } from '../kinds/builtin/foreign-kind.ts';
import { normalizeInput } from '../registry/normalize-input.ts';
import type { SentBody } from '../registry/write-contract.ts';
import type { Exchange } from './exchange.ts';
import type { FieldValidation, WriteOptions } from './query.ts';

/** Largest request body, as upstream. */
export const MAX_BODY_BYTES = 3 * 1024 * 1024;

export const bodyTooLarge = (): ApiError =>
  new ApiError({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${MAX_BODY_BYTES}`,
  });

/** The media type without parameters, lower-case, '' when the header is absent. */
export function mediaTypeOf(headers: Readonly<Record<string, string>>): string {
  const header = headers['content-type'] ?? '';
  const semicolon = header.indexOf(';');
  return (semicolon < 0 ? header : header.slice(0, semicolon)).trim().toLowerCase();
}

/** What reading a body asks of its request. */
export type BodyInput = Pick<Exchange, 'warn'> & {
  readonly request: Pick<Exchange['request'], 'body' | 'headers'>;
  readonly server: Pick<Exchange['server'], 'bodyDecoders'>;
  readonly document?: Exchange['document'];
};

/** Parses the body by its content type. Throws ApiError 413, 415, or 400 when it is malformed. */
export function parseBody(exchange: BodyInput, info: ResourceInfo | undefined): ParsedJson {
  if (info === undefined && exchange.document) return exchange.document();
  const { body, headers } = exchange.request;
  if (body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  const type = mediaTypeOf(headers);
  const decode = exchange.server.bodyDecoders.get(type);
  if (!decode) throw unsupportedMediaType([...exchange.server.bodyDecoders.keys()]);
  return decode(body, info);
}

export const unsupportedMediaType = (accepted: readonly string[]): ApiError =>
  new ApiError({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted
      .filter((type) => type !== '')
      .join(', ')}`,
  });

/** The decoders every server has. An empty content type means JSON. */
export const JSON_AND_YAML: readonly (readonly [string, (bytes: Uint8Array, info?: ResourceInfo) => ParsedJson])[] = [
  ['', parseJsonBody],
  ['application/json', parseJsonBody],
  ['application/yaml', (bytes, info) => parseYaml(new TextDecoder().decode(bytes), info?.strategy)],
];

/** The numbers of a built-in kind are validated once their types are known. */
function parseJsonBody(bytes: Uint8Array, info?: ResourceInfo): ParsedJson {
  return parseJson(bytes, info && !info.strategy.custom ? { validatedByType: true } : (info?.strategy ?? {}));
}

/** How a document that is wrong is reported: an ordinary body with 400, a patch result with 422. */
export interface DecodeMode {
  readonly fieldValidation: FieldValidation;
  readonly dropStatus: boolean;
  /** Leaves defaults out: an applied configuration owns only what it says. */
  readonly withoutDefaults?: boolean;
  /** Leaves nulls in: an applied configuration owns what it sets to null. */
  readonly keepNulls?: boolean;
  /** A configuration for server-side apply: always read as YAML, and its duplicates are reported in other words. */
  readonly applied?: boolean;
  /** The result of a patch: of a document, or of an object (strategic), whose unknown fields are reported by name. */
  readonly ofPatch?: 'document' | 'object';
  /** Of the result of a patch: sentences about the patch itself, reported before those about the result. */
  readonly patchProblems?: () => string[];
  /** Makes the error of a document that does not decode, or is refused in strict mode. */
  readonly refuse: (problem: string) => ApiError;
}

/**
 * The body of a create or update as an object of `info`, pruned and defaulted. A promise only for a large body, which another
 * thread reads. Throws ApiError 400, 413, 415.
 */
export function decodeObjectBody(
  exchange: Exchange,
  options: BodyOptions,
): UnstructuredObject | Promise<UnstructuredObject> {
  const { elsewhere } = exchange.server.registry;
  if (!exchange.isLarge || elsewhere === undefined) return decodeBody(exchange, options);
  const { info, dropStatus, older, fieldValidation } = options;
  const sent = sentBody(exchange, 'create', { fieldValidation });
  return elsewhere.decode({ info, dropStatus, older, sent, client: exchange, warn: exchange.warn });
}

/** The body with what decides how it is read, for another thread. Throws ApiError 413. */
export function sentBody(
  { request }: Pick<Exchange, 'request'>,
  verb: SentBody['verb'],
  { fieldValidation, force = false }: Partial<Pick<WriteOptions, 'force'>> & Pick<WriteOptions, 'fieldValidation'>,
): SentBody {
  if (request.body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  return { verb, type: request.headers['content-type'] ?? '', bytes: request.body, fieldValidation, force };
}

/** As `decodeObjectBody`, here and now. */
export function decodeBody(exchange: BodyInput, { info, older, ...options }: BodyOptions): UnstructuredObject {
  const parsed = parseObject(exchange, info);
  const isOlder = older && isJsonObject(parsed.value) && parsed.value['apiVersion'] === apiVersionOf(older);
  return admitDocument(exchange, { parsed, ...options, info: isOlder ? older : info, refuse: badRequest });
}

export interface BodyOptions {
  readonly info: ResourceInfo;
  readonly fieldValidation: FieldValidation;
  readonly dropStatus: boolean;
  /** Another version of the kind that is taken as it is. */
  readonly older?: ResourceInfo | undefined;
}

/** Reads a large body that is no object of the resource, for whoever asks `parseBody` for it. */
export async function readDocument(exchange: Exchange): Promise<void> {
  try {
    const parsed = await readLarge(exchange);
    exchange.document = () => parsed;
  } catch (error) {
    exchange.document = () => {
      throw error;
    };
  }
}

async function readLarge(exchange: Exchange): Promise<ParsedJson> {
  const { body, headers } = exchange.request;
  const decode = exchange.server.bodyDecoders.get(mediaTypeOf(headers));
  if (body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  const read = exchange.readElsewhere;
  if (decode === parseJsonBody) return parseJsonInPieces(body, nextTurn);
  if (decode === undefined || read === undefined) return parseBody(exchange, undefined);
  const { json, duplicates } = await read({ type: mediaTypeOf(headers), bytes: body });
  const { value } = await parseJsonInPieces(json, nextTurn);
  return { value, duplicates: () => [...duplicates] };
}

/** What does not parse is reported as an object whose kind is not known (apiserver's transformDecodeError). */
function parseObject(exchange: BodyInput, info: ResourceInfo): ParsedJson {
  try {
    return parseBody(exchange, info);
  } catch (error) {
    if (!(error instanceof ApiError) || !error.message.startsWith('json parse error')) throw error;
    throw badRequest(unrecognized(info, `couldn't get version/kind; ${error.message.replace(JSON_PLACE, '')}`));
  }
}

/** Where the parser stopped, which Go does not tell. */
const JSON_PLACE = / \(line [0-9]+, column [0-9]+\)$/;

const unrecognized = ({ kind }: ResourceInfo, problem: string): string =>
  `the object provided is unrecognized (must be of type ${kind}): ${problem}`;

type DocumentOptions = DecodeMode & { readonly parsed: ParsedJson; readonly info: ResourceInfo };

/** Checks and normalises a parsed document. The document is changed in place. */
export function admitDocument(exchange: Pick<BodyInput, 'warn'>, options: DocumentOptions): UnstructuredObject {
  const object = documentObject(options);
  const { info, refuse, parsed } = options;
  const undecodable = decodeErrors(info.decodeSchema ?? info.schema, object, info, parsed.numbers);
  if (undecodable !== undefined) throw refuse(undecodable);
  refuseEmbedded(options, object);
  if (parsed.numbers !== undefined) settleNumbers(info.schema, object, parsed.numbers);
  reportFields(exchange, { ...options, unknown: normalizeInput(info, object, options) });
  return object;
}

/** The metadata of objects inside of a custom resource is decoded with it. */
function refuseEmbedded({ info, refuse, applied }: DocumentOptions, object: UnstructuredObject): void {
  if (applied || !info.strategy.custom || !hasEmbedded(info.schema)) return;
  const wrong = coerceEmbedded(cloneJson(object), info.schema, { path: '', whole: false });
  if (wrong === undefined) return;
  const problem = `${wrong.field}: ${fieldErrorBody(wrong)}`;
  throw refuse(`${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: ${problem}`);
}

function documentObject(options: DocumentOptions): UnstructuredObject {
  const { parsed, info, refuse } = options;
  // Go reads null into a struct as nothing: an object that says nothing.
  const document = parsed.value === null && !info.strategy.custom ? {} : parsed.value;
  if (!isJsonObject(document)) {
    if (document === null) throw refuse(unrecognized(info, NO_KIND));
    throw refuse(unrecognized(info, `couldn't get version/kind; json parse error: ${wrongType(document, 'object')}`));
  }
  const object = document as UnstructuredObject;
  checkTypeMeta(info, object, options);
  return object;
}

function checkTypeMeta(info: ResourceInfo, object: UnstructuredObject, mode: DecodeMode): void {
  const { refuse, ofPatch } = mode;
  const apiVersion = apiVersionOf(info);
  for (const key of Object.keys(object)) {
    const value = object[key];
    if ((key !== 'apiVersion' && key !== 'kind') || typeof value === 'string' || value === null) continue;
    const why = `couldn't get version/kind; json parse error: ${wrongType(value, 'string', key)}`;
    throw refuse(ofPatch === undefined ? unrecognized(info, why) : why);
  }
  // Custom resources must say what they are, built-in ones need not: nothing else tells an unstructured object's kind.
  const mustTell = info.strategy.custom && ofPatch === undefined && !mode.applied;
  if (mustTell && !object.kind) throw refuse(unrecognized(info, NO_KIND));
  if (!mustTell) object.apiVersion ||= apiVersion;
  object.kind ||= info.kind;
  const isOther = object.apiVersion !== apiVersion || object.kind !== info.kind;
  if (ofPatch !== undefined && isOther && !info.strategy.custom) {
    if (ofPatch === 'document') throw refuse(foreignKind(info, object));
    // A strategic patch makes an object of the type it began with, whatever it calls it.
    Object.assign(object, { apiVersion, kind: info.kind });
  }
  if (isOther && ofPatch === undefined && !info.strategy.custom && !mode.applied) requireKind(info, object);
  if (object.apiVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${object.apiVersion ?? ''}) does not match the expected API version (${apiVersion})`,
    );
  }
  // Custom resources learn of a wrong kind from validation (422).
  if (object.kind !== info.kind && !info.strategy.custom) {
    throw badRequest(
      `${object.kind} in version "${info.version}" cannot be handled as a ${info.kind}: the request is for ${info.resource}`,
    );
  }
}

const NO_KIND = "Object 'Kind' is missing";

/** A body for a built-in kind must be one of its versions, or it cannot be converted. Throws ApiError 400. */
function requireKind(info: ResourceInfo, object: UnstructuredObject): void {
  if (isVersionOf(info, object)) return;
  const { version } = parseApiVersion(object.apiVersion);
  throw badRequest(
    `${object.kind} in version "${version}" cannot be handled as a ${info.kind}: ${foreignKind(info, object)}`,
  );
}

/** More than this many warnings of unknown fields do not fit into the header, however short they are. */
const SHOWN_WARNINGS = 1000;

/** Duplicates, then unknown fields: dropped silently, with a warning each, or refused all together. */
function reportFields(
  exchange: Pick<BodyInput, 'warn'>,
  options: DocumentOptions & { readonly unknown: readonly string[] },
): void {
  const { fieldValidation, info, unknown, parsed } = options;
  if (fieldValidation === 'Ignore') return;
  const duplicates = options.patchProblems ? [] : duplicatesOf(parsed, info);
  const patchProblems = options.patchProblems?.() ?? [];
  if (unknown.length === 0 && duplicates.length === 0 && patchProblems.length === 0) return;
  const reported = fieldValidation === 'Warn' ? unknown.slice(0, SHOWN_WARNINGS) : unknown;
  const fields = reported.map((path) => `unknown field ${JSON.stringify(path)}`);
  const repeated = parsed.yaml ? duplicates : duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`);
  if (fieldValidation === 'Warn') {
    for (const problem of [...patchProblems, ...repeated, ...fields]) exchange.warn(problem);
    return;
  }
  const inYaml = `yaml: unmarshal errors:\n${duplicates.map((line) => `  ${line}`).join('\n')}`;
  if (options.applied) throw options.refuse(`error strict decoding YAML: error converting YAML to JSON: ${inYaml}`);
  const before = parsed.yaml && duplicates.length > 0 ? [inYaml] : [...patchProblems, ...repeated];
  const problems = [...before, ...fields];
  throw options.refuse(
    `${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: strict decoding error: ${problems.join(', ')}`,
  );
}

/** What is given twice and looked at: of content of any form in a built-in kind, Go keeps the bytes. */
function duplicatesOf(parsed: ParsedJson, { schema, strategy }: ResourceInfo): string[] {
  const duplicates = parsed.duplicates();
  if (parsed.yaml || strategy.custom || duplicates.length === 0) return duplicates;
  return duplicates.filter((path) => !isOpaque(schema, path));
}

/** Whether the member at a path lies in content of any form. */
function isOpaque(schema: Schema, path: string): boolean {
  let node: Schema | undefined = schema;
  for (const segment of path.split(SEGMENT)) {
    if (segment === '') continue;
    if (node === undefined) return false;
    if (node['x-kubernetes-preserve-unknown-fields']) return true;
    if (node.items !== undefined) node = node.items;
    else if (node.properties !== undefined && Object.hasOwn(node.properties, segment)) node = node.properties[segment];
    else node = typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined;
  }
  return false;
}

const SEGMENT = /\.|\[|\]\.?/;
