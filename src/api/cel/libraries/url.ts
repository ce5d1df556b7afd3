/** URLs: absolute ones, and absolute paths, as Go's ParseRequestURI reads them. */
import { goQuote } from '../../meta/go-text.ts';
import { constant, TRAVERSE_ONLY } from '../cost-models.ts';
import { type Overload, overload } from '../declarations.ts';
import { defineEquality } from '../equality.ts';
import { CelEvaluationError } from '../errors.ts';
import { CelOpaque } from '../values.ts';
import { addressFault } from './address-fault.ts';
import { parseAddress } from './ip-address.ts';

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

const fail = (message: string): never => {
  throw new CelEvaluationError(message);
};

/** @throws CelEvaluationError with the reason Go gives */
function parseUrl(text: string): Url {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them anywhere
  if (/[\x00-\x1f\x7f]/.test(text)) fail('net/url: invalid control character in URL');
  if (text === '') fail('empty url');
  if (text.startsWith(':')) fail('missing protocol scheme');
  readUrl(text);
  // Only the first reading takes a fragment for a part of what it stands in.
  return { ...readUrl(text.replace(/#.*$/s, '')), text };
}

function readUrl(text: string): Url {
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1];
  const rest = scheme === undefined ? text : text.slice(scheme.length + 1);
  const mark = rest.indexOf('?');
  const before = mark === -1 ? rest : rest.slice(0, mark);
  const query = mark === -1 ? '' : rest.slice(mark + 1);
  const known = { text, scheme: (scheme ?? '').toLowerCase(), query };
  if (text === '*') return { ...known, host: '', path: '*' };
  if (!before.startsWith('/')) {
    // An opaque URL (`mailto:a`) has a scheme and neither host nor path.
    return scheme === undefined ? fail('invalid URI for request') : { ...known, host: '', path: '' };
  }
  const authority = before.startsWith('//') && scheme !== undefined;
  const slash = authority ? before.indexOf('/', 2) : 0;
  const host = authority ? hostOf(before.slice(2, slash === -1 ? undefined : slash)) : '';
  const path = slash === -1 ? '' : before.slice(slash);
  checkEscapes(path);
  return { ...known, host, path };
}

function checkEscapes(text: string): void {
  const wrong = /%(?![0-9a-fA-F]{2})/.exec(text);
  if (wrong !== null) fail(`invalid URL escape ${goQuote(text.slice(wrong.index, wrong.index + 3))}`);
}

function hostOf(authority: string): string {
  const at = authority.lastIndexOf('@');
  const host = authority.slice(at + 1);
  checkHost(host);
  const user = authority.slice(0, Math.max(at, 0));
  if (/[^A-Za-z0-9\-._:~!$&'()*+,;=%@]/.test(user)) fail('net/url: invalid userinfo');
  checkEscapes(user);
  return host;
}

function checkHost(host: string): void {
  const open = host.lastIndexOf('[');
  if (open > 0) fail('invalid IP-literal');
  const close = host.lastIndexOf(']');
  if (open === 0 && close === -1) fail("missing ']' in host");
  const port = open === 0 ? host.slice(close + 1) : (/:[^:]*$/.exec(host)?.[0] ?? '');
  if (!/^(?::[0-9]*)?$/.test(port)) fail(`invalid port ${goQuote(port)} after host`);
  checkHostText(host);
  if (open === 0) checkLiteral(host.slice(1, close));
}

/** Only characters beyond ASCII may be escaped in the name of a host. */
function checkHostText(host: string): void {
  checkEscapes(host);
  const escaped = /%(?!25)[0-7][0-9a-fA-F]/.exec(host);
  if (escaped !== null) fail(`invalid URL escape ${goQuote(escaped[0])}`);
  const wrong = /[^A-Za-z0-9\-._~!$&'()*+,;=:[\]<>"%\u0080-\uffff]/.exec(host);
  if (wrong !== null) fail(`invalid character ${goQuote(wrong[0])} in host name`);
}

function checkLiteral(text: string): void {
  const address = text.replace(/%25.*$/s, '');
  const parsed = parseAddress(address);
  if (parsed === undefined) fail(`invalid host: ${addressFault(address)}`);
  if (parsed?.family === 4) fail('invalid IP-literal');
}

function parse(text: string): Boxed {
  try {
    return new CelOpaque(NAME, parseUrl(text));
  } catch (error) {
    return fail(`URL parse error during conversion from string: ${faultText(text, error)}`);
  }
}

const faultText = (text: string, error: unknown): string =>
  `parse ${goQuote(text)}: ${(error as CelEvaluationError).message}`;

/** Why a text is no URL, in Go's words; undefined when it is one. */
export function urlFault(text: string): string | undefined {
  try {
    parseUrl(text);
    return undefined;
  } catch (error) {
    return faultText(text, error);
  }
}

const portOf = (host: string): string => /:([0-9]*)$/.exec(host.replace(/^\[.*\]/, ''))?.[1] ?? '';
const nameOf = (host: string): string =>
  host.startsWith('[') ? host.slice(1, host.indexOf(']')) : host.replace(/:[0-9]*$/, '');

const escapePath = (path: string): string =>
  path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/%[\]]/gu, (char) => encodeURIComponent(char.toWellFormed()));

function queryOf({ value }: Boxed): Record<string, string[]> {
  const result: Record<string, string[]> = {};
  for (const [key, item] of new URLSearchParams(value.query)) {
    if (Object.hasOwn(result, key)) result[key]!.push(item);
    else Object.defineProperty(result, key, { value: [item], enumerable: true, writable: true, configurable: true });
  }
  return result;
}

const ONE = constant(1);

export const URLS: readonly Overload[] = [
  overload('url', `(string): ${NAME}`, parse, TRAVERSE_ONLY),
  overload('isURL', '(string): bool', (text: string) => urlFault(text) === undefined),
  overload('getScheme', `${NAME}.(): string`, ({ value }: Boxed) => value.scheme, ONE),
  overload('getHost', `${NAME}.(): string`, ({ value }: Boxed) => value.host, ONE),
  overload('getHostname', `${NAME}.(): string`, ({ value }: Boxed) => nameOf(value.host), ONE),
  overload('getPort', `${NAME}.(): string`, ({ value }: Boxed) => portOf(value.host), ONE),
  overload('getEscapedPath', `${NAME}.(): string`, ({ value }: Boxed) => escapePath(value.path), ONE),
  overload('getQuery', `${NAME}.(): map(string, list(string))`, queryOf, ONE),
];
