/**
 * `pods/{id}/proxy` and `services/{id}/proxy`: a request passed on to a web server in a Pod (apiserver's
 * UpgradeAwareHandler); `nodes/{id}/proxy`: to what runs Pods on the node. No address out of an object is dialled: the
 * Pod's own node is asked, by the Pod's name, and it knows where that Pod is reached.
 */

import type { DeepReadonly, UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { badRequest } from '@coracle/apimachinery/meta/status';
import type { Node, PodParts } from '@coracle/apimachinery/types/types';
import { endToEnd } from '@coracle/runtime/http/hop-by-hop';
import type { ApiRequest, ApiResponse } from '@coracle/runtime/http/seam';
import { offeredProtocols } from '../../auth/header-values.ts';
import { bodyTooLarge, MAX_BODY_BYTES } from '../body.ts';
import type { Exchange } from '../exchange.ts';
import { askNode } from './ask-node.ts';
import { storedObject } from './get.ts';
import { type ProxyId, parseProxyId, unavailable } from './proxy-id.ts';
import { podBehind } from './service-pods.ts';

/** What a node is sent besides the request: where in the Pod it goes. Says so of an answer of the Pod's own. */
const TARGET_HEADER = 'coracle-proxy-path';
const ANSWER_HEADER = 'coracle-proxied';

type Pod = Readonly<UnstructuredObject> & PodParts;

/** Passes the request on. Throws ApiError: 400 for an id, port or address that cannot be, 503 when nothing answers. */
export async function proxyVerb(exchange: Exchange): Promise<ApiResponse> {
  const { info, request } = exchange;
  const id = parseProxyId(info.name);
  if (!id) throw badRequest(`invalid ${info.resource.slice(0, -1)} request ${JSON.stringify(info.name)}`);
  const { nodeName, route, hosts, missing } = info.resource === 'nodes' ? nodeAt(exchange, id) : podAt(exchange, id);
  const { path, prefix } = pathBehind(info.path, info.parts.length);
  const upgrades = request.upgradable === true || request.upgradeTo !== undefined;
  if (path === '' && !upgrades && (request.method === 'GET' || request.method === 'HEAD')) {
    const query = request.query === '' ? '' : `?${request.query}`;
    return { status: 301, headers: { ...CONFINED, location: `${info.path}/${query}` } };
  }
  // What is longer has been cut off on its way in: passed on, it would be another request.
  if (request.body.length > MAX_BODY_BYTES) throw bodyTooLarge();
  const answer = await askNode(exchange, nodeName, {
    method: request.method,
    path: `/${route.map(encodeURIComponent).join('/')}`,
    // Not in the path: dots in it could lead elsewhere on the node.
    headers: { ...passedHeaders(exchange), [TARGET_HEADER]: path === '' ? '/' : path },
    body: request.body,
  }).catch((error: Error) => {
    throw unavailable(`error trying to reach service: ${error.message.replace(/^Internal error occurred: /, '')}`);
  });
  if (!answer) throw unavailable(`error trying to reach service: ${missing}`);
  if (!answer.upgrade && answer.headers[ANSWER_HEADER] === undefined) {
    return { ...answer, headers: { ...answer.headers, ...CONFINED } };
  }
  const headers = answeredHeaders(answer, { prefix, hosts: [...hosts, hostOf(request)] });
  const cookies = answer.cookies?.map((cookie) => confinedCookie(cookie, prefix));
  return { ...answer, headers, ...(cookies && { cookies }) };
}

/** Where a request goes. */
interface Destination {
  readonly nodeName: string;
  /** The node's own path for it, by segments. */
  readonly route: readonly string[];
  /** By which the far end may call itself in a redirect. */
  readonly hosts: readonly string[];
  /** Why there is no answer when the node has none. */
  readonly missing: string;
}

function podAt(exchange: Exchange, id: ProxyId): Destination {
  const { pod, port } = exchange.info.resource === 'pods' ? podOf(exchange, id) : podBehind(exchange, id);
  const { status = {}, spec = {}, metadata } = pod as Pod;
  const address = status.podIPs?.[0]?.ip ?? status.podIP ?? '';
  if (address === '') throw badRequest('address not allowed');
  return {
    nodeName: spec.nodeName ?? '',
    route: ['podProxy', metadata.namespace ?? '', metadata.name ?? '', id.scheme || 'http', String(port)],
    hosts: [address],
    missing: `pod ${JSON.stringify(metadata.name)} is not running`,
  };
}

/** Of a node only its agent answers, by the port that it names itself; other ports of the host are nobody's business. */
function nodeAt(exchange: Exchange, { name, port }: ProxyId): Destination {
  const { status } = storedObject(exchange, name).object as DeepReadonly<Node>;
  const own = status?.daemonEndpoints?.kubeletEndpoint?.Port;
  if (port !== '' && port !== String(own)) {
    throw unavailable(`error trying to reach service: node ${JSON.stringify(name)} serves nothing on port ${port}`);
  }
  return { nodeName: name, route: ['nodeProxy'], hosts: [], missing: `node ${JSON.stringify(name)} has no agent` };
}

function podOf(exchange: Exchange, { name, port, scheme }: ProxyId): { pod: Pod; port: number } {
  const pod = storedObject(exchange, name).object as Pod;
  if (port !== '') return { pod, port: portNumber(port, exchange.info.name) };
  const declared = pod.spec?.containers?.flatMap(({ ports = [] }) => ports)[0]?.containerPort;
  return { pod, port: declared ?? (scheme === 'https' ? 443 : 80) };
}

function portNumber(text: string, id: string): number {
  const number = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > 65_535) throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  return number;
}

