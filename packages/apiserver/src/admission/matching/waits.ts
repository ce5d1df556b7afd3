/** Work that nearly never waits, written once: a generator that hands out what it waits for. */

/** Work that yields promises and goes on when they have resolved. */
export type Waits<T> = Generator<Promise<unknown>, T, undefined>;

/** Does the work: at once when it waits for nothing. What is waited for and rejects ends it. */
export function settle<T>(work: Waits<T>): T | Promise<T> {
  const step = work.next();
  return step.done ? step.value : goOn(work, step.value);
}

async function goOn<T>(work: Waits<T>, first: Promise<unknown>): Promise<T> {
  let waited = first;
  for (;;) {
    await waited;
    const step = work.next();
    if (step.done) return step.value;
    waited = step.value;
  }
}

/** The value, for whoever is such work itself. What a promise rejects with is thrown into its place. */
export function* waitFor<T>(pending: T | Promise<T>): Waits<T> {
  if (!(pending instanceof Promise)) return pending;
  let outcome: { readonly value: T } | { readonly error: unknown } | undefined;
  yield pending.then(
    (value) => {
      outcome = { value };
    },
    (error: unknown) => {
      outcome = { error };
    },
  );
  if (outcome === undefined) throw new Error('work went on before what it waits for');
  if ('error' in outcome) throw outcome.error;
  return outcome.value;
}
