/** Accept: which shape (object, Table, PartialObjectMetadata) in which encoding a client will read. */

import { ApiError, type Status } from '@coracle/apimachinery/meta/status';
import { PROTOBUF } from '../kinds/protobuf/documents.ts';

/** How a response is written. */
export interface Representation {
  readonly as: 'object' | 'table' | 'partial';
  /** The client asked for PartialObjectMetadataList: fits a list and nothing else. */
  readonly list?: boolean;
  /** Version of meta.k8s.io for Table and PartialObjectMetadata. */
  readonly version: 'v1' | 'v1beta1';
  readonly encoding: 'json' | 'yaml' | 'protobuf';
  readonly pretty: boolean;
}

export interface NegotiationScope {
  /** False where neither Table nor PartialObjectMetadata can be made of the answer. */
  readonly transforms?: boolean;
  /** False where Tables alone cannot be made of it: of a WatchList. */
  readonly tables?: boolean;
  /** A stream of events: YAML cannot carry it. */
  readonly stream?: boolean;
  /** What of the answer has a protobuf form: everything, its metadata alone (custom resources), or nothing. */
  readonly protobuf?: 'all' | 'metadata' | 'none';
  /** Media types that upstream's router knows of the route: it refuses all others before anything is looked at. */
  readonly produces?: string;
}

interface Clause {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly q: number;
}

export const PLAIN: Representation = { as: 'object', version: 'v1', encoding: 'json', pretty: false };
const PLAIN_PRETTY: Representation = { ...PLAIN, pretty: true };

/** Parsed headers: clients send a handful of different ones, so each is parsed once. At most this many are kept. */
const CACHE_SIZE = 256;
const cache = new Map<string, readonly Clause[]>();

export const ACCEPTED_MEDIA_TYPES = 'application/json, application/yaml, application/vnd.kubernetes.protobuf';

/** Of what upstream's router lists or watches. */
export const PRODUCED_BY_LISTS = `${ACCEPTED_MEDIA_TYPES}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch`;

const notAcceptable = (message: string, details?: Status['details']): ApiError =>
  new ApiError({ code: 406, reason: 'NotAcceptable', message, ...(details && { details }) });

/** Throws ApiError 406, in the words of upstream's router, when no media type of the header is one of `produces`. */
function requireProduced(accept: string, produces: string): void {
  const types = accept.split(',').map((clause) => clause.split(';')[0]!.trim());
  if (types.some((type) => type === '*/*' || (type !== '' && produces.split(', ').includes(type)))) return;
  throw notAcceptable(`406: Not Acceptable\n\nAvailable representations: ${produces}`, {});
}

/** True for a client that says nothing of what it takes, or takes JSON before all else. */
export const takesJson = (accept: string | undefined): boolean =>
  accept === undefined || accept === 'application/json' || accept === '*/*' || accept === '';

const ACCEPTED_STREAMS = 'application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch';

/** Throws ApiError 406 when the client accepts nothing that can be given. */
export function negotiate(
  headers: Readonly<Record<string, string>>,
  scope: NegotiationScope & { readonly pretty: boolean },
): Representation {
  const { accept } = headers;
  if (accept === undefined || takesJson(accept)) return scope.pretty ? PLAIN_PRETTY : PLAIN;
  if (scope.produces !== undefined) requireProduced(accept, scope.produces);
  const clauses = parseAccept(accept);
  for (const clause of clauses) {
    const found = represent(clause, scope);
    if (!found) continue;
    if (found.encoding === 'protobuf') return jsonInstead(found, { clauses, scope }) ?? found;
    return scope.pretty && !found.pretty ? { ...found, pretty: true } : found;
  }
  const accepted = scope.stream ? ACCEPTED_STREAMS : ACCEPTED_MEDIA_TYPES;
  throw notAcceptable(`only the following media types are accepted: ${accepted}`);
}

/**
 * The same shape in JSON, when the client takes that too: stored objects are JSON bytes already, while protobuf would be
 * made anew for each reader. Not for metadata, which is made anew in either: items of its lists name their kind in JSON
 * and cannot in protobuf, so client-go's metadata client would tell what it listed from what it got by name.
 */
