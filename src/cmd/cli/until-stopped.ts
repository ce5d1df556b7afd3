/** One signal for both ways a long-running command is told to stop: Ctrl-C (the context's signal) and SIGTERM. */
export function untilStopped(interrupted: AbortSignal): { readonly signal: AbortSignal; release(): void } {
  const terminated = new AbortController();
  const terminate = (): void => terminated.abort(new Error('terminated'));
  process.once('SIGTERM', terminate);
  return {
    signal: AbortSignal.any([interrupted, terminated.signal]),
    release: () => void process.off('SIGTERM', terminate),
  };
}
