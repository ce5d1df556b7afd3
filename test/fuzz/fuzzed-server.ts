/** `coracle up` as its own process, watched from inside by `loop-probe.ts`, and what it is asked with. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { parse } from 'yaml';
import { startProcess } from '../testkit/control-plane-process.ts';

/** The 500s of upstream's own for bad objects: nobody there turns these errors into a 400. */
export const UPSTREAM_500 =
  /resourceVersion should not be set on objects to be created|failed to create typed patch object|unknown patch type: /;
export const sleep = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds));

/** How the process is: milliseconds and bytes. */
export interface Probe {
  /** How long the event loop stood still at most since the last time. */
  readonly longest: number;
  /** Processor time of its longest step; one of more than 50 ms as it would be at the usual speed. */
  readonly cpu: number;
  readonly heapUsed: number;
  readonly rss: number;
}

export interface Sent {
  readonly method: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

export interface FuzzedServer {
  readonly url: URL;
  readonly tls: { readonly ca: Buffer; readonly cert: Buffer; readonly key: Buffer };
  /** The 500s so far that are our own, with what was sent. */
  readonly failures: string[];
  /** How often each status came; 0 = no answer. */
  readonly statuses: Record<string, number>;
  stderr(): string;
  /** Asks the process how it is, after a collection where the memory matters. */
  probe(options?: { readonly collect: boolean }): Promise<Probe>;
  /** Sends one request. A stream that goes on is left after a moment. Returns the status, 0 when there was none. */
  send(sent: Sent): Promise<{ readonly status: number; readonly text: string }>;
  /** A document; {} where there is none. */
  ask(target: string): Promise<{ [name: string]: unknown }>;
  end(): Promise<void>;
}

export async function startFuzzedServer(dir: string): Promise<FuzzedServer> {
  const plane = await startProcess(dir, {
    controllers: '',
    nodeArguments: ['--expose-gc', '--import', join(import.meta.dirname, 'loop-probe.ts')],
  });
  const config = parse(readFileSync(join(dir, 'kubeconfig'), 'utf8'));
  const bytes = (data: string): Buffer => Buffer.from(data, 'base64');
  const { user } = config.users[0];
  const tls = {
    ca: bytes(config.clusters[0].cluster['certificate-authority-data']),
    cert: bytes(user['client-certificate-data']),
    key: bytes(user['client-key-data']),
  };
  const url = new URL(plane.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 8, ...tls });
  const failures: string[] = [];
  const statuses: Record<string, number> = {};

  const probe: FuzzedServer['probe'] = async ({ collect } = { collect: false }) => {
    const lines = (): string[] =>
      plane
        .stderr()
        .split('\n')
        .filter((line) => line.startsWith('PROBE '));
    const known = lines().length;
    process.kill(plane.pid, collect ? 'SIGWINCH' : 'SIGUSR2');
    for (let i = 0; i < 2000; i++) {
      const line = lines()[known];
      if (line) return JSON.parse(line.slice(6));
      await sleep(5);
    }
    throw new Error(`the server does not answer its probe: ${plane.stderr().slice(-2000)}`);
  };

  const send: FuzzedServer['send'] = ({ method, target, headers = {}, body }) =>
    new Promise((resolve) => {
      const done = (status: number, text: string): void => {
        clearTimeout(patience);
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status === 500 && !UPSTREAM_500.test(text)) {
          const shown = `${method} ${target.slice(0, 300)} ${JSON.stringify(headers).slice(0, 200)}`;
          failures.push(
            `${shown} ${Buffer.from(body ?? [])
              .toString()
              .slice(0, 500)} -> ${text.slice(0, 500)}`,
          );
        }
        resolve({ status, text });
      };
      const length = body ? { 'content-length': String(body.length) } : {};
      let call: ReturnType<typeof httpsRequest>;
      // Large writes take their turn on a thread of their own, which may be slow on a busy machine; the server itself gives up earlier.
      const patience = setTimeout(() => call?.destroy(), 90_000);
      try {
        call = httpsRequest({
          host: url.hostname,
          port: url.port,
          agent,
          method,
          path: target,
          headers: { ...length, ...headers },
        });
      } catch {
        return done(0, 'not a request Node sends');
      }
      call.on('response', (response) => {
        let text = '';
        const leave = setTimeout(() => response.destroy(), 400);
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          text += part;
        });
        response.on('error', () => {});
        response.on('close', () => {
          clearTimeout(leave);
          done(response.statusCode!, text);
        });
      });
      call.on('upgrade', (response, socket) => {
        socket.destroy();
        done(response.statusCode!, '');
      });
      call.on('error', () => done(0, ''));
      call.end(body);
    });

  const ask: FuzzedServer['ask'] = async (target) => {
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      httpsRequest({ host: url.hostname, port: url.port, agent, path: target }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode!, text }));
      })
        .on('error', reject)
        .end();
    });
    if (status === 404) return {};
    assert.equal(status, 200, target);
    return JSON.parse(text);
  };

  return {
    url,
    tls,
    failures,
    statuses,
    stderr: plane.stderr,
    probe,
    send,
    ask,
    async end() {
      agent.destroy();
      await plane.kill('SIGKILL');
    },
  };
}