function jsonInstead(
  wanted: Representation,
  { clauses, scope }: { readonly clauses: readonly Clause[]; readonly scope: NegotiationScope },
): Representation | undefined {
  if (wanted.as === 'partial') return undefined;
  return clauses
    .map((clause) => represent(clause, scope))
    .find(
      (found) =>
        found?.encoding === 'json' &&
        found.as === wanted.as &&
        found.list === wanted.list &&
        found.version === wanted.version,
    );
}

/**
 * Throws ApiError 406 when metadata was asked for in the wrong number: of one object while the answer is a list, or the
 * other way round.
 */
export function checkPartial({ as, list = false }: Representation, isList: boolean): void {
  if (as !== 'partial' || list === isList) return;
  throw notAcceptable(
    isList
      ? 'you requested PartialObjectMetadata, but the requested object is a list'
      : 'you requested PartialObjectMetadataList, but the requested object is not a list',
  );
}

/** The clauses of an Accept header, best first. */
export function parseAccept(accept: string): readonly Clause[] {
  const known = cache.get(accept);
  if (known) return known;
  const clauses = accept
    .split(',')
    .map(parseClause)
    .filter((clause) => clause.q > 0)
    .sort((a, b) => b.q - a.q);
  if (cache.size >= CACHE_SIZE) cache.delete(cache.keys().next().value!);
  cache.set(accept, clauses);
  return clauses;
}

function parseClause(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = new Map<string, string>();
  for (const parameter of rest) {
    const equals = parameter.indexOf('=');
    if (equals > 0)
      parameters.set(parameter.slice(0, equals).toLowerCase(), parameter.slice(equals + 1).replaceAll('"', ''));
  }
  const q = Number(parameters.get('q') ?? 1);
  return { type: type.toLowerCase(), parameters, q: Number.isNaN(q) ? 0 : q };
}

function represent(clause: Clause, scope: NegotiationScope): Representation | undefined {
  const encoding = encodingOf(clause.type, scope);
  if (!encoding) return undefined;
  const stream = clause.parameters.get('stream');
  if (stream !== undefined && stream !== 'watch') return undefined;
  const pretty = clause.parameters.get('pretty') === '1';
  const as = clause.parameters.get('as');
  if (as === undefined) {
    // Half a kind to turn the answer into is none that can be met.
    if (clause.parameters.has('g') || clause.parameters.has('v')) return undefined;
    return encoding === 'protobuf' && scope.protobuf !== 'all' ? undefined : { ...PLAIN, encoding, pretty };
  }
  const version = clause.parameters.get('v');
  if (scope.transforms === false || clause.parameters.get('g') !== 'meta.k8s.io') return undefined;
  if (version !== 'v1' && version !== 'v1beta1') return undefined;
  if (as === 'Table') {
    return encoding === 'protobuf' || scope.tables === false ? undefined : { as: 'table', version, encoding, pretty };
  }
  if (as === 'PartialObjectMetadata') return { as: 'partial', version, encoding, pretty };
  return as === 'PartialObjectMetadataList' ? { as: 'partial', list: true, version, encoding, pretty } : undefined;
}

function encodingOf(type: string, scope: NegotiationScope): Representation['encoding'] | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json';
  if (type === PROTOBUF) return (scope.protobuf ?? 'none') === 'none' ? undefined : 'protobuf';
  return type === 'application/yaml' && !scope.stream ? 'yaml' : undefined;
}

/** Bodies below this size, in bytes, are sent as they are. */
export const COMPRESS_FROM_BYTES = 128 * 1024;

/** True when the client can read gzip. Upstream looks for that word alone: not with a weight, whatever that is. */
export const acceptsGzip = ({ 'accept-encoding': accepted }: Readonly<Record<string, string>>): boolean =>
  accepted?.split(',').some((coding) => coding.trim() === 'gzip') ?? false;

/** What Go's strconv reads as true. */
const GO_TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);

/** True when a person is likely to read the answer: `?pretty`, or a browser, curl or wget without an opinion. */
export function wantsPretty(headers: Readonly<Record<string, string>>, pretty: string | null): boolean {
  if (pretty) return GO_TRUE.has(pretty);
  const agent = headers['user-agent'];
  return agent !== undefined && /^(curl|Wget|Mozilla\/5\.0)/.test(agent);
}
