/**
 * The port that images are uploaded to (CDI pkg/uploadproxy and pkg/uploadserver): `POST /v1beta1/upload` answers when the
 * claim is full, `/v1beta1/upload-async` when the bytes are there and are an image. A body is read only as fast as the
 * node writes it, and one that breaks off leaves nothing. Exports are downloaded from the same port (`serve-export.ts`).
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SecureContext, TlsOptions } from 'node:tls';
import type { ObjectKey } from '@coracle/apimachinery/meta/object';
import { type FillReport, maxImageBytes, type UploadReply } from '@coracle/cluster-rules/storage/pool-calls';
import type { PoolAccess } from '@coracle/kubevirt/controllers/data-volume/pool-access';
import type { UploadTarget, UploadTargets } from '@coracle/kubevirt/controllers/data-volume/upload-targets';
import type { Clock } from '@coracle/runtime/clock/clock';
import { declaredLength, leaveRest } from '@coracle/runtime/http/receive-body';
import type { Logger } from '@coracle/runtime/log/log';
import { Refusal } from './refusal.ts';
import { sendUpload } from './send-upload.ts';
import { createExportServer, type ExportServing, isExportPath } from './serve-export.ts';
import type { UploadClaim, UploadTokens } from './upload-tokens.ts';

/** Which claims wait, and how their pools are reached. */
export interface UploadSource {
  readonly targets: UploadTargets;
  readonly pools: Pick<PoolAccess, 'call' | 'handler'>;
}

export interface UploadProxyOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Makes a pair for a host that an export has inside the cluster. */
  readonly pairFor: (host: string) => Promise<{ readonly certificate: string; readonly key: string }>;
  readonly tokens: UploadTokens;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface UploadProxy {
  readonly port: number;
  /** From here on uploads are taken. */
  serve(source: UploadSource): void;
  /** From here on exports can be downloaded. */
  serveExports(source: ExportServing): void;
  /** Ends all uploads and downloads. */
  close(): Promise<void>;
}

/** CDI serves both versions. */
const PATH = /^\/(?:v1beta1|v1alpha1)\/upload(-async)?$/;
const BEARER = /^Bearer\s+([A-Za-z0-9\-._~+/]+)$/i;
/** Uploads at the same time; further ones are sent away. */
const MAX_UPLOADS = 16;
const MAX_CONNECTIONS = 64;
const HEADERS_MS = 32_000;
/** Certificates of hosts of exports, the oldest out first; how long each is shown. */
const MAX_CERTIFICATES = 64;
const CERTIFICATE_MS = 12 * 3_600_000;
/** How long a request waits for a claim to be ready for it, and how often that is looked at. */
const READY_MS = 10_000;
const LOOK_MS = 100;
/** A body of which so much is left when it is refused is not read to its end. */
const REST_BYTES = 1024 * 1024;