/** The path behind `proxy`, as sent, and all before it. `parts` counts the segments from the resource on. */
function pathBehind(path: string, parts: number): { readonly path: string; readonly prefix: string } {
  const segments = path.split('/').filter((segment) => segment !== '').length;
  let at = 0;
  for (let left = segments - parts + 3; left > 0; left--) {
    while (path[at] === '/') at++;
    while (at < path.length && path[at] !== '/') at++;
  }
  return { path: path.slice(at), prefix: path.slice(0, at) };
}

/** Whoever the user is was settled here: nothing that proves it, or claims it, goes on. */
const isOurs = (name: string, value: string): boolean =>
  /^(?::|x-remote-|impersonate-|coracle-|(?:host|content-length|expect)$)/.test(name) ||
  (name === 'authorization' && /^bearer\b/i.test(value));

function passedHeaders({ request, info }: Exchange): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(endToEnd(request.headers))) {
    if (!isOurs(name, value)) headers[name] = value;
  }
  const protocols = offeredProtocols(headers['sec-websocket-protocol']);
  if (protocols.length > 0) headers['sec-websocket-protocol'] = protocols.join(', ');
  else delete headers['sec-websocket-protocol'];
  const before = headers['x-forwarded-for'];
  const { address } = request.peer;
  const host = hostOf(request);
  if (address !== '') headers['x-forwarded-for'] = before === undefined ? address : `${before}, ${address}`;
  headers['x-forwarded-uri'] = info.path;
  if (host !== '') headers['x-forwarded-host'] = host;
  return headers;
}

const hostOf = ({ headers }: ApiRequest): string => headers['host'] ?? headers[':authority'] ?? '';

/**
 * What a browser is sent of every page behind a proxy: it is of an origin of its own, not of this server's, where it could
 * act with the certificate of whoever looks at it. A policy of the page's own holds beside ours.
 */
const SANDBOX = 'sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts';
const CONFINED = { 'content-security-policy': SANDBOX, 'x-content-type-options': 'nosniff' } as const;

/** What would speak for all of this server's origin. */
const OF_THE_ORIGIN: ReadonlySet<string> = new Set([
  'alt-svc',
  'clear-site-data',
  'nel',
  'origin-agent-cluster',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'strict-transport-security',
]);

/** A cookie of one guest is shown to that guest alone. */
function confinedCookie(cookie: string, prefix: string): string {
  const [pair = '', ...attributes] = cookie.split(';');
  const kept = attributes.filter((attribute) => !/^\s*(?:path|domain)\s*(?:=|$)/i.test(attribute));
  return [pair, ...kept, ` Path=${prefix}`].join(';');
}

/** Whose own links lead back through the proxy. */
interface Rewriting {
  readonly prefix: string;
  readonly hosts: readonly string[];
}

function answeredHeaders({ headers: answered }: ApiResponse, rewriting: Rewriting): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(endToEnd(answered))) {
    // A length would be a lie when the far end breaks off; CORS is between this server and its browser.
    if (name === ANSWER_HEADER || name === 'content-length' || name.startsWith('access-control-')) continue;
    if (OF_THE_ORIGIN.has(name)) continue;
    headers[name] = name === 'location' ? rewrittenLocation(value, rewriting) : value;
  }
  const own = headers['content-security-policy'];
  return { ...headers, ...CONFINED, ...(own && { 'content-security-policy': `${own}, ${SANDBOX}` }) };
}

/** A redirect within the Pod leads through the proxy again; one to elsewhere, or relative to the page, stays. */
export function rewrittenLocation(location: string, { prefix, hosts }: Rewriting): string {
  const match = /^(?:(?:https?:)?\/\/([^/?#]*))?(\/.*)?$/i.exec(location);
  if (!match) return location;
  const [, host, path = '/'] = match;
  if (host === undefined && match[2] === undefined) return location;
  const isOwn = (one: string): boolean => one !== '' && (host === one || host?.replace(/:\d+$/, '') === one);
  if (host !== undefined && host !== '' && !hosts.some(isOwn)) return location;
  return path === prefix || path.startsWith(`${prefix}/`) ? path : `${prefix}${path}`;
}
