/**
 * The CustomResourceDefinitions of Config Sync: names, versions, columns and fields as upstream publishes them. What a
 * schema cannot say (which block goes with which source, which secret with which auth) is in the conditions of a sync.
 */

import { establishedDefinition, rootSchema } from '@coracle/apimachinery/types/established-definition';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import { CONFIG_SYNC_GROUP } from './kinds.ts';

type Node = Readonly<Record<string, unknown>>;
type Properties = Readonly<Record<string, Node>>;

const text = (description: string, more: Node = {}): Node => ({ type: 'string', description, ...more });
const flag = (description: string): Node => ({ type: 'boolean', description });
const whole = (description: string, more: Node = {}): Node => ({ type: 'integer', description, ...more });
const fields = (description: string, properties: Properties, more: Node = {}): Node => ({
  type: 'object',
  description,
  properties,
  ...more,
});
const list = (description: string, items: Node, more: Node = {}): Node => ({
  type: 'array',
  description,
  items,
  ...more,
});
/** A reference by name within the namespace. */
const named = (description: string): Node => fields(description, { name: text('Its name.') }, { nullable: true });
const period = text('How often the source is looked at, as a Go duration.');
const quantity = (description: string): Node => ({
  description,
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
});

const git = fields(
  'A Git repository.',
  {
    repo: text('Its URL.'),
    branch: text('The branch; master when absent.'),
    revision: text('A branch, tag, ref or commit; HEAD (of the branch) when absent.'),
    dir: text('The directory to sync, from the root of the repository.'),
    period,
    auth: text('How to log in.', {
      enum: ['ssh', 'cookiefile', 'gcenode', 'gcpserviceaccount', 'token', 'githubapp', 'none'],
    }),
    gcpServiceAccountEmail: text('Account of Google Cloud, with auth gcpserviceaccount.'),
    proxy: text('Proxy for HTTPS.'),
    secretRef: named('Secret with the credentials.'),
    noSSLVerify: flag('Certificates of the server are not checked.'),
    caCertSecretRef: named('Secret whose key `cert` holds the certificate authority of the server.'),
  },
  { required: ['repo', 'auth'], nullable: true },
);
const oci = fields(
  'An OCI image.',
  {
    image: text('Its reference.'),
    dir: text('The directory to sync, from the root of the image.'),
    period,
    auth: text('How to log in.', { enum: ['gcenode', 'gcpserviceaccount', 'k8sserviceaccount', 'none'] }),
    gcpServiceAccountEmail: text('Account of Google Cloud, with auth gcpserviceaccount.'),
    caCertSecretRef: named('Secret whose key `cert` holds the certificate authority of the registry.'),
  },
  { required: ['image', 'auth'], nullable: true },
);
const helm = (more: Properties): Node =>
  fields(
    'A Helm chart.',
    {
      repo: text('URL of the chart repository.'),
      chart: text('Name of the chart.'),
      version: text('Version, or a range of versions.'),
      releaseName: text('Name of the release.'),
      values: { type: 'object', description: 'Values.', 'x-kubernetes-preserve-unknown-fields': true },
      valuesFileRefs: list(
        'ConfigMaps that hold values.',
        fields('One.', { name: text('ConfigMap.'), dataKey: text('Key in it.') }, { required: ['name'] }),
      ),
      includeCRDs: flag('CustomResourceDefinitions of the chart are applied too.'),
      period,
      auth: text('How to log in.', { enum: ['none', 'gcpserviceaccount', 'k8sserviceaccount', 'token', 'gcenode'] }),
      gcpServiceAccountEmail: text('Account of Google Cloud, with auth gcpserviceaccount.'),
      secretRef: named('Secret with the credentials.'),
      caCertSecretRef: named('Secret whose key `cert` holds the certificate authority of the repository.'),
      ...more,
    },
    { required: ['repo', 'chart', 'auth'], nullable: true },
  );

