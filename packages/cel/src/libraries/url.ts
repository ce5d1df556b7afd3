/** URLs: absolute ones, and absolute paths, as Go's ParseRequestURI reads them. */
import { goQuote } from '@coracle/apimachinery/meta/go-text';
import { parseAddress } from '@coracle/apimachinery/meta/ip-address';
import { setOwn } from '@coracle/apimachinery/meta/own-property';
import { ONE, TRAVERSE_ONLY } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelOpaque } from '../values.ts';

const NAME = 'kubernetes.URL';

interface Url {
  readonly text: string;
  readonly scheme: string;
  readonly host: string;
  readonly path: string;
  readonly query: string;
}

type Boxed = CelOpaque<Url>;
defineEquality(NAME, (a, b) => (a as Url).text === (b as Url).text);

/** An absolute URL or an absolute path, as Go's ParseRequestURI reads them; undefined for any other text. */
function parseUrl(text: string): Url | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them anywhere
  if (/[\x00-\x1f\x7f]/.test(text) || readUrl(text) === undefined) return undefined;
  // Only the first reading takes a fragment for a part of what it stands in.
  const read = readUrl(text.replace(/#.*$/s, ''));
  return read && { ...read, text };
}

function readUrl(text: string): Url | undefined {
  const [, scheme, before = '', query = ''] = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?([^?]*)\??(.*)$/s.exec(text)!;
  const known = { text, scheme: (scheme ?? '').toLowerCase(), query };
  if (text === '*') return { ...known, host: '', path: '*' };
  // An opaque URL (`mailto:a`) has a scheme and neither host nor path.
  if (!before.startsWith('/')) return scheme === undefined ? undefined : { ...known, host: '', path: '' };
  const [, authority = '', path = before] = (scheme !== undefined && /^\/\/([^/]*)(.*)$/s.exec(before)) || [];
  const [, user = '', host = ''] = /^(?:(.*)@)?(.*)$/s.exec(authority)!;
  if (!hasValidEscapes(path) || !hasValidEscapes(user) || !isHost(host)) return undefined;
  return /[^A-Za-z0-9\-._~:!$&'()*+,;=%@]/.test(user) ? undefined : { ...known, host, path };
}

const hasValidEscapes = (text: string): boolean => !/%(?![0-9a-fA-F]{2})/.test(text);

function isHost(host: string): boolean {
  // Only characters beyond ASCII, and the percent sign of a zone, may be escaped in the name of a host.
  if (!hasValidEscapes(host) || /%(?!25)[0-7]/.test(host)) return false;
  if (/[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/.test(host)) return false;
  const literal = /^\[([^[]*)\](.*)$/s.exec(host);
  if (literal === null && host.includes('[')) return false;
  const port = literal === null ? (/:[^:]*$/.exec(host)?.[0] ?? '') : literal[2]!;
  if (!/^(?::[0-9]*)?$/.test(port)) return false;
  return literal === null || parseAddress(literal[1]!.replace(/%25.*$/s, ''))?.family === 6;
}

function parse(text: string): Boxed {
  const url = parseUrl(text);
  if (url !== undefined) return new CelOpaque(NAME, url);
  throw new CelEvaluationError(`URL parse error during conversion from string: ${urlProblem(text)}`);
}

/** Why a text is no URL; undefined when it is one. */
export const urlProblem = (text: string): string | undefined =>
  parseUrl(text) === undefined ? `parse ${goQuote(text)}: invalid URI for request` : undefined;

const portOf = (host: string): string => /:([0-9]*)$/.exec(host.replace(/^\[.*\]/, ''))?.[1] ?? '';
const nameOf = (host: string): string =>
  host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:[0-9]*$/, '');

const escapePath = (path: string): string =>
  path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%[\]]/gu, (char) => encodeURIComponent(char.toWellFormed()));

function queryOf({ value }: Boxed): Record<string, string[]> {
  const result: Record<string, string[]> = {};
  for (const [key, item] of new URLSearchParams(value.query)) {
    if (Object.hasOwn(result, key)) result[key]!.push(item);
    else setOwn(result, key, [item]);
  }
  return result;
}

export const URLS: readonly Overload[] = [
  overload('url', `(string): ${NAME}`, parse, TRAVERSE_ONLY),
  overload('isURL', '(string): bool', (text: string) => parseUrl(text) !== undefined),
  overload('getScheme', `${NAME}.(): string`, ({ value }: Boxed) => value.scheme, ONE),
  overload('getHost', `${NAME}.(): string`, ({ value }: Boxed) => value.host, ONE),
  overload('getHostname', `${NAME}.(): string`, ({ value }: Boxed) => nameOf(value.host), ONE),
  overload('getPort', `${NAME}.(): string`, ({ value }: Boxed) => portOf(value.host), ONE),
  overload('getEscapedPath', `${NAME}.(): string`, ({ value }: Boxed) => escapePath(value.path), ONE),
  overload('getQuery', `${NAME}.(): map(string, list(string))`, queryOf, ONE),
];
