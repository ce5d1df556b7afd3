/** How warnings of many items are collected: one by one, because as arguments some hundred thousand would not fit the stack. */

type Warn<T> = (item: T, index: number) => readonly string[] | undefined;

/** Collects what `warn` says of each item; nothing, for most. */
export function warnEach<T>(found: string[], items: readonly T[], warn: Warn<T>): void {
  for (let i = 0; i < items.length; i++) add(found, warn(items[i]!, i));
}

export function add(found: string[], texts: readonly string[] | undefined): void {
  if (texts !== undefined) for (const text of texts) found.push(text);
}