const override = (more: Properties): Node =>
  fields(
    'What is otherwise than by default.',
    {
      resources: list(
        'Amounts for containers of a reconciler.',
        fields('One container.', {
          containerName: text('Its name.'),
          cpuRequest: quantity('Request of CPU.'),
          memoryRequest: quantity('Request of memory.'),
          cpuLimit: quantity('Limit of CPU.'),
          memoryLimit: quantity('Limit of memory.'),
        }),
      ),
      logLevels: list(
        'How much containers of a reconciler log.',
        fields(
          'One container.',
          { containerName: text('Its name.'), logLevel: whole('The level.', { minimum: 0, maximum: 10 }) },
          { required: ['containerName', 'logLevel'] },
        ),
        { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['containerName'] },
      ),
      gitSyncDepth: whole('How many commits of history are fetched; 0 = all.', { format: 'int64', minimum: 0 }),
      statusMode: text('Whether the inventory shows the status of each object.', {
        pattern: '^(enabled|disabled|)$',
      }),
      reconcileTimeout: text('How long objects may take to become ready, as a Go duration.'),
      apiServerTimeout: text('How long one request to the API server may take, as a Go duration.'),
      enableShellInRendering: flag('Rendering may use a shell.'),
      ...more,
    },
    { nullable: true },
  );
const rootOverride: Properties = {
  namespaceStrategy: text('Whether namespaces that objects need are made when they are not declared.', {
    pattern: '^(implicit|explicit|)$',
  }),
  roleRefs: list(
    'Roles of the reconciler in place of cluster-admin.',
    fields(
      'One role.',
      {
        kind: text('Role or ClusterRole.', { enum: ['Role', 'ClusterRole'] }),
        name: text('Its name.', { minLength: 1 }),
        namespace: text('Where it is bound; everywhere when absent.'),
      },
      { required: ['kind', 'name'] },
    ),
  ),
};

const syncError = fields(
  'One error.',
  {
    code: text('The number of the error code.'),
    errorMessage: text('What is wrong.'),
    errorResources: list(
      'The objects that it is about.',
      fields('One object.', {
        sourcePath: text('File that declares it.'),
        name: text('Its name.'),
        namespace: text('Its namespace.'),
        gvk: fields(
          'What it is.',
          { group: text('Group.'), version: text('Version.'), kind: text('Kind.') },
          { required: ['group', 'kind', 'version'] },
        ),
      }),
    ),
  },
  { required: ['code', 'errorMessage'] },
);
const errorSummary = fields('How many errors there are.', {
  totalCount: whole('All of them.'),
  truncated: flag('Not all of them are shown.'),
  errorCountAfterTruncation: whole('Those that are shown.'),
});
const time = text('When.', { format: 'date-time' });
const stage = (description: string, more: Properties = {}): Node =>
  fields(description, {
    gitStatus: fields(
      'The repository.',
      {
        repo: text('Its URL.'),
        revision: text('The revision asked for.'),
        branch: text('The branch asked for.'),
        dir: text('The directory.'),
      },
      { required: ['branch', 'dir', 'repo', 'revision'], nullable: true },
    ),
    ociStatus: fields(
      'The image.',
      { image: text('Its reference.'), dir: text('The directory.') },
      { required: ['dir', 'image'], nullable: true },
    ),
    helmStatus: fields(
      'The chart.',
      { repo: text('The repository.'), chart: text('The chart.'), version: text('The version.') },
      { required: ['chart', 'repo', 'version'], nullable: true },
    ),
    commit: text('What was taken from the source.'),
    lastUpdate: { ...time, nullable: true },
    errors: list('What went wrong.', syncError),
    errorSummary,
    ...more,
  });
const syncStatus = fields('What became of it.', {
  observedGeneration: whole('The generation that this status is about.', { format: 'int64', default: 0 }),
  reconciler: text('The name of the reconciler.'),
  lastSyncedCommit: text('The last commit that was synced without an error.'),
  source: stage('What was fetched.'),
  rendering: stage('What became of rendering.', { message: text('How it went.') }),
  sync: stage('What was applied.'),
  conditions: list(
    'Where it stands.',
    fields(
      'One condition.',
      {
        type: text('Which.'),
        status: text('True, False or Unknown.'),
        lastUpdateTime: { ...time, nullable: true },
        lastTransitionTime: { ...time, nullable: true },
        reason: text('Why, in a word.'),
        message: text('Why.'),
        commit: text('The commit that it is about.'),
        errors: list('What went wrong.', syncError),
        errorSourceRefs: list('Where in this status errors are.', text('A path.')),
        errorSummary,
      },
      { required: ['status', 'type'] },
    ),
  ),
});

const syncSpec = (isRoot: boolean): Node =>
  fields('What is synced, and how.', {
    sourceFormat: text(isRoot ? 'unstructured, or hierarchy (when absent).' : 'unstructured (also when absent).'),
    sourceType: text('Which of the blocks below it is.', { pattern: '^(git|oci|helm)$', default: 'git' }),
    git,
    oci,
    helm: helm(
      isRoot
        ? {
            namespace: text('Namespace of the release.'),
            deployNamespace: text('Namespace of objects that name none.'),
          }
        : {},
    ),
    override: override(isRoot ? rootOverride : {}),
  });

