/**
 * The CustomResourceDefinitions of snapshot.storage.k8s.io/v1: fields, columns, short names and rules of those that
 * external-snapshotter publishes (client/config/crd, version 8).
 */

import { establishedDefinition, rootSchema } from '@coracle/apimachinery/types/established-definition';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import { SNAPSHOT_STORAGE_GROUP } from './kinds.ts';

type Node = Readonly<Record<string, unknown>>;
type Column = readonly [name: string, path: string, type: string, description?: string];

const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

const text = (description: string, more: Node = {}): Node => ({ type: 'string', description, ...more });
const rule = (expression: string, message: string): Node => ({ rule: expression, message });
const rules = (...list: readonly Node[]): Node => ({ 'x-kubernetes-validations': list });
const immutable = (field: string): Node => rules(rule('self == oldSelf', `${field} is immutable`));
const stays = (field: string): Node =>
  rule(`!has(oldSelf.${field}) || has(self.${field})`, `${field} is required once set`);
const exactlyOne = (a: string, b: string): Node =>
  rule(`has(self.${a}) != has(self.${b})`, `exactly one of ${a} and ${b} must be set`);

const failure: Node = {
  type: 'object',
  description: 'The last failure; absent after a success.',
  properties: {
    time: text('When it was seen.', { format: 'date-time' }),
    message: text('What went wrong.'),
  },
};
const deletionPolicy = text('What becomes of the snapshot in the storage when its VolumeSnapshot is deleted.', {
  enum: ['Delete', 'Retain'],
});
const readyToUse: Node = { type: 'boolean', description: 'Volumes can be made from it.' };

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  /** The review in which the definition was approved: its group is protected. */
  readonly approval: string;
  readonly description: string;
  readonly required: readonly string[];
  readonly properties: Readonly<Record<string, Node>>;
  readonly columns: readonly Column[];
  readonly hasStatus: boolean;
}

const READY_COLUMN: Column = [
  'ReadyToUse',
  '.status.readyToUse',
  'boolean',
  'Indicates if the snapshot is ready to be used to restore a volume.',
];
const AGE: Column = ['Age', '.metadata.creationTimestamp', 'date'];

const SNAPSHOT: Kind = {
  kind: 'VolumeSnapshot',
  plural: 'volumesnapshots',
  shortNames: ['vs'],
  scope: 'Namespaced',
  approval: '814',
  description: 'A request for a snapshot of the volume of a claim, or for a snapshot that exists already.',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      description: 'What is asked for.',
      required: ['source'],
      properties: {
        source: {
          type: 'object',
          description: 'What the snapshot is taken of. Does not change.',
          properties: {
            persistentVolumeClaimName: text(
              'Claim of the same namespace whose volume is taken.',
              immutable('persistentVolumeClaimName'),
            ),
            volumeSnapshotContentName: text(
              'VolumeSnapshotContent that stands for a snapshot that exists.',
              immutable('volumeSnapshotContentName'),
            ),
          },
          ...rules(
            stays('persistentVolumeClaimName'),
            stays('volumeSnapshotContentName'),
            exactlyOne('volumeSnapshotContentName', 'persistentVolumeClaimName'),
          ),
        },
        volumeSnapshotClassName: text(
          'Class of the snapshot; the default class of the driver of the volume when absent.',
          rules(rule('size(self) > 0', 'volumeSnapshotClassName must not be the empty string when set')),
        ),
      },
    },
    status: {
      type: 'object',
      description: 'What became of it.',
      properties: {
        boundVolumeSnapshotContentName: text('The VolumeSnapshotContent; believe it only when that names this object.'),
        creationTime: text('The instant that the snapshot shows.', { format: 'date-time' }),
        error: failure,
        readyToUse,
        restoreSize: text('Least size of a volume made from it.', {
          pattern: QUANTITY,
          'x-kubernetes-int-or-string': true,
        }),
        volumeGroupSnapshotName: text('The VolumeGroupSnapshot that it belongs to.'),
      },
    },
  },
  columns: [
    READY_COLUMN,
    ['SourcePVC', '.spec.source.persistentVolumeClaimName', 'string', 'Claim that the snapshot is taken of.'],
    [
      'SourceSnapshotContent',
      '.spec.source.volumeSnapshotContentName',
      'string',
      'VolumeSnapshotContent of a snapshot that exists.',
    ],
    ['RestoreSize', '.status.restoreSize', 'string', 'Least size of a volume made from the snapshot.'],
    ['SnapshotClass', '.spec.volumeSnapshotClassName', 'string', 'The VolumeSnapshotClass.'],
    ['SnapshotContent', '.status.boundVolumeSnapshotContentName', 'string', 'The VolumeSnapshotContent.'],
    ['CreationTime', '.status.creationTime', 'date', 'The instant that the snapshot shows.'],
    AGE,
  ],
  hasStatus: true,
};