/** Starts listening. Rejects when the port cannot be bound. */
export async function startUploadProxy(options: UploadProxyOptions): Promise<UploadProxy> {
  const { host, port, certificate, key, log } = options;
  let source: UploadSource | undefined;
  const stop = new AbortController();
  const running = new Set<string>();
  // Not by an import: see runtime/http/http1-server.
  const exports = createExportServer(log, stop.signal);
  const server: Server = process.getBuiltinModule('node:https').createServer({
    cert: certificate,
    key,
    SNICallback: certificates(options, exports.hasHost),
    minVersion: 'TLSv1.2',
    headersTimeout: HEADERS_MS,
    // An upload takes as long as it takes; the node ends one from which nothing comes.
    requestTimeout: 0,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const serve = (request: IncomingMessage, response: ServerResponse, waits: boolean): void => {
    answer({ ...options, source, running, signal: stop.signal }, { request, response, waits }).then(
      () => reply({ request, response, waits }, 200, ''),
      (error: unknown) => {
        const { message } = error as Error;
        if (!(error instanceof Refusal)) log.warn('upload failed', { error: message });
        reply({ request, response, waits }, error instanceof Refusal ? error.status : 500, message);
      },
    );
  };
  server.on('request', (request, response) => {
    if (isExportPath(request.url ?? '')) exports.answer(request, response);
    else serve(request, response, false);
  });
  server.on('checkContinue', (request, response) => serve(request, response, true));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    serve(given) {
      source = given;
    },
    serveExports: exports.serve,
    async close() {
      stop.abort(new Error('the control plane stops'));
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The certificate for the name that a client asks for: of an export that is offered its own, else that of the server. */
function certificates(
  { pairFor, clock }: UploadProxyOptions,
  isExport: (host: string) => boolean,
): NonNullable<TlsOptions['SNICallback']> {
  const known = new Map<string, { readonly context: Promise<SecureContext>; readonly until: number }>();
  return (host, done) => {
    if (!isExport(host)) return done(null);
    let entry = known.get(host);
    if (!entry || entry.until < clock.monotonic()) {
      const context = pairFor(host).then(({ certificate, key }) =>
        process.getBuiltinModule('node:tls').createSecureContext({ cert: certificate, key, minVersion: 'TLSv1.2' }),
      );
      entry = { context, until: clock.monotonic() + CERTIFICATE_MS };
      known.delete(host);
      known.set(host, entry);
      if (known.size > MAX_CERTIFICATES) known.delete(known.keys().next().value as string);
      context.catch(() => known.delete(host));
    }
    entry.context.then(
      (context) => done(null, context),
      (error: Error) => done(error),
    );
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The client sends its body only after a 100 Continue. */
  readonly waits: boolean;
}

interface Context extends UploadProxyOptions {
  readonly source: UploadSource | undefined;
  /** Claims, by UID, to which an upload is under way. */
  readonly running: Set<string>;
  readonly signal: AbortSignal;
}

function reply({ request, response, waits }: Exchange, status: number, text: string): void {
  if (response.headersSent || response.destroyed) return;
  leaveRest(request, response, { limit: REST_BYTES, waits });
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}

type ReadyTarget = Extract<UploadTarget, { state: 'ready' }>;

/** Resolves when the answer is 200. Throws Refusal. */
async function answer(context: Context, exchange: Exchange): Promise<void> {
  const { request } = exchange;
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  if (path === '/healthz') return;
  const [isUpload, async] = PATH.exec(path) ?? [];
  if (isUpload === undefined) throw new Refusal(404, 'uploads go to /v1beta1/upload or /v1beta1/upload-async');
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined)
    throw new Refusal(400, 'the header Authorization is Bearer and the token of an UploadTokenRequest');
  const claim = await context.tokens.verify(token);
  if (!claim) throw new Refusal(401, 'the token is not valid or has expired');
  const { source } = context;
  if (!source) throw new Refusal(503, 'uploads are not accepted yet');
  const target = await ready(context, source, claim);
  // How clients find out whether this path is served.
  if (request.method === 'HEAD' && async !== undefined) return;
  if (request.method !== 'POST') throw new Refusal(404, 'uploads are sent by POST');
  await upload({ ...context, source }, exchange, { claim, target, isAsync: async !== undefined });
}

/** Waits until the claim is ready, as CDI does. */
async function ready({ clock, signal }: Context, { targets }: UploadSource, claim: UploadClaim): Promise<ReadyTarget> {
  const end = clock.monotonic() + READY_MS;
  for (;;) {
    const target = targets.find(claim);
    if (target?.state === 'full')
      throw new Refusal(503, `rejecting Upload Request for PVC ${claim.name} that already finished uploading`);
    if (target && target.call.handle !== claim.uid)
      throw new Refusal(401, `the token is for an earlier claim named ${claim.name}`);
    if (target) return target;
    if (clock.monotonic() > end)
      throw new Refusal(503, `rejecting Upload Request for PVC ${claim.name}: it does not wait for an upload`);
    await clock.sleep(LOOK_MS, signal);
  }
}

async function upload(
  context: Context & { readonly source: UploadSource },
  { request, response, waits }: Exchange,
  { claim, target, isAsync }: { readonly claim: UploadClaim; readonly target: ReadyTarget; readonly isAsync: boolean },
): Promise<void> {
  const { running, signal } = context;
  const { targets, pools } = context.source;
  const bytes = declaredLength(request.headers['content-length']);
  if (bytes === undefined || bytes === 0) throw new Refusal(411, 'an upload needs a Content-Length');
  const most = maxImageBytes(target.call.bytes);
  if (bytes > most)
    throw new Refusal(413, `the upload has ${bytes} bytes, and PVC ${claim.name} has room for an image of ${most}`);
  if (running.has(claim.uid)) throw new Refusal(503, `another upload to PVC ${claim.name} is under way`);
  if (running.size >= MAX_UPLOADS) throw new Refusal(503, `${MAX_UPLOADS} uploads are under way already`);
  running.add(claim.uid);
  const key: ObjectKey = claim;
  try {
    // The agent may be another one since the claim became ready.
    const report = await pools.call<FillReport>(target.pool, 'fillVolume', target.call, signal);
    if (report.state === 'done') throw new Refusal(409, `PVC ${claim.name} has been filled already`);
    const agent = await pools.handler(target.pool);
    if (waits) response.writeContinue();
    targets.report(key);
    await new Promise<void>((resolve, reject) => {
      const onReply = (said: UploadReply): void => {
        targets.report(key);
        if (said.state === 'failed') reject(refusalOf(said));
        else if (said.state === 'done' || isAsync) resolve();
      };
      const sent = sendUpload(agent, { handle: claim.uid, bytes, request, signal, onReply });
      sent
        .then(() => reject(new Refusal(502, 'the connection to the node broke off')), reject)
        // After the answer to an upload that is finished without its sender, too.
        .finally(() => {
          running.delete(claim.uid);
          targets.report(key);
        });
    });
  } catch (error) {
    running.delete(claim.uid);
    throw error;
  }
}

const STATUS: Readonly<Record<Extract<UploadReply, { state: 'failed' }>['problem'], number>> = {
  Image: 400,
  Checksum: 400,
  NotFound: 503,
  Conflict: 503,
  NoSpace: 507,
  Source: 500,
};

const refusalOf = ({ problem, message }: Extract<UploadReply, { state: 'failed' }>): Refusal =>
  new Refusal(STATUS[problem], `Saving stream failed: ${message}`);
