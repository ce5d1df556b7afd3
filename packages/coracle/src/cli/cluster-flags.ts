/** The flags that say which cluster a command works against, and how it answers: the same wherever they are taken. */
import { type FlagSpec, switchFlag, valueFlag } from './command.ts';

type Flags = Readonly<Record<string, FlagSpec>>;

/** Flags that help shows under a head of their own. */
export const under = (group: string, flags: Flags): Flags =>
  Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, group }]));

export const DATA_DIR = valueFlag('DIR', 'where state is kept (default: XDG data directory, coracle)');
export const KUBECONFIG = valueFlag('FILE', 'cluster to work against (default: $KUBECONFIG, ~/.kube/config)', {
  group: 'Cluster',
});
export const NAMESPACE = valueFlag('NAME', "namespace (default: the context's)", {
  short: 'n',
  group: 'Cluster',
  completes: 'namespaces',
});
export const ALL_NAMESPACES = switchFlag('machines of all namespaces', { short: 'A', group: 'Cluster' });

/** A cluster, for what is in no namespace or in all. */
export const SERVER = { kubeconfig: KUBECONFIG, 'data-dir': { ...DATA_DIR, group: 'Cluster' } } as const;
export const CLUSTER = { namespace: NAMESPACE, ...SERVER } as const;

export const JSON_OUT = switchFlag('print JSON');
export const OUTPUT = valueFlag('FORMAT', 'table or json (default: table)', { short: 'o' });
export const EXPLAIN = switchFlag('do nothing; print the call of kubectl or virtctl that does it');
