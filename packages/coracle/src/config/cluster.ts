/** The cluster a command talks to: from --kubeconfig, $KUBECONFIG, the data directory, or ~/.kube/config, in that order. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createClient } from '@coracle/client/create-client';
import { createRenewedHandler } from '@coracle/client/transport/renewed-handler';
import { systemClock } from '@coracle/runtime/clock/clock';
import { dataDirAt, defaultDataDir } from './data-dir.ts';
import { userKubeconfigPath } from './kubeconfig.ts';
import { openRenewedAccess } from './renewed-access.ts';
import { VERSION } from './version.ts';

export type Cluster = Readonly<Awaited<ReturnType<typeof clusterFrom>>>;

export interface ClusterChoice {
  /** A context of the kubeconfig by its name; the current one when absent. */
  readonly context?: string;
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
  const { 'data-dir': given } = flags;
  const own = dataDirAt(typeof given === 'string' ? given : defaultDataDir(environment)).kubeconfig;
  if (typeof given === 'string') return own;
  if (environment['KUBECONFIG']) return userKubeconfigPath(environment);
  return existsSync(own) ? own : userKubeconfigPath(environment);
}

/**
 * Opens the cluster; its credentials are renewed while it is open, see `renewed-access.ts`. Rejects with one line when the
 * kubeconfig is missing or cannot be used, or its credential plug-in fails.
 */
export async function clusterFrom(choice: ClusterChoice) {
  const access = openRenewedAccess(kubeconfigPath(choice), { ...choice, clock: systemClock });
  // A plug-in that cannot give anything is reported now, and not with the first request.
  await access.current().catch((error: unknown) => {
    access.close();
    throw error;
  });
  const handler = createRenewedHandler(access);
  const { server, ca, namespace } = access.first;
  const close = async (): Promise<void> => access.close();
  return {
    server,
    /** Sends each request with the newest credential. */
    handler,
    client: createClient(handler, { userAgent: `coracle/${VERSION}` }),
    /** PEM of the CA, if the kubeconfig names one. */
    ca,
    namespace,
    close,
    [Symbol.asyncDispose]: close,
  };
}
