import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import type { Client } from '../client.ts';
import type { InformerSet } from '../informer/informer-set.ts';

/** What every controller is made from. Informers asked for at creation are started by the set's owner. */
export interface ControllerEnvironment {
  readonly client: Client;
  readonly informers: InformerSet;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Something that runs until asked to stop: a controller, or a few that belong together. */
export interface Runnable {
  readonly name: string;
  /** Resolves when it has stopped. Rejects with NotSyncedError alone, when its informers do not sync. */
  start(signal: AbortSignal): Promise<void>;
}
