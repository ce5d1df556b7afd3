import type { ControllerEnvironment } from './environment.ts';

type Environment = Pick<ControllerEnvironment, 'client' | 'clock' | 'log'>;

/** What the steps of a controller do their work with. */
export class ControllerSteps<Options extends Environment = Environment> {
  protected readonly options: Options;
  readonly client;
  readonly clock;
  readonly log;

  constructor(options: Options) {
    this.options = options;
    this.client = options.client;
    this.clock = options.clock;
    this.log = options.log;
  }
}