const ref: Properties = {
  group: text('Group.'),
  kind: text('Kind.'),
  namespace: text('Namespace; empty for objects of the cluster.'),
  name: text('Name.'),
};
const groupCondition = list(
  'Where it stands.',
  fields(
    'One condition.',
    {
      type: text('Which.'),
      status: text('True, False or Unknown.'),
      reason: text('Why, in a word.'),
      message: text('Why.'),
      lastTransitionTime: time,
    },
    { required: ['status', 'type'] },
  ),
);
const subgroup: Properties = { namespace: text('Namespace.'), name: text('Name.') };
const groupSpec = fields('The objects of one sync.', {
  resources: list('Objects.', fields('One.', ref, { required: ['group', 'kind', 'name', 'namespace'] })),
  subgroups: list('Further groups.', fields('One.', subgroup, { required: ['name', 'namespace'] })),
  descriptor: fields('What the group is.', {
    type: text('Its type.'),
    revision: text('Its revision.'),
    description: text('For people.'),
    links: list('Where to read more.', fields('One.', { description: text('What.'), url: text('Where.') })),
  }),
});
const groupStatus = fields('What became of them.', {
  observedGeneration: whole('The generation that this status is about.', { format: 'int64', default: 0 }),
  resourceStatuses: list(
    'Objects.',
    fields(
      'One.',
      {
        ...ref,
        status: text('How it is.'),
        sourceHash: text('The commit it comes from, its first letters.'),
        strategy: text('Apply or Delete.'),
        actuation: text('Whether that was done.'),
        reconcile: text('Whether it took effect.'),
        conditions: groupCondition,
      },
      { required: ['group', 'kind', 'name', 'namespace', 'status'] },
    ),
  ),
  subgroupStatuses: list(
    'Further groups.',
    fields(
      'One.',
      { ...subgroup, status: text('How it is.'), conditions: groupCondition },
      { required: ['name', 'namespace', 'status'] },
    ),
  ),
  conditions: groupCondition,
});

interface Kind {
  readonly group: string;
  readonly kind: string;
  readonly versions: readonly string[];
  readonly description: string;
  readonly spec: Node;
  readonly status: Node;
  readonly columns: readonly (readonly [name: string, path: string, type: 'string' | 'integer'])[];
}

const SYNC_COLUMNS: Kind['columns'] = (['rendering', 'source', 'sync'] as const).flatMap((name) => {
  const title = `${name[0]!.toUpperCase()}${name.slice(1)}`;
  return [
    [`${title}Commit`, `.status.${name}.commit`, 'string'],
    [`${title}ErrorCount`, `.status.${name}.errorSummary.totalCount`, 'integer'],
  ] as const;
});

const KINDS: readonly Kind[] = [
  {
    group: CONFIG_SYNC_GROUP,
    kind: 'RootSync',
    versions: ['v1beta1', 'v1alpha1'],
    description: 'Objects of the whole cluster, kept as a source declares them.',
    spec: syncSpec(true),
    status: syncStatus,
    columns: SYNC_COLUMNS,
  },
  {
    group: CONFIG_SYNC_GROUP,
    kind: 'RepoSync',
    versions: ['v1beta1', 'v1alpha1'],
    description: 'Objects of one namespace, kept as a source declares them.',
    spec: syncSpec(false),
    status: syncStatus,
    columns: SYNC_COLUMNS,
  },
  {
    group: 'kpt.dev',
    kind: 'ResourceGroup',
    versions: ['v1alpha1'],
    description: 'The inventory of a sync.',
    spec: groupSpec,
    status: groupStatus,
    columns: [],
  },
];

/** The definitions, established. `now`, in milliseconds, is the time their conditions carry. */
export const configSyncCrds = (now: number): readonly CustomResourceDefinition[] =>
  KINDS.map(({ group, kind, versions, description, spec, status, columns }) => {
    const served = {
      schema: rootSchema(description, { spec, status }),
      subresources: { status: {} },
      ...(columns.length > 0 && {
        additionalPrinterColumns: columns.map(([title, jsonPath, type]) => ({ name: title, type, jsonPath })),
      }),
    };
    return establishedDefinition({ group, kind, versions: versions.map((name) => ({ name, ...served })) }, now);
  });
