/** The cluster a command talks to: from --kubeconfig, $KUBECONFIG, the data directory, or ~/.kube/config, in that order. */
import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { createHttpsTransport } from '../../base/http/https-transport.ts';
import type { ApiHandler } from '../../base/http/seam.ts';
import type { Client } from '../../client/client.ts';
import { createClient } from '../../client/create-client.ts';
import { dataDirAt, defaultDataDir } from './data-dir.ts';
import { userKubeconfigPath } from './kubeconfig.ts';
import { VERSION } from './version.ts';
import { readFileIfAny } from './write-file.ts';

export interface Cluster {
  readonly server: string;
  readonly handler: ApiHandler;
  /** Headers every direct call must carry (authorization). */
  readonly headers: Readonly<Record<string, string>>;
  readonly client: Client;
  /** PEM of the CA, if the kubeconfig names one. */
  readonly ca: string | undefined;
  readonly namespace: string;
  close(): Promise<void>;
}

interface Named {
  name: string;
  [field: string]: unknown;
}

type Entry = Readonly<Record<string, unknown>>;

export interface ClusterChoice {
  /** Single calls over HTTP/1.1: for far ends that are no clusters, and may speak nothing newer. */
  readonly single?: boolean;
  /** With `single`: connections stay for the next call. */
  readonly keepAlive?: boolean;
  readonly flags: Readonly<Record<string, unknown>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The kubeconfig a command uses. A data directory named, or none of the others present, means the admin's own file. */
export function kubeconfigPath({ flags, environment }: ClusterChoice): string {
  if (typeof flags['kubeconfig'] === 'string') return resolve(flags['kubeconfig']);
  const own = dataDirAt(
    typeof flags['data-dir'] === 'string' ? flags['data-dir'] : defaultDataDir(environment),
  ).kubeconfig;
  if (typeof flags['data-dir'] === 'string') return own;
  if (environment['KUBECONFIG']) return userKubeconfigPath(environment);
  return existsSync(own) ? own : userKubeconfigPath(environment);
}

/** Opens the cluster. Throws when the kubeconfig is missing, unreadable, or asks for an auth plug-in (use kubectl proxy or a token there). */
export async function clusterFrom(choice: ClusterChoice): Promise<Cluster> {
  const path = kubeconfigPath(choice);
  const text = readFileIfAny(path);
  if (text === undefined)
    throw new Error(`no kubeconfig at ${path}; start a control plane (coracle up --detach) or pass --kubeconfig FILE`);
  let config: {
    clusters?: Named[];
    users?: Named[];
    contexts?: Named[];
    'current-context'?: string;
  };
  try {
    config = parse(text);
  } catch (error) {
    throw new Error(`${path} is not valid YAML: ${(error as Error).message.split('\n')[0]}`);
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new Error(`${path} is not a kubeconfig: the top level is no map; pass another one with --kubeconfig FILE`);
  if (!config['current-context'])
    throw new Error(`${path} has no current context; choose one with: kubectl config use-context NAME`);
  const find = (list: Named[] | undefined, name: unknown, field: string): Entry => {
    const found = list?.find((item) => item.name === name)?.[field];
    if (!found)
      throw new Error(
        `${path}: no ${field} named "${String(name)}"; choose another context with: kubectl config use-context NAME`,
      );
    return found as Entry;
  };
  const context = find(config.contexts, config['current-context'], 'context');
  const cluster = find(config.clusters, context['cluster'], 'cluster');
  const user = find(config.users, context['user'], 'user');
  if (user['exec'] || user['auth-provider'])
    throw new Error(
      `${path}: user "${String(context['user'])}" needs an auth plug-in, which this command does not run; use a token or a client certificate`,
    );
  const read = (entry: Entry, field: string): string | undefined => {
    const data = entry[`${field}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8');
    const file = entry[field];
    return typeof file === 'string' ? readFileIfAny(resolve(dirname(path), file)) : undefined;
  };
  const ca = read(cluster, 'certificate-authority');
  const certificate = read(user, 'client-certificate');
  const key = read(user, 'client-key');
  const token = typeof user['token'] === 'string' ? user['token'] : read(user, 'tokenFile')?.trim();
  const server = String(cluster['server']);
  const handler = createHttpsTransport({
    server,
    ...(ca && { ca }),
    ...(certificate && key && { certificate, key }),
    ...(choice.single && { http1: true, keepAlive: choice.keepAlive ?? false }),
  });
  return {
    server,
    handler,
    headers: token ? { authorization: `Bearer ${token}` } : {},
    client: createClient(handler, { userAgent: `coracle/${VERSION}`, ...(token && { token }) }),
    ca,
    namespace: typeof context['namespace'] === 'string' ? context['namespace'] : 'default',
    close: async () => {
      await handler.close();
    },
  };
}
