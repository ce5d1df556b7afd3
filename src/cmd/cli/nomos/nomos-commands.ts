/** The subcommands of `coracle nomos`, one row each; names and flags are upstream's. */
import type { Command, FlagSpec } from '../command.ts';

const KUBECONFIG: FlagSpec = {
  type: 'string',
  value: 'FILE',
  summary: 'kubeconfig to use (default: $KUBECONFIG, ~/.kube/config)',
};
const CONTEXTS: FlagSpec = {
  type: 'string',
  value: 'LIST',
  summary: "contexts of the kubeconfig, separated by commas; '' = none (default: all)",
  mayBeEmpty: true,
};
const TIMEOUT: FlagSpec = {
  type: 'string',
  value: 'DURATION',
  summary: 'how long one cluster may take (default: 15s)',
};

/** What names a source on this host. */
const SOURCE: Readonly<Record<string, FlagSpec>> = {
  path: { type: 'string', value: 'DIR', summary: 'directory that is synced (default: .)' },
  'source-format': { type: 'string', value: 'FORMAT', summary: 'hierarchy or unstructured (default: hierarchy)' },
  'no-api-server-check': {
    type: 'boolean',
    summary: 'ask no server which kinds there are: those of Kubernetes, KubeVirt and the source itself are known',
  },
  'api-server-timeout': { type: 'string', value: 'DURATION', summary: 'how long the server may take (default: 15s)' },
  kubeconfig: KUBECONFIG,
};

export const NOMOS_COMMANDS: readonly Command[] = [
  {
    name: 'vet',
    summary: 'Check a directory as a sync checks a commit of it: every error, with file and object',
    flags: {
      ...SOURCE,
      namespace: {
        type: 'string',
        value: 'NAME',
        summary: 'check it as the source of a RepoSync of this namespace, in format unstructured',
      },
    },
    load: async () => (await import('./vet.ts')).vet,
  },
  {
    name: 'version',
    summary: 'Print what reconciles the syncs of each cluster, and the version of this program',
    flags: { contexts: CONTEXTS, timeout: TIMEOUT, kubeconfig: KUBECONFIG },
    load: async () => (await import('./version.ts')).version,
  },
];
