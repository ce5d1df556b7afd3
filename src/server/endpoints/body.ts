/** Request bodies: size, media type, parsing, and the checks that make a document an object of its resource. */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { apiVersionOf } from '../../api/meta/gvk.ts';
import type { UnstructuredObject } from '../../api/meta/object.ts';
import { isJsonObject } from '../../api/meta/own-property.ts';
import { ApiError, badRequest } from '../../api/meta/status.ts';
import { type ParsedJson, parseJson, parseYaml } from '../../api/schema/parse-json.ts';
import { decodeErrors } from '../../api/schema/validate.ts';
import { normalizeInput } from '../registry/normalize-input.ts';
import type { Exchange } from './exchange.ts';
import type { FieldValidation } from './query.ts';

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

/** Parses the body by its content type. Throws ApiError 413, 415, or 400 when it is malformed. */
export function parseBody(exchange: Exchange, info: ResourceInfo | undefined): ParsedJson {
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
export const JSON_AND_YAML: readonly (readonly [string, (bytes: Uint8Array) => ParsedJson])[] = [
  ['', parseJson],
  ['application/json', parseJson],
  ['application/yaml', (bytes) => parseYaml(new TextDecoder().decode(bytes))],
];

/** How a document that is wrong is reported: an ordinary body with 400, a patch result with 422. */
export interface DecodeMode {
  readonly fieldValidation: FieldValidation;
  readonly dropStatus: boolean;
  /** Leaves defaults out: an applied configuration owns only what it says. */
  readonly withoutDefaults?: boolean;
  /** Makes the error of a document that does not decode, or is refused in strict mode. */
  readonly refuse: (problem: string) => ApiError;
}

/** The body of a create or update as an object of `info`, pruned and defaulted. Throws ApiError 400, 413, 415. */
export function decodeObjectBody(
  exchange: Exchange,
  options: { readonly info: ResourceInfo; readonly fieldValidation: FieldValidation; readonly dropStatus: boolean },
): UnstructuredObject {
  const { info } = options;
  const parsed = parseBody(exchange, info);
  return admitDocument(exchange, { parsed, ...options, refuse: badRequest });
}

/** Checks and normalises a parsed document. The document is changed in place. */
export function admitDocument(
  exchange: Exchange,
  options: DecodeMode & { readonly parsed: ParsedJson; readonly info: ResourceInfo },
): UnstructuredObject {
  const { parsed, info, refuse } = options;
  const document = parsed.value;
  if (!isJsonObject(document)) {
    throw refuse(`couldn't get version/kind; json parse error: a JSON object is wanted, not ${describe(document)}`);
  }
  const object = document as UnstructuredObject;
  checkTypeMeta(info, object);
  const undecodable = decodeErrors(info.schema, object, info);
  if (undecodable !== undefined) throw refuse(undecodable);
  const unknown = normalizeInput(info, object, options);
  reportFields(exchange, { ...options, unknown });
  return object;
}

const describe = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

function checkTypeMeta(info: ResourceInfo, object: UnstructuredObject): void {
  const apiVersion = apiVersionOf(info);
  object.apiVersion ||= apiVersion;
  object.kind ||= info.kind;
  if (typeof object.apiVersion !== 'string' || typeof object.kind !== 'string') {
    throw badRequest("couldn't get version/kind; json parse error: apiVersion and kind must be strings");
  }
  if (object.apiVersion !== apiVersion) {
    throw badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${apiVersion})`,
    );
  }
  // Custom resources learn of a wrong kind from validation (422).
  if (object.kind !== info.kind && !info.strategy.custom) {
    throw badRequest(
      `${object.kind} in version "${info.version}" cannot be handled as a ${info.kind}: the request is for ${info.resource}`,
    );
  }
}

/** Unknown fields first, then duplicates: dropped silently, with a warning each, or refused all together. */
function reportFields(
  exchange: Exchange,
  options: DecodeMode & {
    readonly parsed: ParsedJson;
    readonly info: ResourceInfo;
    readonly unknown: readonly string[];
  },
): void {
  const { fieldValidation, info, unknown, parsed } = options;
  if (fieldValidation === 'Ignore') return;
  const problems = [
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
    ...parsed.duplicates().map((path) => `duplicate field ${JSON.stringify(path)}`),
  ];
  if (problems.length === 0) return;
  if (fieldValidation === 'Warn') {
    for (const problem of problems) exchange.warn(problem);
    return;
  }
  throw options.refuse(
    `${info.kind} in version "${info.version}" cannot be handled as a ${info.kind}: strict decoding error: ${problems.join(', ')}`,
  );
}