const CONTENT: Kind = {
  kind: 'VolumeSnapshotContent',
  plural: 'volumesnapshotcontents',
  shortNames: ['vsc', 'vscs'],
  scope: 'Cluster',
  approval: '955',
  description: 'A snapshot as the storage has it.',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      description: 'Which snapshot, and whose it is.',
      required: ['deletionPolicy', 'driver', 'source', 'volumeSnapshotRef'],
      properties: {
        deletionPolicy,
        driver: text('CSI driver that keeps the snapshot.'),
        source: {
          type: 'object',
          description: 'The volume to be taken, or a snapshot that exists. Does not change.',
          properties: {
            snapshotHandle: text('Snapshot that exists.', immutable('Spec.Source.SnapshotHandle')),
            volumeHandle: text('Volume to be taken.', immutable('Spec.Source.VolumeHandle')),
          },
          ...rules(stays('volumeHandle'), stays('snapshotHandle'), exactlyOne('volumeHandle', 'snapshotHandle')),
        },
        sourceVolumeMode: text('Mode of the volume: Filesystem or Block.', immutable('Spec.sourceVolumeMode')),
        volumeSnapshotClassName: text('Class that it was made by.'),
        volumeSnapshotRef: {
          type: 'object',
          description: 'The VolumeSnapshot that it is bound to.',
          properties: Object.fromEntries(
            ['apiVersion', 'fieldPath', 'kind', 'name', 'namespace', 'resourceVersion', 'uid'].map((name) => [
              name,
              text(`${name} of the VolumeSnapshot.`),
            ]),
          ),
          'x-kubernetes-map-type': 'atomic',
          ...rules(
            rule(
              'has(self.name) && has(self.__namespace__)',
              'both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set',
            ),
          ),
        },
      },
      ...rules(stays('sourceVolumeMode')),
    },
    status: {
      type: 'object',
      description: 'What the storage says of it.',
      properties: {
        creationTime: {
          type: 'integer',
          format: 'int64',
          description: 'The instant that it shows, in nanoseconds since the epoch.',
        },
        error: failure,
        readyToUse,
        restoreSize: { type: 'integer', format: 'int64', minimum: 0, description: 'Bytes of a volume made from it.' },
        snapshotHandle: text('Its name in the storage.'),
        volumeGroupSnapshotHandle: text('Name of its group in the storage.'),
      },
    },
  },
  columns: [
    READY_COLUMN,
    ['RestoreSize', '.status.restoreSize', 'integer', 'Bytes of a volume made from the snapshot.'],
    ['DeletionPolicy', '.spec.deletionPolicy', 'string', 'What becomes of the snapshot without its VolumeSnapshot.'],
    ['Driver', '.spec.driver', 'string', 'CSI driver that keeps the snapshot.'],
    ['VolumeSnapshotClass', '.spec.volumeSnapshotClassName', 'string', 'The VolumeSnapshotClass.'],
    ['VolumeSnapshot', '.spec.volumeSnapshotRef.name', 'string', 'The VolumeSnapshot that it is bound to.'],
    ['VolumeSnapshotNamespace', '.spec.volumeSnapshotRef.namespace', 'string', 'Namespace of the VolumeSnapshot.'],
    AGE,
  ],
  hasStatus: true,
};

const CLASS: Kind = {
  kind: 'VolumeSnapshotClass',
  plural: 'volumesnapshotclasses',
  shortNames: ['vsclass', 'vsclasses'],
  scope: 'Cluster',
  approval: '814',
  description: 'How snapshots by a driver are made, and what becomes of them.',
  required: ['deletionPolicy', 'driver'],
  properties: {
    deletionPolicy,
    driver: text('CSI driver that makes the snapshots.'),
    parameters: {
      type: 'object',
      description: 'Settings for the driver.',
      additionalProperties: { type: 'string' },
    },
  },
  columns: [
    ['Driver', '.driver', 'string'],
    ['DeletionPolicy', '.deletionPolicy', 'string', 'What becomes of a snapshot without its VolumeSnapshot.'],
    AGE,
  ],
  hasStatus: false,
};

/** The three definitions, established. `now`, in milliseconds, is the time their conditions carry. */
export const volumeSnapshotCrds = (now: number): readonly CustomResourceDefinition[] =>
  [SNAPSHOT, CONTENT, CLASS].map(({ approval, description, required, properties, columns, hasStatus, ...names }) =>
    establishedDefinition(
      {
        ...names,
        group: SNAPSHOT_STORAGE_GROUP,
        approval: `https://github.com/kubernetes-csi/external-snapshotter/pull/${approval}`,
        versions: [
          {
            name: 'v1',
            schema: rootSchema(description, properties, required),
            subresources: hasStatus ? { status: {} } : {},
            additionalPrinterColumns: columns.map(([name, jsonPath, type, description]) => ({
              name,
              type,
              jsonPath,
              ...(description !== undefined && { description }),
            })),
          },
        ],
      },
      now,
    ),
  );
