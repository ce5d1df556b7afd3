import type { ControllerEnvironment } from './environment.ts';

/** What the steps of a controller do their work with. */
export class ControllerSteps {
  readonly client;
  readonly clock;
  readonly log;

  constructor({ client, clock, log }: Pick<ControllerEnvironment, 'client' | 'clock' | 'log'>) {
    this.client = client;
    this.clock = clock;
    this.log = log;
  }
}
