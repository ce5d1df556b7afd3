/** 'denied': credentials missing or wrong. 'missing': no such image. 'failed': anything else. */
export class RegistryError extends Error {
  readonly failure: 'denied' | 'missing' | 'failed';
  constructor(failure: 'denied' | 'missing' | 'failed', message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'RegistryError';
    this.failure = failure;
  }
}
