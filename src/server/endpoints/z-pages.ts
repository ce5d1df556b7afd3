/** /statusz and /flagz (KEP-4827, KEP-4828): since when which version runs, and with which flags; as text, or as an object. */
import type { VersionInfo } from '../../api/kinds/discovery/version-info.ts';
import { formatTime } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import type { Clock } from '../../base/clock/clock.ts';
import type { ApiResponse } from '../../base/http/seam.ts';
import type { Exchange } from './exchange.ts';
import { parseAccept } from './negotiation.ts';
import { encodedResponse, textResponse } from './responses.ts';

/** What the pages are named after; upstream's is its generic server's name, not the program's. */
const COMPONENT = 'apiserver';
const GROUP = 'config.k8s.io';
const VERSIONS: ReadonlySet<string> = new Set(['v1alpha1', 'v1beta1']);
const ACCEPTED = 'application/json, application/yaml, text/plain';
/** Roots that are the API itself: /statusz does not list them. */
const API_ROOTS: ReadonlySet<string> = new Set(['/apis', '/api', '/openid', '/openapi', '/.well-known']);

export interface ZPageParts {
  readonly version: VersionInfo;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly clock: Pick<Clock, 'now'>;
  /** Flags that the server was started with, by name; nothing secret. */
  readonly flags: Readonly<Record<string, string>>;
  /** All paths that the index lists. */
  readonly paths: () => readonly string[];
}

/**
 * Answers `/statusz` and `/flagz`, whatever the method; undefined for other paths. Text unless a `Statusz` or `Flagz` of
 * config.k8s.io is asked for. Throws ApiError 406 when neither is accepted.
 */
export function zPageResponse(exchange: Exchange, parts: ZPageParts): ApiResponse | undefined {
  switch (exchange.request.path) {
    case '/statusz':
      return page(exchange, 'Statusz', () => statusz(parts));
    case '/flagz':
      return page(exchange, 'Flagz', () => flagz(parts));
    default:
      return undefined;
  }
}

interface Page {
  /** Below the heading. */
  readonly text: string;
  /** Beside kind, apiVersion and metadata. */
  readonly fields: object;
}

type Form =
  | { readonly as: 'text' }
  | { readonly as: 'object'; readonly encoding: 'json' | 'yaml'; readonly version: string };

function page(exchange: Exchange, kind: string, make: () => Page): ApiResponse {
  const form = formOf(exchange.request.headers['accept'] ?? '', kind);
  const { text, fields } = make();
  if (form.as === 'text') return textResponse(200, `\n${COMPONENT} ${kind.toLowerCase()}\n${WARNING}\n${text}`);
  const object = { kind, apiVersion: `${GROUP}/${form.version}`, metadata: { name: COMPONENT }, ...fields };
  return encodedResponse({
    status: 200,
    bytes: new TextEncoder().encode(JSON.stringify(object)),
    // Upstream's z-pages are written to be read.
    representation: { encoding: form.encoding, pretty: true },
  });
}

const WARNING =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';

/** The first form of the Accept header that there is. */
function formOf(accept: string, kind: string): Form {
  if (accept.trim() === '') return { as: 'text' };
  for (const { type, parameters } of parseAccept(accept)) {
    const as = parameters.get('as');
    const version = parameters.get('v') ?? '';
    const isPlain = as === undefined && !parameters.has('g') && !parameters.has('v');
    if (isPlain && (type === 'text/plain' || type === 'text/*' || type === '*/*')) return { as: 'text' };
    if (as !== kind || parameters.get('g') !== GROUP || !VERSIONS.has(version)) continue;
    if (type === 'application/yaml') return { as: 'object', encoding: 'yaml', version };
    if (type === 'application/json' || type === 'application/*' || type === '*/*')
      return { as: 'object', encoding: 'json', version };
  }
  throw new ApiError({
    code: 406,
    reason: 'NotAcceptable',
    message: `only the following media types are accepted: ${ACCEPTED}`,
  });
}

function statusz({ version, startedAt, clock, paths }: ZPageParts): Page {
  const seconds = Math.max(0, Math.floor((clock.now() - startedAt) / 1000));
  const roots = [...new Set(paths().map((path) => `/${path.split('/')[1] ?? ''}`))]
    .filter((root) => root !== '/' && !API_ROOTS.has(root))
    .sort();
  const binaryVersion = version.gitVersion.replace(/^v|[-+].*$/g, '');
  const emulationVersion = `${version.emulationMajor}.${version.emulationMinor}`;
  const two = (value: number): string => String(value).padStart(2, '0');
  const lines = {
    Started: unixDate(new Date(startedAt)),
    Up: `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`,
    'Go version': version.goVersion,
    'Binary version': binaryVersion,
    'Emulation version': emulationVersion,
    Paths: roots.join(' '),
  };
  return {
    text: `\n${Object.entries(lines)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join('')}`,
    fields: {
      startTime: formatTime(startedAt),
      uptimeSeconds: seconds,
      goVersion: version.goVersion,
      binaryVersion,
      emulationVersion,
      paths: roots,
    },
  };
}

function flagz({ flags }: ZPageParts): Page {
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    text: sorted.map(([name, value]) => `${name}: ${value}\n`).join(''),
    fields: sorted.length === 0 ? {} : { flags: Object.fromEntries(sorted) },
  };
}

/** `Mon Jan  2 15:04:05 UTC 2006`, as Go's time.UnixDate. */
function unixDate(date: Date): string {
  const [day = '', of = '', month = '', year = '', time = ''] = date.toUTCString().split(' ');
  return `${day.slice(0, 3)} ${month} ${String(Number(of)).padStart(2)} ${time} UTC ${year}`;
}
