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
  clusters: {
    type: 'string',
    value: 'LIST',
    summary: 'clusters of the source, separated by commas; defaultcluster = those without a name (default: all)',
    mayBeEmpty: true,
  },
  kubeconfig: KUBECONFIG,
};
const FORMAT: FlagSpec = { type: 'string', value: 'FORMAT', summary: 'of the files: yaml or json (default: yaml)' };

export const NOMOS_COMMANDS: readonly Command[] = [
  {
    name: 'init',
    summary: 'Make a directory that is a source of format hierarchy',
    flags: {
      path: { type: 'string', value: 'DIR', summary: 'directory to make it in (default: .)' },
      force: {
        type: 'boolean',
        summary: 'also in a directory that is not empty; files of the same names are replaced',
      },
    },
    load: async () => (await import('./init.ts')).init,
  },
  {
    name: 'hydrate',
    summary: 'Write the objects that a directory declares for each cluster, as they would be applied',
    flags: {
      ...SOURCE,
      flat: { type: 'boolean', summary: 'all of them in one file' },
      output: { type: 'string', value: 'PATH', summary: 'directory to write, with --flat a file (default: compiled)' },
      format: FORMAT,
    },
    load: async () => (await import('./hydrate.ts')).hydrate,
  },
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
      threshold: { type: 'string', value: 'N', bare: '1000', summary: 'more objects are an error; 0 = any number' },
      'max-object-count': { type: 'string', value: 'N', summary: 'another name of --threshold' },
      'max-inventory-size': {
        type: 'string',
        value: 'BYTES',
        summary: 'an inventory that is larger is an error; 0 = of any size (default: 0)',
      },
      'keep-output': { type: 'boolean', summary: 'write the objects too, as hydrate does' },
      output: { type: 'string', value: 'DIR', summary: 'where --keep-output writes (default: compiled)' },
      format: FORMAT,
    },
    load: async () => (await import('./vet.ts')).vet,
  },
  {
    name: 'status',
    summary: 'Show the syncs of each cluster, with their commit, errors and objects',
    flags: {
      contexts: CONTEXTS,
      timeout: TIMEOUT,
      poll: { type: 'string', value: 'DURATION', summary: 'show it again and again; 0 = once (default: 0)' },
      namespace: { type: 'string', value: 'NAME', summary: 'syncs of this namespace alone' },
      name: { type: 'string', value: 'NAME', summary: 'syncs of this name alone' },
      resources: { type: 'boolean', summary: 'show the objects of what is synced (default: true)' },
      history: { type: 'boolean', summary: 'show the last attempts of each sync' },
      format: { type: 'string', value: 'FORMAT', summary: 'text or json (default: text)' },
      kubeconfig: KUBECONFIG,
    },
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'migrate',
    summary: 'Say whether a cluster has the legacy mode of Config Sync, which is to be migrated by upstream’s nomos',
    flags: {
      contexts: { ...CONTEXTS, summary: "contexts, separated by commas; 'all' (default: the current one)" },
      'connect-timeout': { ...TIMEOUT, summary: 'how long one cluster may take (default: 3s)' },
      kubeconfig: KUBECONFIG,
    },
    load: async () => (await import('./migrate.ts')).migrate,
  },
  {
    name: 'bugreport',
    summary: 'Write a zip file of syncs, inventories and events of each cluster, without secrets',
    flags: {
      contexts: CONTEXTS,
      timeout: TIMEOUT,
      'output-dir': { type: 'string', value: 'DIR', summary: 'where bug_report_SECONDS.zip is written (default: .)' },
      kubeconfig: KUBECONFIG,
    },
    load: async () => (await import('./bugreport.ts')).bugreport,
  },
  {
    name: 'version',
    summary: 'Print what reconciles the syncs of each cluster, and the version of this program',
    flags: { contexts: CONTEXTS, timeout: TIMEOUT, kubeconfig: KUBECONFIG },
    load: async () => (await import('./version.ts')).version,
  },
];
