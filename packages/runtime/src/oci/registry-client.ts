/**
 * Reads from an OCI registry (distribution spec 1.1): manifests by tag or digest, blobs by digest. Writes nothing to disk;
 * what it asks goes through `registry-exchange.ts`.
 */
import { createHash } from 'node:crypto';
import type { CheckedResponse } from './checked-request.ts';
import { type ImageReference, isDigest } from './reference.ts';
import { RegistryError } from './registry-error.ts';
import { createRegistryExchange, type RegistryExchangeOptions } from './registry-exchange.ts';

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

export interface ImageManifest {
  /** Digest of the image manifest (not of the index it was found in). */
  readonly digest: string;
  readonly layers: readonly Descriptor[];
}

export interface RegistryClient {
  /** The manifest for our architecture; walks an index when there is one. Throws RegistryError. */
  manifest(signal: AbortSignal): Promise<ImageManifest>;
  /** True once the registry, or its token service, asked for the credential and was shown it. */
  credentialShown(): boolean;
  /** The bytes of a blob from `offset` on; `offset` in the answer is 0 when the registry ignores ranges. */
  blob(
    digest: string,
    offset: number,
    signal: AbortSignal,
  ): Promise<{ readonly offset: number; readonly body: AsyncIterable<Uint8Array> }>;
}

/** Of manifests, and of the indexes that name them by architecture. */
const MANIFEST_TYPES = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
const MAX_MANIFEST = 4 * 1024 * 1024;
const MAX_TOKEN_ANSWER = 1024 * 1024;
const MAX_LAYERS = 256;
const CREDENTIALS_WANTED = 'it asks for credentials; name a Secret that holds them in imagePullSecret';

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const field = (value: unknown, name: string): unknown =>
  isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** Plain HTTP is spoken only with registries on this machine, and not where an authority is given to know them by. */
export function registryOrigin(registry: string, hasAuthority = false): string {
  const host = registry.replace(/:\d+$/, '');
  if (registry === 'docker.io') return 'https://registry-1.docker.io';
  const loopback = host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host);
  return `${loopback && !hasAuthority ? 'http' : 'https'}://${registry}`;
}

/** Parses `Bearer realm="...",service="...",scope="..."`. */
export function parseChallenge(header: string): { scheme: string; parameters: Map<string, string> } {
  const space = header.indexOf(' ');
  const scheme = (space < 0 ? header : header.slice(0, space)).toLowerCase();
  const parameters = new Map<string, string>();
  for (const match of header.slice(space + 1).matchAll(/([a-zA-Z_]+)=(?:"([^"]*)"|([^\s,"]+))/g))
    parameters.set((match[1] ?? '').toLowerCase(), match[2] ?? match[3] ?? '');
  return { scheme, parameters };
}

export interface RegistryClientOptions extends RegistryExchangeOptions {
  readonly architecture: string;
  readonly credentials?: Credentials;
  /** What to do about a registry that asks for credentials. */
  readonly credentialsHint?: string;
}

