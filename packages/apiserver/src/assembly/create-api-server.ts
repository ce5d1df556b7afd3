/**
 * A working Kubernetes API server from its rooms: store, identities and rights, admission, endpoints and the objects that
 * must exist before it is ready. It opens no port: its handler is called by whatever listens, by clients in the same process,
 * by tests. What it does beyond the core is handed in: `parts` of this package, and `extend` for APIs of somebody else.
 */

import { type Clock, systemClock } from '@coracle/runtime/clock/clock';
import type { ApiHandler } from '@coracle/runtime/http/seam';
import { type Logger, silentLogger } from '@coracle/runtime/log/log';
import type { TokenIssuer } from '../auth/service-account-tokens.ts';
import { createObjectStore } from '../cache/create-object-store.ts';
import type { ByteLimits } from '../cache/namespace-bytes.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { type ConnectOutbound, noOutbound } from '../outbound/outbound.ts';
import { renewStored } from '../registry/renew-stored.ts';
import type { Backend } from '../storage/backend.ts';
import { createMemoryBackend } from '../storage/memory-backend.ts';
import { type AccessOptions, openAccess } from './access.ts';
import { type AssemblyOptions, assembleServer, type ServerCore } from './assemble-server.ts';

export interface ApiServerOptions extends AssemblyOptions, AccessOptions {
  /** Where the state lies; in memory, and gone with the process, when not given. */
  readonly backend?: Backend;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Bytes of objects that are taken; the defaults when not given. */
  readonly byteLimits?: ByteLimits;
  /** How the host calls webhooks and aggregated APIs; without it every such call fails with a sentence. */
  readonly connectOutbound?: (store: Pick<ObjectStore, 'get' | 'list'>) => ConnectOutbound;
  readonly frontProxy?: NonNullable<AccessOptions['frontProxy']>;
  readonly signal?: AbortSignal;
}

export interface ApiServer {
  /** Answers any request; never rejects. */
  readonly handler: ApiHandler;
  /** The same in the name of a user, without a credential. */
  readonly handlerAs: ServerCore['handlerAs'];
  readonly store: ObjectStore;
  /** Signs the token of a Secret of type `kubernetes.io/service-account-token`. */
  readonly signLegacyToken: TokenIssuer['signLegacy'];
  /** Answers what is in flight, makes everything durable, closes the store. */
  close(signal: AbortSignal): Promise<void>;
}

/** Starts a server; resolves when it is ready to serve. Rejects with StorageError when the state cannot be opened. */
export async function createApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const { clock = systemClock, log = silentLogger } = options;
  // A store that is beyond its bounds starts as any other: else nobody could delete anything from it.
  const { promise: limitsAfter, resolve: limit } = Promise.withResolvers<void>();
  const store = await createObjectStore({
    backend: options.backend ?? createMemoryBackend(),
    clock,
    log,
    renew: renewStored,
    ...(options.byteLimits && { byteLimits: options.byteLimits }),
    limitsAfter,
    signal: options.signal ?? new AbortController().signal,
  });
  try {
    const connect = options.connectOutbound?.(store) ?? noOutbound;
    const access = await openAccess(store, options, { connect, clock, log });
    const server = assembleServer(store, options, { clock, log, connect, access });
    await server.start();
    limit();
    return {
      handler: server.endpoints.handler,
      handlerAs: server.handlerAs,
      store,
      signLegacyToken: access.signLegacy,
      async close(closing) {
        await server.stop(closing);
        await store.close();
      },
    };
  } catch (error) {
    // Whoever tries again must find the state free.
    await store.close();
    throw error;
  }
}
