/**
 * One signal for all ways a long-running command is asked to stop: Ctrl-C (the context's signal), SIGTERM, and SIGHUP when
 * its terminal is closed, which Node would die of at once (it takes the default action back even under `nohup`). Asked once
 * more, the process ends at once, as any program does; with `onAgain` it goes on stopping, and that is called instead,
 * until `release`.
 */
export function untilStopped(interrupted: AbortSignal, { onAgain }: { readonly onAgain?: () => void } = {}) {
  const terminated = new AbortController();
  let stops = 0;
  const report = (): void => {
    stops += 1;
    if (stops === 1) terminated.abort(new Error('terminated'));
    else onAgain?.();
    if (!onAgain) release();
  };
  // The context has a listener of its own for Ctrl-C, which hears the first one only.
  const signals = onAgain ? (['SIGTERM', 'SIGHUP', 'SIGINT'] as const) : (['SIGTERM', 'SIGHUP'] as const);
  const release = (): void => {
    for (const name of signals) process.off(name, report);
  };
  for (const name of signals) process.on(name, report);
  return { signal: AbortSignal.any([interrupted, terminated.signal]), release };
}
