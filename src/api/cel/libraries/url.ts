/** URLs: absolute ones, and absolute paths, as Go's ParseRequestURI reads them. */
import { constant, TRAVERSE_ONLY } from '../cost-models.ts';
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

/** Undefined when the text is no URL. */
export function parseUrl(text: string): Url | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Go refuses them anywhere
  if (text === '' || /[\x00-\x1f\x7f]/.test(text)) return undefined;
  const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1];
  const rest = scheme === undefined ? text : text.slice(scheme.length + 1);
  const mark = rest.indexOf('?');
  const before = mark === -1 ? rest : rest.slice(0, mark);
  const query = mark === -1 ? '' : rest.slice(mark + 1);
  if (!before.startsWith('/')) {
    // An opaque URL (`mailto:a`) has a scheme and neither host nor path.
    return scheme === undefined ? undefined : { text, scheme: scheme.toLowerCase(), host: '', path: '', query };
  }
  // ParseRequestURI knows no fragment: `#` is part of what it stands in.
  const authority = before.startsWith('//') && (scheme !== undefined || !before.startsWith('///'));
  const slash = authority ? before.indexOf('/', 2) : 0;
  const host = authority ? before.slice(2, slash === -1 ? undefined : slash) : '';
  const path = slash === -1 ? '' : before.slice(slash);
  if (/%(?![0-9a-fA-F]{2})/.test(path) || !isHost(host.slice(host.lastIndexOf('@') + 1))) return undefined;
  const bare = host.slice(host.lastIndexOf('@') + 1);
  return { text, scheme: (scheme ?? '').toLowerCase(), host: bare, path, query };
}

const isHost = (host: string): boolean =>
  /^(?:\[[0-9a-fA-F:.]+(?:%25[^\]]*)?\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=<>"\u0080-\uffff]|%[0-9a-fA-F]{2})*)(?::[0-9]*)?$/.test(
    host,
  );

function parse(text: string): Boxed {
  const url = parseUrl(text);
  if (url !== undefined) return new CelOpaque(NAME, url);
  throw new CelEvaluationError(
    `URL parse error during conversion from string: parse ${JSON.stringify(text)}: invalid URI for request`,
  );
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
  overload('isURL', '(string): bool', (text: string) => parseUrl(text) !== undefined),
  overload('getScheme', `${NAME}.(): string`, ({ value }: Boxed) => value.scheme, ONE),
  overload('getHost', `${NAME}.(): string`, ({ value }: Boxed) => value.host, ONE),
  overload('getHostname', `${NAME}.(): string`, ({ value }: Boxed) => nameOf(value.host), ONE),
  overload('getPort', `${NAME}.(): string`, ({ value }: Boxed) => portOf(value.host), ONE),
  overload('getEscapedPath', `${NAME}.(): string`, ({ value }: Boxed) => escapePath(value.path), ONE),
  overload('getQuery', `${NAME}.(): map(string, list(string))`, queryOf, ONE),
];
