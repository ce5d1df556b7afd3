/**
 * The credential of a kubeconfig over the life of a process: the file, and the files it names, are read again each minute
 * and when the server answers 401; a plug-in runs again when what it gave expires or is refused. What cannot be read
 * leaves what there was.
 */

import type { Access, AccessSource } from '@coracle/client/transport/renewed-handler';
import type { Clock } from '@coracle/runtime/clock/clock';
import { createHttpsTransport, type HttpsTransport } from '@coracle/runtime/http/https-transport';
import {
  createExecCredentialSource,
  type ExecCredential,
  type ExecCredentialSource,
  runExecPlugin,
} from './exec-credential.ts';
import { type KubeconfigAccess, readKubeconfigAccess } from './kubeconfig-access.ts';

export interface RenewedAccess extends AccessSource {
  /** As it was read first: where the cluster is does not change while a process runs. */
  readonly first: KubeconfigAccess;
  close(): void;
}

export interface RenewedAccessOptions {
  /** Name of a context; the current one when absent. */
  readonly context?: string | undefined;
  readonly clock: Clock;
  /** What a plug-in inherits. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** HTTP/1.1 only; see `ClusterChoice`. */
  readonly single?: boolean | undefined;
  readonly keepAlive?: boolean | undefined;
}

const READ_AGAIN_MS = 60_000;
/** A server that knows nobody any more must not have the file read for each request. */
const READ_ON_REFUSAL_MS = 1000;
/** Requests under way over the connection before are given this long. */
const OLD_CONNECTION_MS = 60_000;

interface Connected extends Access {
  readonly transport: HttpsTransport;
  /** What the connection was made of: another one is made when this changes. */
  readonly shown: string;
  readonly credential: ExecCredential | undefined;
}

/** Reads the kubeconfig at `path`. Throws an Error of one line when it cannot be used. */
export function openRenewedAccess(path: string, options: RenewedAccessOptions): RenewedAccess {
  const { clock } = options;
  const first = readKubeconfigAccess(path, options.context);
  const ended = new AbortController();
  const closing = new Set<() => void>();
  let file = first;
  let readAt = clock.monotonic();
  let plugin: { readonly of: string; readonly source: ExecCredentialSource } | undefined;
  let held: Connected | undefined;

  const readAgain = (patienceMs: number): void => {
    if (clock.monotonic() - readAt < patienceMs) return;
    readAt = clock.monotonic();
    try {
      const next = readKubeconfigAccess(path, first.context);
      // Another cluster under the same name is not the one whose guests these are.
      if (next.server === first.server) file = next;
    } catch {
      // Somebody may be writing it.
    }
  };
  const pluginSource = (): ExecCredentialSource | undefined => {
    const { exec } = file;
    if (!exec) return undefined;
    const of = JSON.stringify(exec);
    if (plugin?.of !== of) {
      const ask = () =>
        runExecPlugin(exec, {
          cluster: { ...file, config: file.execConfig },
          environment: options.environment,
          signal: ended.signal,
        });
      plugin = { of, source: createExecCredentialSource(ask, clock) };
    }
    return plugin.source;
  };
  const connect = (credential: ExecCredential | undefined): Connected => {
    const { ca, serverName, insecureSkipTlsVerify } = file;
    const pair = credential?.certificate !== undefined ? credential : file;
    const { certificate, key } = pair;
    const token = credential?.token ?? file.token;
    const shown = JSON.stringify([ca, serverName, insecureSkipTlsVerify, certificate, key]);
    if (held?.shown === shown) {
      if (held.token === token && held.credential === credential) return held;
      const { transport } = held;
      held = { transport, handler: transport, shown, credential, ...(token !== undefined && { token }) };
      return held;
    }
    const transport = createHttpsTransport({
      server: first.server,
      ...(ca && { ca }),
      ...(serverName && { serverName }),
      ...(insecureSkipTlsVerify && { insecureSkipTlsVerify }),
      ...(certificate && key && { certificate, key }),
      ...(options.single && { http1: true, keepAlive: options.keepAlive ?? false }),
    });
    if (held) closeLater(held.transport);
    held = { transport, handler: transport, shown, credential, ...(token !== undefined && { token }) };
    return held;
  };
  const closeLater = (transport: HttpsTransport): void => {
    const end = (): void => {
      closing.delete(end);
      cancel();
      transport.close();
    };
    const cancel = clock.schedule(OLD_CONNECTION_MS, end);
    closing.add(end);
  };

  return {
    first,
    async current() {
      readAgain(READ_AGAIN_MS);
      return connect(await pluginSource()?.current());
    },
    async renew(refused) {
      // Somebody else may have been refused with the same one, and have brought the next.
      if (held && held !== refused) return held;
      readAgain(READ_ON_REFUSAL_MS);
      const { credential } = refused as Connected;
      return connect(await pluginSource()?.renew(credential));
    },
    close() {
      ended.abort();
      for (const end of [...closing]) end();
      held?.transport.close();
    },
  };
}
