/** Controllers beside an in-process server, under the system's clock: for tests of what they do to objects over the API. */

import type { Client } from '../../packages/client/src/client.ts';
import type { ControllerEnvironment, Runnable } from '../../packages/client/src/controller/environment.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { createInformerSet } from '../../packages/client/src/informer/informer-set.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import type { InProcessServer } from './in-process-server.ts';

export interface RunningControllers {
  /** The client they use. */
  readonly client: Client;
  /** Ends them, then the server. */
  stop(): Promise<void>;
}

/** Starts what `make` returns, with informers of its own. */
export function runControllers(
  server: InProcessServer,
  make: (environment: ControllerEnvironment) => readonly Runnable[],
): RunningControllers {
  const ended = new AbortController();
  const client = createClient(server.handler);
  const informers = createInformerSet(client);
  const controllers = make({ client, informers, clock: systemClock, log: silentLogger });
  const running = Promise.all([informers, ...controllers].map((part) => part.start(ended.signal)));
  return {
    client,
    async stop() {
      ended.abort();
      await running;
      await server.stop();
    },
  };
}
