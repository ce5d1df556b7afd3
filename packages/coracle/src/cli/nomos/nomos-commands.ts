/** The subcommands of `coracle nomos`, one row each; names and flags are upstream's. */
import { type Command, type FlagSpec, switchFlag, valueFlag } from '../command.ts';

const KUBECONFIG = valueFlag('FILE', 'kubeconfig to use (default: $KUBECONFIG, ~/.kube/config)');
const CONTEXTS = valueFlag('LIST', "contexts of the kubeconfig, separated by commas; '' = none (default: all)", {
  mayBeEmpty: true,
});
const TIMEOUT = valueFlag('DURATION', 'how long one cluster may take (default: 15s)');

/** What names a source on this host. */
const SOURCE: Readonly<Record<string, FlagSpec>> = {
  path: valueFlag('DIR', 'directory that is synced (default: .)'),
  'source-format': valueFlag('FORMAT', 'hierarchy or unstructured (default: hierarchy)'),
  'no-api-server-check': switchFlag(
    'ask no server which kinds there are: those of Kubernetes, KubeVirt and the source itself are known',
  ),
  'api-server-timeout': valueFlag('DURATION', 'how long the server may take (default: 15s)'),
  clusters: valueFlag(
    'LIST',
    'clusters of the source, separated by commas; defaultcluster = those without a name (default: all)',
    { mayBeEmpty: true },
  ),
  kubeconfig: KUBECONFIG,
};
const FORMAT = valueFlag('FORMAT', 'of the files: yaml or json (default: yaml)');

export const NOMOS_COMMANDS: readonly Command[] = [
  {
    name: 'init',
    summary: 'Make a directory that is a source of format hierarchy',
    flags: {
      path: valueFlag('DIR', 'directory to make it in (default: .)'),
      force: switchFlag('also in a directory that is not empty; files of the same names are replaced'),
    },
    load: async () => (await import('./init.ts')).init,
  },
  {
    name: 'hydrate',
    summary: 'Write the objects that a directory declares for each cluster, as they would be applied',
    flags: {
      ...SOURCE,
      flat: switchFlag('all of them in one file'),
      output: valueFlag('PATH', 'directory to write, with --flat a file (default: compiled)'),
      format: FORMAT,
    },
    load: async () => (await import('./hydrate.ts')).hydrate,
  },
  {
    name: 'vet',
    summary: 'Check a directory as a sync checks a commit of it: every error, with file and object',
    flags: {
      ...SOURCE,
      namespace: valueFlag('NAME', 'check it as the source of a RepoSync of this namespace, in format unstructured'),
      threshold: valueFlag('N', 'more objects are an error; 0 = any number', { bare: '1000' }),
      'max-object-count': valueFlag('N', 'another name of --threshold'),
      'max-inventory-size': valueFlag('BYTES', 'an inventory that is larger is an error; 0 = of any size (default: 0)'),
      'keep-output': switchFlag('write the objects too, as hydrate does'),
      output: valueFlag('DIR', 'where --keep-output writes (default: compiled)'),
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
      poll: valueFlag('DURATION', 'show it again and again; 0 = once (default: 0)'),
      namespace: valueFlag('NAME', 'only syncs of this namespace'),
      name: valueFlag('NAME', 'only syncs of this name'),
      resources: switchFlag('show the objects of what is synced (default: true)'),
      history: switchFlag('show the last attempts of each sync'),
      format: valueFlag('FORMAT', 'text or json (default: text)'),
      kubeconfig: KUBECONFIG,
    },
    load: async () => (await import('./status.ts')).status,
  },
  {
    name: 'migrate',
    summary: 'Check whether a cluster has the legacy mode of Config Sync, which upstream’s nomos migrates',
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
      'output-dir': valueFlag('DIR', 'where bug_report_SECONDS.zip is written (default: .)'),
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
