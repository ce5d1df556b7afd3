/** One question to the clusters of several contexts of a kubeconfig, each within a time of its own. */
import { createLinkedController } from '@coracle/runtime/signal/linked-controller';
import { type Cluster, clusterFrom, kubeconfigPath } from '../../config/cluster.ts';
import { kubeconfigContexts } from '../../config/kubeconfig-access.ts';
import { type CommandContext, oneLine, textFlag } from '../command.ts';

export interface ContextAnswer<T> {
  readonly name: string;
  readonly isCurrent: boolean;
  /** What the cluster said, or in one line why it said nothing. */
  readonly answer: { readonly value: T } | { readonly error: string };
}

/**
 * Asks the contexts of flag `--contexts` (a comma list; all when it is absent, none when it is empty), at once, and gives
 * their answers in order of name. A name that the kubeconfig does not have is left out, as upstream does.
 * @throws Error of one line when the kubeconfig cannot be read
 */
export async function askContexts<T>(
  context: CommandContext,
  timeoutMs: number,
  ask: (cluster: Cluster, signal: AbortSignal) => Promise<T>,
): Promise<ContextAnswer<T>[]> {
  const { names, current } = kubeconfigContexts(kubeconfigPath(context));
  const wanted = textFlag(context.flags, 'contexts')
    ?.split(',')
    .map((name) => name.trim());
  const chosen = names.filter((name) => wanted?.includes(name) ?? true).sort();
  return Promise.all(
    chosen.map(async (name): Promise<ContextAnswer<T>> => {
      const linked = createLinkedController(context.signal);
      const timer = setTimeout(() => linked.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const isCurrent = name === current;
      try {
        await using cluster = await clusterFrom({ ...context, context: name });
        return { name, isCurrent, answer: { value: await ask(cluster, linked.signal) } };
      } catch (error) {
        context.signal.throwIfAborted();
        return { name, isCurrent, answer: { error: oneLine(linked.signal.aborted ? linked.signal.reason : error) } };
      } finally {
        clearTimeout(timer);
        linked.release();
      }
    }),
  );
}
