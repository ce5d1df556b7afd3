/** How a kubeconfig says a cluster is reached and who asks: read as it lies, at the start and again while a process runs. */
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { type ExecPlugin, readExecPlugin } from './exec-credential.ts';
import { parseRendered } from './kubeconfig.ts';
import { readFileIfAny } from './write-file.ts';

export type KubeconfigAccess = Readonly<ReturnType<typeof readKubeconfigAccess>>;

type Entry = Readonly<Record<string, unknown>>;

interface Named {
  name: string;
  [field: string]: unknown;
}

interface Config {
  clusters?: Named[];
  users?: Named[];
  contexts?: Named[];
  'current-context'?: string;
}

/** Reads the context `wanted`, or the current one. Throws an Error of one line that names the file and what to do. */
export function readKubeconfigAccess(path: string, wanted?: string) {
  const config = readConfig(path);
  const contextName = wanted ?? config['current-context'];
  if (!contextName) throw new Error(`${path} has no current context; choose one with: kubectl config use-context NAME`);
  const find = (list: Named[] | undefined, name: unknown, field: string): Entry => {
    const found = list?.find((item) => item.name === name)?.[field];
    if (!found)
      throw new Error(
        `${path}: no ${field} named "${String(name)}"; choose another context with: kubectl config use-context NAME`,
      );
    return found as Entry;
  };
  const context = find(config.contexts, contextName, 'context');
  const cluster = find(config.clusters, context['cluster'], 'cluster');
  const user = find(config.users, context['user'], 'user');
  if (user['auth-provider'])
    throw new Error(
      `${path}: user "${String(context['user'])}" names an auth-provider, which Kubernetes has removed; use exec, a token or a client certificate`,
    );
  const read = (entry: Entry, field: string): string | undefined => {
    const data = entry[`${field}-data`];
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8');
    const file = entry[field];
    return typeof file === 'string' ? readFileIfAny(resolve(dirname(path), file)) : undefined;
  };
  const certificate = read(user, 'client-certificate');
  const key = read(user, 'client-key');
  // As in client-go the file comes first: it is what is renewed.
  const token = read(user, 'tokenFile')?.trim() || (typeof user['token'] === 'string' ? user['token'] : undefined);
  return {
    /** Name of the context that this is; what is read again is this one, whatever is current by then. */
    context: contextName,
    namespace: typeof context['namespace'] === 'string' ? context['namespace'] : 'default',
    server: String(cluster['server']),
    /** PEM of the authorities, if the file names any. */
    ca: read(cluster, 'certificate-authority'),
    serverName: typeof cluster['tls-server-name'] === 'string' ? cluster['tls-server-name'] : undefined,
    insecureSkipTlsVerify: cluster['insecure-skip-tls-verify'] === true,
    // PEM, both or none.
    ...(certificate && key ? { certificate, key } : { certificate: undefined, key: undefined }),
    token: token || undefined,
    /** The plug-in that gives the credential. A token in the file wins, as in client-go: then it is not asked. */
    exec: user['exec'] && !token ? execOf(user['exec'], path, context['user']) : undefined,
    /** What the cluster says to plug-ins (extension `client.authentication.k8s.io/exec`). */
    execConfig: extensionOf(cluster),
  };
}

/** Names of the contexts of a kubeconfig, and the current one. Throws as `readKubeconfigAccess`. */
export function kubeconfigContexts(path: string): { readonly names: readonly string[]; readonly current?: string } {
  const { contexts = [], 'current-context': current } = readConfig(path);
  return { names: contexts.map(({ name }) => String(name)), ...(current && { current }) };
}

function readConfig(path: string): Config {
  const text = readFileIfAny(path);
  if (text === undefined)
    throw new Error(`no kubeconfig at ${path}; start a control plane (coracle up --detach) or pass --kubeconfig FILE`);
  const own = parseRendered(text);
  if (own) return own as Config;
  let config: unknown;
  try {
    const { parse } = createRequire(import.meta.url)('yaml') as typeof import('yaml');
    config = parse(text);
  } catch (error) {
    throw new Error(`${path} is not valid YAML: ${(error as Error).message.split('\n')[0]}`);
  }
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new Error(`${path} is not a kubeconfig: the top level is not a map; pass another one with --kubeconfig FILE`);
  return config as Config;
}

function execOf(stanza: unknown, path: string, user: unknown): ExecPlugin {
  try {
    return readExecPlugin(stanza, path);
  } catch (error) {
    throw new Error(`${path}: user "${String(user)}": ${(error as Error).message}`);
  }
}

function extensionOf(cluster: Entry): unknown {
  const extensions = cluster['extensions'];
  if (!Array.isArray(extensions)) return undefined;
  const found = extensions.find((one) => (one as Entry | null)?.['name'] === 'client.authentication.k8s.io/exec');
  return (found as Entry | undefined)?.['extension'];
}
