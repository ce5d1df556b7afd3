/** The subcommands of `coracle sync`, one row each. */
import { NAMESPACE, OUTPUT, SERVER } from '../cluster-flags.ts';
import { type Command, valueFlag } from '../command.ts';

export const SYNC_COMMANDS: readonly Command[] = [
  {
    name: 'plan',
    summary: 'Show what the next commit would create, change and prune, and what that means for each guest',
    words: '[rootsync/NAME | reposync/NAME]',
    flags: {
      'cluster-name': valueFlag(
        'NAME',
        'name that cluster selectors go by, as the controllers were given it (default: the cluster has none)',
      ),
      path: valueFlag('DIR', 'files of this host instead of the source; the sync need not exist then'),
      namespace: valueFlag('NAME', 'namespace of a RepoSync', { short: 'n' }),
      output: OUTPUT,
      ...SERVER,
    },
    load: async () => (await import('./plan.ts')).plan,
  },
  {
    name: 'explain',
    summary: 'Show who owns each field of an object: Git, the server, or another',
    words: 'KIND/NAME',
    flags: {
      namespace: NAMESPACE,
      output: OUTPUT,
      ...SERVER,
    },
    load: async () => (await import('./explain.ts')).explain,
  },
  {
    name: 'ignore',
    summary: 'Print the fields that the server owns as the ignore rules of another GitOps tool',
    flags: { for: valueFlag('TOOL', 'argocd or flux') },
    load: async () => (await import('./ignore.ts')).ignore,
  },
];
