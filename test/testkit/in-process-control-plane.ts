/** A whole control plane in this process, in memory: schemas, defaulting, admission, KubeVirt's API; no controllers, no node. */

import { createSigningKey } from '../../packages/apiserver/src/auth/service-account-tokens.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../packages/coracle/src/compose/control-plane.ts';
import { createFakeClock } from '../../packages/runtime/src/clock/fake-clock.ts';
import { NEVER, type Peer } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';

const peerOf = (commonName: string, ...organizations: string[]): Peer => ({
  address: '',
  certificate: { verified: true, commonName, organizations, fingerprint: commonName },
});
const ADMIN = peerOf('admin', 'system:masters');
const VIRT_CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';

export interface Answer {
  readonly status: number;
  /** The Warning headers. */
  readonly warnings: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  readonly json: any;
}

export interface InProcessControlPlane {
  readonly plane: ControlPlane;
  /** One request as the admin; `target` is path and query. */
  send(method: string, target: string, body?: unknown, type?: string): Promise<Answer>;
  /** The same as upstream's virt-controller, whose reports of instances are taken. */
  report(method: string, target: string, body?: unknown, type?: string): Promise<Answer>;
  /** The same as anybody: a name and groups. */
  sendAs(
    user: readonly [string, ...string[]],
    method: string,
    target: string,
    body?: unknown,
    type?: string,
  ): Promise<Answer>;
  stop(): Promise<void>;
}

/** Starts it on a fake clock; `options` go before the defaults. */
export async function startInProcess(options: Partial<ControlPlaneOptions> = {}): Promise<InProcessControlPlane> {
  const ended = new AbortController();
  const plane = await startControlPlane({
    backend: createMemoryBackend(),
    clock: createFakeClock(),
    log: silentLogger,
    version: '0.0.0',
    signingKey: await createSigningKey(),
    issuer: 'https://issuer.test',
    signal: ended.signal,
    ...options,
  });
  const ask = async (
    peer: Peer,
    [method, target, body, type = 'application/json']: [string, string, unknown?, (string | undefined)?],
  ): Promise<Answer> => {
    const [path = '', query = ''] = target.split('?');
    const response = await plane.handler({
      method,
      path,
      query,
      headers: { 'content-type': type },
      body: bytesOf(body),
      peer,
      signal: NEVER,
    });
    if (typeof response.body === 'function') throw new Error('a stream');
    const chunks =
      response.body === undefined ? [] : response.body instanceof Uint8Array ? [response.body] : response.body;
    const text = Buffer.concat(chunks).toString();
    return {
      status: response.status,
      warnings: response.headers['warning'] ?? '',
      json: text.startsWith('{') ? JSON.parse(text) : text,
    };
  };
  return {
    plane,
    send: (...request) => ask(ADMIN, request),
    report: (...request) => ask(peerOf(VIRT_CONTROLLER, 'system:masters'), request),
    sendAs: ([name, ...groups], ...request) => ask(peerOf(name, ...groups), request),
    async stop() {
      await plane.close(AbortSignal.timeout(5000));
      ended.abort();
    },
  };
}

function bytesOf(body: unknown): Uint8Array {
  if (body === undefined) return new Uint8Array(0);
  if (body instanceof Uint8Array) return body;
  return new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));
}