/** Makes a client for one repository. `architecture` is Go's name (amd64, arm64). */
export function createRegistryClient(ref: ImageReference, options: RegistryClientOptions): RegistryClient {
  const where = `${ref.registry}/${ref.repository}`;
  const { request, credentialShown } = authorizedRequests(ref, where, options);

  /** Fetches one manifest document and checks it against the digest we asked for. */
  const fetchManifest = async (name: string, signal: AbortSignal): Promise<{ digest: string; document: unknown }> => {
    const response = await request(`manifests/${name}`, { accept: MANIFEST_TYPES.join(', ') }, signal);
    const text = await boundedText(response, MAX_MANIFEST);
    const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`;
    if (isDigest(name) && digest !== name)
      throw new RegistryError('failed', `${where}: the manifest does not match its digest ${name}`);
    return { digest, document: parseJson(text) };
  };

  return {
    credentialShown,
    async manifest(signal) {
      let { digest, document } = await fetchManifest(ref.digest || ref.tag, signal);
      const inner = manifestFor(options.architecture, document, where);
      if (inner !== undefined) ({ digest, document } = await fetchManifest(inner, signal));
      return { digest, layers: layersOf(document, where) };
    },
    async blob(digest, offset, signal) {
      const response = await request(`blobs/${digest}`, offset > 0 ? { range: `bytes=${offset}-` } : {}, signal);
      const range = /^bytes (\d+)-/.exec(response.header('content-range') ?? '');
      const from = response.status === 206 ? Number(range?.[1] ?? offset) : 0;
      return { offset: from, body: response.body };
    },
  };
}

/** The requests of a client: with the token or credential that the registry asks for, once it has asked. */
function authorizedRequests(ref: ImageReference, where: string, options: RegistryClientOptions) {
  const origin = registryOrigin(ref.registry, options.ca !== undefined);
  const hint = options.credentialsHint ?? CREDENTIALS_WANTED;
  const exchange = createRegistryExchange(origin, where, options);
  let authorization: string | undefined;
  let credentialShown = false;
  const basic = (): string | undefined => {
    if (!options.credentials) return undefined;
    credentialShown = true;
    const { username, password } = options.credentials;
    return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  };
  const fetchToken = async (parameters: Map<string, string>, signal: AbortSignal): Promise<string> => {
    const realm = URL.parse(parameters.get('realm') ?? '');
    if (!realm || (realm.protocol !== 'https:' && !(realm.protocol === 'http:' && origin.startsWith('http:'))))
      throw new RegistryError('denied', `${where}: the registry names no usable token service`);
    const service = parameters.get('service');
    if (service !== undefined) realm.searchParams.set('service', service);
    realm.searchParams.set('scope', parameters.get('scope') ?? `repository:${ref.repository}:pull`);
    const identity = basic();
    const response = await exchange(realm, {}, { identity, signal });
    const answer = await boundedText(response, MAX_TOKEN_ANSWER);
    if (response.status !== 200) {
      const remedy = options.credentials ? 'the credentials of its pull secret are refused' : hint;
      throw new RegistryError(
        'denied',
        `${where}: the token service ${realm.host} answered ${response.status}: ${remedy}`,
      );
    }
    const parsed = parseJson(answer);
    const token = field(parsed, 'token') ?? field(parsed, 'access_token');
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
      throw new RegistryError('denied', `${where}: the token service ${realm.host} sent no token`);
    return token;
  };

  /** Throws RegistryError for all but what was asked for. */
  const request = async (
    path: string,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<CheckedResponse> => {
    const url = new URL(`/v2/${ref.repository}/${path}`, origin);
    let response = await exchange(url, headers, { identity: authorization, signal });
    if (response.status === 401) {
      const challenge = parseChallenge(response.header('www-authenticate') ?? '');
      response.cancel();
      const identity = basic();
      if (challenge.scheme === 'bearer') authorization = `Bearer ${await fetchToken(challenge.parameters, signal)}`;
      else if (challenge.scheme === 'basic' && identity) authorization = identity;
      else throw new RegistryError('denied', `${where}: ${hint}`);
      response = await exchange(url, headers, { identity: authorization, signal });
    }
    if (response.status === 200 || response.status === 206) return response;
    response.cancel();
    if (response.status === 404) throw new RegistryError('missing', `${where}: ${path} not found in the registry`);
    if (response.status === 401 || response.status === 403)
      throw new RegistryError(
        'denied',
        `${where}: pull access denied (${response.status})${options.credentials ? '' : `: ${hint}`}`,
      );
    throw new RegistryError('failed', `${where}: the registry answered ${response.status} to ${path}`);
  };
  return { request, credentialShown: () => credentialShown };
}

/** The digest that an index names for `architecture`; undefined where the document is no index. */
function manifestFor(architecture: string, document: unknown, where: string): string | undefined {
  const entries = field(document, 'manifests');
  if (!Array.isArray(entries)) return undefined;
  const match = entries.find((entry: unknown) => {
    const platform = field(entry, 'platform');
    return field(platform, 'architecture') === architecture && (field(platform, 'os') ?? 'linux') === 'linux';
  });
  // A list of one manifest without a platform is taken as it is.
  const chosen: unknown = match ?? (entries.length === 1 && !field(entries[0], 'platform') ? entries[0] : undefined);
  const inner = field(chosen, 'digest');
  if (typeof inner !== 'string' || !isDigest(inner))
    throw new RegistryError('missing', `${where}: the image is not offered for ${architecture}`);
  return inner;
}

function layersOf(document: unknown, where: string): Descriptor[] {
  const layers = field(document, 'layers');
  if (!Array.isArray(layers) || layers.length === 0 || layers.length > MAX_LAYERS)
    throw new RegistryError('failed', `${where}: the manifest lists no layers, or more than ${MAX_LAYERS}`);
  return layers.map((layer: unknown) => {
    const blob = field(layer, 'digest');
    const size = field(layer, 'size');
    if (
      typeof blob !== 'string' ||
      !isDigest(blob) ||
      typeof size !== 'number' ||
      !Number.isSafeInteger(size) ||
      size < 0
    )
      throw new RegistryError('failed', `${where}: the manifest holds a layer without sha256 digest or size`);
    return { mediaType: String(field(layer, 'mediaType') ?? ''), digest: blob, size };
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function boundedText(response: CheckedResponse, max: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.length;
    if (size > max) throw new RegistryError('failed', `an answer of the registry is larger than ${max} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
