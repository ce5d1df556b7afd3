/**
 * One signal for all ways a long-running command is told to stop: Ctrl-C (the context's signal), SIGTERM, and SIGHUP when
 * its terminal is closed, which Node would die of at once (it takes the default action back even under `nohup`).
 */
export function untilStopped(interrupted: AbortSignal): { readonly signal: AbortSignal; release(): void } {
  const terminated = new AbortController();
  const terminate = (): void => terminated.abort(new Error('terminated'));
  process.once('SIGTERM', terminate);
  process.once('SIGHUP', terminate);
  return {
    signal: AbortSignal.any([interrupted, terminated.signal]),
    release: () => {
      process.off('SIGTERM', terminate);
      process.off('SIGHUP', terminate);
    },
  };
}
