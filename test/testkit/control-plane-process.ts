/** A control plane as its own process, to be killed and started again on the same data. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { NAMESPACES, SERVICE_ACCOUNTS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { ENGINE_FLAGS } from '../../packages/coracle/src/config/program-files.ts';
import { createHttpsTransport } from '../../packages/runtime/src/http/https-transport.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';
import { eventually } from './eventually.ts';
import { COMPILED, MAIN_FILE } from './program.ts';

export interface ControlPlaneProcess {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  /** What it wrote to standard error. */
  stderr(): string;
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT'): Promise<void>;
}

/** Starts `coracle up` in the foreground and resolves at its ready line. Rejects with what it said when it ends before. */
export function startProcess(
  dataDir: string,
  options: {
    readonly port?: number;
    readonly nodes?: number;
    readonly controllers?: string;
    readonly env?: Record<string, string>;
    /** Arguments of Node itself. */
    readonly nodeArguments?: readonly string[];
    /** The program's main file, where it is not that of the sources: that of a build. */
    readonly main?: string;
    /** More flags. */
    readonly more?: readonly string[];
  } = {},
): Promise<ControlPlaneProcess> {
  const argv = [
    'up',
    '--data-dir',
    dataDir,
    '--port',
    String(options.port ?? 0),
    '--nodes',
    String(options.nodes ?? 0),
    '--controllers',
    options.controllers ?? '*',
    '--no-merge-kubeconfig',
    '--json',
    ...(options.more ?? []),
  ];
  const child: ChildProcess = spawn(
    process.execPath,
    // The heap of a process that is tested, and so its pauses, are those of the product.
    [...ENGINE_FLAGS, ...(options.nodeArguments ?? []), options.main ?? MAIN_FILE, ...argv],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED, ...options.env },
    },
  );
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  let out = '';
  let err = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    err = (err + chunk.toString()).slice(-65_536);
  });
  return new Promise((ready, fail) => {
    child.once('exit', (code) => fail(new Error(`coracle up ended with ${code}: ${err}`)));
    child.stdout!.on('data', (chunk: Buffer) => {
      out += chunk.toString();
      const line = out.split('\n').find((text) => text.startsWith('{'));
      if (!line || !out.includes('\n')) return;
      const { url } = JSON.parse(line) as { url: string };
      ready({
        pid: child.pid!,
        port: Number(new URL(url).port),
        url,
        stderr: () => err,
        async kill(signal) {
          child.kill(signal);
          await ended;
        },
      });
    });
  });
}

const AS_VIRT_CONTROLLER = {
  'impersonate-user': 'system:serviceaccount:kubevirt:kubevirt-controller',
  'impersonate-group': 'system:masters',
};

/** The admin's client of a data directory. */
export function adminOf(dataDir: string): {
  readonly client: Client;
  readonly handler: ApiHandler;
  /** Acts as upstream's virt-controller, whose reports of instances are taken. */
  readonly reporter: Client;
  close(): Promise<void>;
} {
  const config = parse(readFileSync(join(dataDir, 'kubeconfig'), 'utf8'));
  const text = (data: string): string => Buffer.from(data, 'base64').toString();
  const { cluster } = config.clusters[0];
  const { user } = config.users[0];
  const handler = createHttpsTransport({
    server: cluster.server,
    ca: text(cluster['certificate-authority-data']),
    certificate: text(user['client-certificate-data']),
    key: text(user['client-key-data']),
  });
  return {
    client: createClient(handler, { userAgent: 'test' }),
    handler,
    reporter: createClient(
      (request) => handler({ ...request, headers: { ...request.headers, ...AS_VIRT_CONTROLLER } }),
      { userAgent: 'virt-controller' },
    ),
    close: async () => void (await handler.close()),
  };
}

/** Creates a namespace and waits until Pods can be made in it: they name its account, which a controller makes. */
export async function createNamespace(client: Client, name: string): Promise<string> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await eventually(`the account of ${name}`, () => client.get(SERVICE_ACCOUNTS, { namespace: name, name: 'default' }));
  return name;
}
