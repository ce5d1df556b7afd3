/** A webhook on a real TLS port, with a CA of its own: what tests of outbound calls talk to. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAuthority, openAuthority } from '../../packages/apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';

// biome-ignore lint/suspicious/noExplicitAny: reviews of every shape.
export type Review = any;

export interface WebhookServer {
  readonly port: number;
  /** Base64 of the CA's PEM, as `caBundle` wants it. */
  readonly caBundle: string;
  /** Every call so far: its path with the query, and the body. */
  readonly calls: { readonly path: string; readonly body: Review }[];
  url(path: string): string;
  close(): Promise<void>;
}

/** What a handler answers: a response of AdmissionReview v1, or a whole answer when it has a `status` code and a `text`. */
export type Answer = Record<string, unknown> | { readonly code: number; readonly text: string };

/** Starts one; `answers` maps paths to handlers of reviews. The certificate is for 127.0.0.1 and `dnsNames`. */
export async function startWebhookServer(
  answers: Readonly<Record<string, (review: Review) => Answer | Promise<Answer>>>,
  dnsNames: readonly string[] = ['localhost'],
): Promise<WebhookServer> {
  const ca = await createAuthority(systemClock);
  const authority = await openAuthority(ca, systemClock);
  const pair = await authority.issue({
    commonName: 'webhook',
    dnsNames: [...dnsNames],
    ipAddresses: ['127.0.0.1'],
    usage: 'server',
    days: 1,
  });
  const calls: { path: string; body: Review }[] = [];
  const server = createServer({ cert: pair.certificate, key: pair.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const path = request.url ?? '';
      const body: Review = JSON.parse(Buffer.concat(chunks).toString() || '{}');
      calls.push({ path, body });
      const handler = answers[path.split('?')[0]!];
      const answer = handler ? await handler(body) : { code: 404, text: 'not here' };
      if ('code' in answer && 'text' in answer) {
        const type = /^[{[]/.test(answer.text as string) ? 'application/json' : 'text/plain; charset=utf-8';
        response.writeHead(answer.code as number, { 'content-type': type });
        return response.end(answer.text as string);
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          apiVersion: body.apiVersion,
          kind: 'AdmissionReview',
          response: { uid: body.request?.uid, allowed: true, ...answer },
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    caBundle: Buffer.from(ca.certificate).toString('base64'),
    calls,
    url: (path) => `https://127.0.0.1:${port}${path}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** A JSON patch as a webhook answers it. */
export const jsonPatch = (...operations: object[]): Answer => ({
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});

/** A conversion webhook between `example.com/v1` (`spec.host`, `spec.port`) and `v2` (`spec.address`) that answers with `result`. */
export function convertAddresses({ request }: Review, result: object = { status: 'Success' }): Answer {
  const convertedObjects = request.objects.map((object: Review) => {
    const { address = '', host, port } = object.spec;
    const [ownHost, ownPort] = address.split(':');
    const spec =
      request.desiredAPIVersion === 'example.com/v1'
        ? { host: ownHost, port: ownPort }
        : { address: `${host}:${port}` };
    return { ...object, apiVersion: request.desiredAPIVersion, spec };
  });
  const response = { uid: request.uid, result, convertedObjects };
  return {
    code: 200,
    text: JSON.stringify({ apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response }),
  };
}
