/** A small OCI registry over real HTTP, for tests: serves what it is given, and misbehaves on demand. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { pack } from 'tar-stream';

export interface TarEntry {
  readonly name: string;
  readonly content?: Uint8Array | string;
  readonly type?: 'file' | 'directory' | 'symlink' | 'link' | 'character-device';
  readonly linkname?: string;
}

export interface RegistryServer {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** `METHOD path` of every request, with ` range=N` where one was asked for. */
  readonly requests: string[];
  /** Authorization header seen by each redirect target. */
  readonly redirectedAuthorization: (string | undefined)[];
  addBlob(bytes: Uint8Array): { digest: string; size: number };
  /** Stores a manifest of these layers; returns its digest. */
  addImage(repository: string, tag: string, layers: readonly Uint8Array[]): string;
  /** Stores any document under a tag; returns its digest. */
  addManifest(repository: string, tag: string, document: unknown, type: string): string;
  /** Cuts the next answers to a blob after so many bytes. */
  cutBlobs: number[];
  /** What a cut waits for, given the offset that the answer began at; by default a moment. */
  cutWhen: (from: number) => Promise<void>;
  /** Answers blobs by a redirect to another origin. */
  redirectBlobs: boolean;
  /** Demands a bearer token, given for these basic credentials (any when ''). */
  auth: { token: string; basic: string } | undefined;
  /** Serves these bytes instead of a blob. */
  readonly lies: Map<string, Uint8Array>;
  close(): Promise<void>;
}

export const sha256 = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A tar stream of the entries. */
export async function tarOf(entries: readonly TarEntry[]): Promise<Uint8Array> {
  const archive = pack();
  for (const entry of entries) {
    const content = Buffer.from(entry.content ?? '');
    const header = {
      name: entry.name,
      type: entry.type ?? 'file',
      ...(entry.linkname && { linkname: entry.linkname }),
    };
    if (header.type === 'file') archive.entry(header, content);
    else archive.entry(header);
  }
  archive.finalize();
  const chunks: Uint8Array[] = [];
  for await (const chunk of archive) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/** Starts a registry on a free port of 127.0.0.1, with TLS where it is given a certificate, and a second listener as the foreign blob store. */
export async function startRegistry(tls?: { readonly cert: string; readonly key: string }): Promise<RegistryServer> {
  const blobs = new Map<string, Uint8Array>();
  const manifests = new Map<string, { text: string; type: string }>();
  const requests: string[] = [];
  const redirectedAuthorization: (string | undefined)[] = [];
  const lies = new Map<string, Uint8Array>();
  let foreign = '';

  const sendBlob = (request: IncomingMessage, response: ServerResponse, digest: string): void => {
    const bytes = lies.get(digest) ?? blobs.get(digest);
    if (!bytes) {
      response.writeHead(404).end();
      return;
    }
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const part = bytes.subarray(from);
    const head = {
      'content-length': part.length,
      ...(from > 0 && { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` }),
    };
    response.writeHead(from > 0 ? 206 : 200, head);
    const cut = server.cutBlobs.shift();
    if (cut === undefined) response.end(part);
    else response.write(part.subarray(0, cut), () => void server.cutWhen(from).then(() => response.destroy()));
  };

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '/', 'http://x');
    const range = request.headers.range ? ` range=${request.headers.range}` : '';
    requests.push(`${request.method} ${url.pathname}${range}`);
    const { auth } = server;
    if (url.pathname === '/token') {
      const ok =
        !auth?.basic || request.headers.authorization === `Basic ${Buffer.from(auth.basic).toString('base64')}`;
      response.writeHead(ok ? 200 : 401).end(JSON.stringify({ token: auth?.token }));
      return;
    }
    if (auth && request.headers.authorization !== `Bearer ${auth.token}`) {
      response
        .writeHead(401, {
          'www-authenticate': `Bearer realm="http://${server.host}/token",service="test",scope="repository:x:pull"`,
        })
        .end();
      return;
    }
    const listed = /^\/v2\/(.+)\/tags\/list$/.exec(url.pathname)?.[1];
    if (listed !== undefined) {
      const names = [...manifests.keys()].filter((key) => key.startsWith(`${listed}@`) && !key.includes('@sha256:'));
      const tags = names.map((key) => key.slice(listed.length + 1));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ name: listed, tags }));
      return;
    }
    const match = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url.pathname);
    const [, repository = '', what = '', name = ''] = match ?? [];
    if (what === 'blobs') {
      if (server.redirectBlobs) response.writeHead(307, { location: `http://${foreign}/${name}` }).end();
      else sendBlob(request, response, name);
      return;
    }
    const found = manifests.get(`${repository}@${name}`);
    if (!found) response.writeHead(404).end();
    else {
      const head = {
        'content-type': found.type,
        'content-length': Buffer.byteLength(found.text),
        'docker-content-digest': sha256(found.text),
      };
      response.writeHead(200, head).end(found.text);
    }
  };
  const main = tls ? createTlsServer(tls, answer) : createServer(answer);
  const other = createServer((request, response) => {
    redirectedAuthorization.push(request.headers.authorization);
    sendBlob(request, response, (request.url ?? '').slice(1));
  });
  await new Promise<void>((done) => main.listen(0, '127.0.0.1', done));
  await new Promise<void>((done) => other.listen(0, '127.0.0.1', done));
  foreign = `127.0.0.1:${(other.address() as AddressInfo).port}`;

  const server: RegistryServer = {
    host: `127.0.0.1:${(main.address() as AddressInfo).port}`,
    requests,
    redirectedAuthorization,
    lies,
    cutBlobs: [],
    cutWhen: () => setTimeout(30),
    redirectBlobs: false,
    auth: undefined,
    addBlob(bytes) {
      const digest = sha256(bytes);
      blobs.set(digest, bytes);
      return { digest, size: bytes.length };
    },
    addManifest(repository, tag, document, type) {
      const text = JSON.stringify(document);
      const digest = sha256(text);
      manifests.set(`${repository}@${tag}`, { text, type });
      manifests.set(`${repository}@${digest}`, { text, type });
      return digest;
    },
    addImage(repository, tag, layers) {
      const list = layers.map((layer) => ({
        mediaType: 'application/vnd.oci.image.layer.v1.tar',
        ...server.addBlob(layer),
      }));
      return server.addManifest(repository, tag, { schemaVersion: 2, mediaType: MANIFEST, layers: list }, MANIFEST);
    },
    async close() {
      for (const listener of [main, other]) {
        listener.closeAllConnections();
        await new Promise<void>((done) => listener.close(() => done()));
      }
    },
  };
  return server;
}
