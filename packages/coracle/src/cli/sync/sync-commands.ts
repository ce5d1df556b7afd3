/** The subcommands of `coracle sync`, one row each. */
import type { Command, FlagSpec } from '../command.ts';

const CLUSTER: Readonly<Record<string, FlagSpec>> = {
  kubeconfig: {
    type: 'string',
    value: 'FILE',
    summary: 'cluster to work against (default: $KUBECONFIG, ~/.kube/config)',
  },
  'data-dir': { type: 'string', value: 'DIR', summary: "a server's data directory, for its admin's kubeconfig" },
};
const OUTPUT: FlagSpec = {
  type: 'string',
  value: 'FORMAT',
  short: 'o',
  summary: 'table or json (default: table)',
};

export const SYNC_COMMANDS: readonly Command[] = [
  {
    name: 'plan',
    summary: 'Show what the next commit would create, change and prune, and what that means for each guest',
    words: '[rootsync/NAME | reposync/NAME]',
    flags: {
      'cluster-name': {
        type: 'string',
        value: 'NAME',
        summary: 'name that cluster selectors go by, as the controllers were given it (default: the cluster has none)',
      },
      path: {
        type: 'string',
        value: 'DIR',
        summary: 'files of this host instead of the source; the sync need not be there then',
      },
      namespace: { type: 'string', value: 'NAME', short: 'n', summary: 'namespace of a RepoSync' },
      output: OUTPUT,
      ...CLUSTER,
    },
    load: async () => (await import('./plan.ts')).plan,
  },
  {
    name: 'explain',
    summary: 'Show who owns each field of an object: Git, the server, or another',
    words: 'KIND/NAME',
    flags: {
      namespace: { type: 'string', value: 'NAME', short: 'n', summary: "namespace (default: the context's)" },
      output: OUTPUT,
      ...CLUSTER,
    },
    load: async () => (await import('./explain.ts')).explain,
  },
  {
    name: 'ignore',
    summary: 'Print the fields that the server owns as the ignore rules of another GitOps tool',
    flags: { for: { type: 'string', value: 'TOOL', summary: 'argocd or flux' } },
    load: async () => (await import('./ignore.ts')).ignore,
  },
];
