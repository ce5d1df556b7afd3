/** Circles in a graph of files (strongly connected components, Tarjan 1972). */

/** Each circle as its files, in no order; files that import themselves only through nobody else are none. */
export function circles(edges: readonly { readonly file: string; readonly target: string }[]): string[][] {
  const targets = new Map<string, string[]>();
  for (const { file, target } of edges) {
    const known = targets.get(file);
    if (known) known.push(target);
    else targets.set(file, [target]);
  }
  const index = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const found: string[][] = [];

  const visit = (file: string): void => {
    index.set(file, index.size);
    low.set(file, index.get(file)!);
    stack.push(file);
    onStack.add(file);
    for (const target of targets.get(file) ?? []) {
      if (!index.has(target)) {
        visit(target);
        low.set(file, Math.min(low.get(file)!, low.get(target)!));
      } else if (onStack.has(target)) low.set(file, Math.min(low.get(file)!, index.get(target)!));
    }
    if (low.get(file) !== index.get(file)) return;
    const circle = stack.splice(stack.indexOf(file));
    for (const member of circle) onStack.delete(member);
    if (circle.length > 1) found.push(circle);
  };
  for (const file of targets.keys()) if (!index.has(file)) visit(file);
  return found;
}
