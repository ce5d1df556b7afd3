/** A whole control plane in this process, on the memory backend: asked as somebody with a certificate or a token. */

import { createSigningKey } from '../../packages/apiserver/src/auth/service-account-tokens.ts';
import { createMemoryBackend } from '../../packages/apiserver/src/storage/memory-backend.ts';
import { COMPONENTS, type ComponentFacts, keepRunning } from '../../packages/coracle/src/compose/components.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
} from '../../packages/coracle/src/compose/control-plane.ts';
import { NODE_VM_RULES } from '../../packages/node-agent/src/agent/rbac.ts';
import type { Clock } from '../../packages/runtime/src/clock/clock.ts';
import { type ApiResponse, NEVER, NO_BYTES, type Peer } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { promptClock } from './prompt-clock.ts';

export const TEST_ISSUER = 'https://issuer.test';

export interface Asking {
  /** Common name and organizations of the client certificate; none = no certificate. */
  readonly as?: readonly [commonName: string, ...organizations: string[]];
  readonly headers?: Readonly<Record<string, string>>;
  /** A string or bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
  readonly peer?: Peer;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly response: ApiResponse;
  /** The whole body; empty where it is a stream. */
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any;
}

export interface TestPlane {
  readonly plane: ControlPlane;
  /** `ask('GET /api/v1/pods?limit=1', {...})`. */
  ask(line: string, asking?: Asking): Promise<Answer>;
  /** As a member of system:masters; throws when it is refused. */
  admin(line: string, body?: unknown): Promise<Answer['json']>;
  /** Runs controllers until the plane stops. */
  run(names: readonly string[], facts: ComponentFacts): Promise<void>;
  stop(): Promise<void>;
}

export const certified = (commonName: string, ...organizations: string[]): Peer => ({
  address: '192.0.2.1',
  certificate: {
    verified: true,
    commonName,
    organizations,
    fingerprint: [commonName, ...organizations].join(' '),
  },
});

/** The plane alone, as every test has it where it says nothing else: in memory, silent, with a key of its own. */
export const openPlane = async (
  options: Partial<ControlPlaneOptions> & Pick<ControlPlaneOptions, 'signal'>,
): Promise<ControlPlane> =>
  startControlPlane({
    backend: createMemoryBackend(),
    clock: promptClock,
    log: silentLogger,
    version: '0.0.0',
    signingKey: await createSigningKey(),
    issuer: TEST_ISSUER,
    agentRules: NODE_VM_RULES,
    ...options,
  });

const bytesOf = (body: unknown): Uint8Array =>
  body instanceof Uint8Array ? body : new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));

/** Starts one. */
export async function startPlane(
  options: Partial<ControlPlaneOptions> & { readonly clock?: Clock } = {},
): Promise<TestPlane> {
  const stop = new AbortController();
  const clock = options.clock ?? promptClock;
  const plane = await openPlane({ ...options, clock, signal: stop.signal });
  const running: Promise<void>[] = [];
  const ask: TestPlane['ask'] = async (line, { as, headers = {}, body, peer } = {}) => {
    const [method = '', target = ''] = line.split(' ');
    const [path = '', query = ''] = target.split('?');
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await plane.handler({
      method,
      path,
      query,
      headers: { ...(body !== undefined && { 'content-type': type }), ...headers },
      body: body === undefined ? NO_BYTES : bytesOf(body),
      peer: peer ?? (as ? certified(...as) : { address: '192.0.2.1' }),
      signal: NEVER,
    });
    const chunks = response.body instanceof Uint8Array ? [response.body] : (response.body ?? []);
    const text = typeof chunks === 'function' ? '' : Buffer.concat(chunks).toString();
    return {
      status: response.status,
      headers: response.headers,
      response,
      text,
      json: text.startsWith('{') ? JSON.parse(text) : undefined,
    };
  };
  return {
    plane,
    ask,
    async admin(line, body) {
      const answer = await ask(line, { as: ['admin', 'system:masters'], ...(body !== undefined && { body }) });
      if (answer.status >= 300) throw new Error(`${line}: ${answer.status} ${JSON.stringify(answer.json)}`);
      return answer.json;
    },
    async run(names, facts) {
      for (const component of COMPONENTS.filter(({ name }) => names.includes(name))) {
        const client = await plane.clientFor(component.account);
        running.push(keepRunning({ component, client, facts, clock, log: silentLogger, signal: stop.signal }));
      }
    },
    async stop() {
      stop.abort();
      await Promise.all(running);
      await plane.close(AbortSignal.timeout(5000));
    },
  };
}
