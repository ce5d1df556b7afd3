/**
 * The CustomResourceDefinitions of cdi.kubevirt.io that are acted on here: names, fields and columns of those that CDI
 * publishes. They are ordinary definitions, made at start when they are missing: CDI's own take their place.
 */

import { establishedDefinition, rootSchema } from '@coracle/apimachinery/types/established-definition';
import type { CustomResourceColumnDefinition, CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import type { TSchema } from 'typebox';
import { dataVolumeSpec } from '../data-volume.ts';
import { atomicList, bool, int, list, needed, object, str, stringMap, strings, time } from '../fields.ts';
import { toStructuralSchema } from '../structural-schema.ts';
import { CDI_GROUP, CDI_VERSION } from './kinds.ts';

const condition = object('One condition.', {
  type: needed(str('Which condition.')),
  status: needed(str('True, False or Unknown.')),
  reason: str('Why, in one word.'),
  message: str('Why, for people.'),
  lastTransitionTime: time('When its status changed.'),
  lastHeartbeatTime: time('When it was looked at last.'),
});
const conditions = list(condition, 'Conditions.');
const reference = (what: string) => object(what, { namespace: needed(str('Namespace.')), name: needed(str('Name.')) });
const dataSource = object('What is copied; one member only.', {
  pvc: reference('A claim.'),
  snapshot: reference('A VolumeSnapshot.'),
  dataSource: reference('Another DataSource.'),
});
const claimPropertySets = atomicList(
  object('Access modes and a volume mode that go together.', {
    accessModes: atomicList(str('Access mode.'), 'Access modes.'),
    volumeMode: str('Filesystem or Block.'),
  }),
  'What claims of the class can be; the first is taken where nothing is said.',
);

interface Kind {
  readonly plural: string;
  readonly kind: string;
  readonly shortNames?: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly spec: TSchema;
  readonly status: TSchema;
  readonly columns?: CustomResourceColumnDefinition[];
}

const KINDS: readonly Kind[] = [
  {
    plural: 'datavolumes',
    kind: 'DataVolume',
    shortNames: ['dv', 'dvs'],
    scope: 'Namespaced',
    description: 'A claim that is filled: from a web server, a registry, another claim or a snapshot, or with nothing.',
    spec: dataVolumeSpec,
    status: object('How far it is.', {
      claimName: str('Name of the claim.'),
      phase: str('Where it is.'),
      progress: str('How much is done, as a percentage.'),
      restartCount: int('How many attempts have failed.'),
      conditions,
    }),
    columns: [
      { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'The phase the data volume is in' },
      {
        name: 'Progress',
        type: 'string',
        jsonPath: '.status.progress',
        description: 'Transfer progress in percentage if known, N/A otherwise',
      },
      {
        name: 'Restarts',
        type: 'integer',
        jsonPath: '.status.restartCount',
        description: 'The number of times the transfer has been restarted.',
      },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
  },
  {
    plural: 'datasources',
    kind: 'DataSource',
    shortNames: ['das'],
    scope: 'Namespaced',
    description: 'A name for what DataVolumes are copied from.',
    spec: object('What it stands for.', { source: needed(dataSource) }),
    status: object('What it stands for now.', { source: dataSource, conditions }),
  },
  {
    plural: 'dataimportcrons',
    kind: 'DataImportCron',
    shortNames: ['dic', 'dics'],
    scope: 'Namespaced',
    description: 'An image of a registry that is imported again whenever it changes.',
    spec: object('Which image, and when it is looked at.', {
      template: needed(
        object('The DataVolume that is made.', {
          metadata: object('Its metadata.', {
            labels: stringMap('Labels.'),
            annotations: stringMap('Annotations.'),
          }),
          spec: needed(dataVolumeSpec),
        }),
      ),
      schedule: needed(str('When the image is looked at, in the format of cron.')),
      managedDataSource: needed(str('The DataSource that leads to the newest import.')),
      garbageCollect: str('Outdated, the default, or Never.'),
      importsToKeep: int('How many imports are kept; 3 when absent.'),
      retentionPolicy: str('RetainAll, the default, or None: whether imports stay when the cron goes.'),
      createdBy: str('Has no effect.'),
      serviceAccountName: str('Has no effect.'),
    }),
    status: object('How far it is.', {
      currentImports: list(
        object('One import.', {
          DataVolumeName: needed(str('Its DataVolume.')),
          Digest: needed(str('Digest of the image.')),
        }),
        'Imports of the newest image.',
      ),
      lastImportedPVC: reference('The claim of the newest import that is full.'),
      lastExecutionTimestamp: time('When the image was looked at last.'),
      lastImportTimestamp: time('When an import was full last.'),
      sourceFormat: str('pvc.'),
      conditions,
    }),
  },
  {
    plural: 'storageprofiles',
    kind: 'StorageProfile',
    scope: 'Cluster',
    description: 'What claims of a storage class are where a DataVolume does not say.',
    spec: object('What an administrator says.', {
      claimPropertySets,
      cloneStrategy: str('How claims are copied.'),
      dataImportCronSourceFormat: str('pvc or snapshot.'),
      snapshotClass: str('Class of snapshots.'),
    }),
    status: object('What holds.', {
      storageClass: str('Name of the class.'),
      provisioner: str('Its provisioner.'),
      claimPropertySets,
      cloneStrategy: str('How claims are copied.'),
      dataImportCronSourceFormat: str('pvc or snapshot.'),
      snapshotClass: str('Class of snapshots.'),
      conditions,
      warnings: strings('What is missing.'),
    }),
  },
  {
    plural: 'cdiconfigs',
    kind: 'CDIConfig',
    scope: 'Cluster',
    description: 'Where images are uploaded to, and what else clients want to know. There is one, config.',
    spec: object('What an administrator says.', {
      uploadProxyURLOverride: str('Where clients find the upload proxy, when not where the status says.'),
    }),
    status: object('What holds.', {
      uploadProxyURL: str('Where uploads are taken.'),
      uploadProxyCA: str('Authority of its certificate, in PEM.'),
      filesystemOverhead: object('Share of a volume that its file system takes.', { global: str('Of every class.') }),
      preallocation: bool('Whether disks are allocated in full.'),
    }),
  },
];

/** The definitions, established. `now`, in milliseconds, is the time their conditions carry. */
export const cdiCrds = (now: number): readonly CustomResourceDefinition[] =>
  KINDS.map(({ description, spec, status, columns, ...names }) => {
    const members = { spec: toStructuralSchema(spec), status: toStructuralSchema(status) };
    return establishedDefinition(
      {
        ...names,
        ...(names.scope === 'Namespaced' && { categories: ['all'] }),
        group: CDI_GROUP,
        versions: [
          {
            name: CDI_VERSION,
            schema: rootSchema(description, members, ['spec']),
            subresources: { status: {} },
            ...(columns && { additionalPrinterColumns: columns }),
          },
        ],
      },
      now,
    );
  });
