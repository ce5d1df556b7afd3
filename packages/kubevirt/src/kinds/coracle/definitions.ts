/** The CustomResourceDefinitions of coracle.dev. */

import { establishedDefinition, rootSchema } from '@coracle/apimachinery/types/established-definition';
import type { CustomResourceDefinition } from '@coracle/apimachinery/types/types';
import { BIN_PHASES, CORACLE_GROUP, CORACLE_VERSION } from './kinds.ts';

type Node = Readonly<Record<string, unknown>>;

const text = (description: string, more: Node = {}): Node => ({ type: 'string', description, ...more });
const time = (description: string): Node => text(description, { format: 'date-time' });
const count = (description: string): Node => ({ type: 'integer', format: 'int64', minimum: 0, description });
const object = (description: string, properties: Node, required: readonly string[] = []): Node => ({
  type: 'object',
  description,
  properties,
  ...(required.length > 0 && { required }),
});
/** An object of another kind, kept as it was. */
const kept = (description: string): Node => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
});

const NAME = { maxLength: 253, pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$' };
const request = (more: Node = {}): Node =>
  object(
    'Brings the machine back.',
    {
      id: text('Another one is another request.', { minLength: 1, maxLength: 64 }),
      name: text('Name of the machine; that of before when absent.', NAME),
      newIdentity: {
        type: 'boolean',
        description: 'Another firmware UUID, serial number and MAC addresses than before.',
      },
      ...more,
    },
    ['id'],
  );
const statusFields: Node = {
  phase: text('Where it is.', { enum: [...BIN_PHASES] }),
  goneAt: time('When the machine was really gone.'),
  expiresAt: time('When its storage is released, at the latest.'),
  usedBytes: count('Bytes of its disks in pools of this server.'),
  message: text('What it waits for, or why the last request failed.'),
  failedRequest: text('The request that failed last.'),
};

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly description: string;
  readonly spec: Node;
  readonly status: Node;
  readonly machineColumns: readonly (readonly [name: string, path: string])[];
}

const RECORD: Kind = {
  kind: 'DeletedVirtualMachine',
  plural: 'deletedvirtualmachines',
  shortNames: ['deletedvm', 'deletedvms'],
  scope: 'Namespaced',
  description: 'A deleted virtual machine that can be brought back. To delete it releases the storage of the machine.',
  spec: object(
    'Which machine, and whether it is to come back.',
    {
      virtualMachine: object('The machine.', { name: text('Its name.'), uid: text('Its UID.') }, ['name', 'uid']),
      content: text('Name of the DeletedVirtualMachineContent.'),
      deletedAt: time('When its deletion was asked for.'),
      deletedBy: text('Who asked.'),
      disks: count('Disks that are kept.'),
      undelete: request(),
    },
    ['virtualMachine', 'content', 'deletedAt'],
  ),
  status: object('What became of it.', statusFields),
  machineColumns: [['VM', '.spec.virtualMachine.name']],
};

const CONTENT: Kind = {
  kind: 'DeletedVirtualMachineContent',
  plural: 'deletedvirtualmachinecontents',
  shortNames: [],
  scope: 'Cluster',
  description: 'The objects of a deleted virtual machine, its Secrets among them, and the volumes kept for it.',
  spec: object(
    'What is kept.',
    {
      virtualMachine: object(
        'The machine.',
        { namespace: text('Its namespace.'), name: text('Its name.'), uid: text('Its UID.') },
        ['namespace', 'name', 'uid'],
      ),
      namespaceUID: text('UID of its namespace: one that was made again under the name is another.'),
      record: text('Name of the DeletedVirtualMachine; absent when the namespace was deleted with the machine.'),
      deletedAt: time('When its deletion was asked for.'),
      deletedBy: text('Who asked.'),
      bytes: count('Size of what is kept here.'),
      objects: {
        type: 'array',
        description: 'The machine, then what went with it.',
        items: kept('An object.'),
      },
      volumes: {
        type: 'array',
        description: 'Volumes of the claims among them.',
        items: object(
          'A volume.',
          {
            claim: text('Its claim.'),
            volume: kept('The PersistentVolume.'),
            pool: text('The pool of ours that it lies in.'),
            handle: text('Its handle in that pool.'),
          },
          ['claim', 'volume'],
        ),
      },
      undelete: request({ namespace: text('Where to; the namespace of before when absent.', { maxLength: 63 }) }),
    },
    ['virtualMachine', 'namespaceUID', 'deletedAt', 'bytes', 'objects'],
  ),
  status: object('What became of it.', {
    ...statusFields,
    plan: object('What an undelete under way has decided.', {
      request: text('Its id.'),
      namespace: text('Where to.'),
      name: text('Name of the machine.'),
      newIdentity: { type: 'boolean', description: 'Whether it gets a new identity.' },
      names: {
        type: 'array',
        description: 'Objects that get another name.',
        items: object('One of them.', {
          kind: text('Its kind.'),
          name: text('Name of before.'),
          newName: text('Name of now.'),
        }),
      },
    }),
  }),
  machineColumns: [
    ['Namespace', '.spec.virtualMachine.namespace'],
    ['VM', '.spec.virtualMachine.name'],
  ],
};

const column = ([name, jsonPath, type = 'string']: readonly string[]) => ({ name: name!, type, jsonPath: jsonPath! });

/** The definitions, established. `now`, in milliseconds, is the time their conditions carry. */
export const coracleCrds = (now: number): readonly CustomResourceDefinition[] =>
  [RECORD, CONTENT].map(({ description, spec, status, machineColumns, ...names }) =>
    establishedDefinition(
      {
        ...names,
        group: CORACLE_GROUP,
        versions: [
          {
            name: CORACLE_VERSION,
            schema: rootSchema(description, { spec, status }, ['spec']),
            subresources: { status: {} },
            additionalPrinterColumns: [
              ...machineColumns.map(column),
              column(['Phase', '.status.phase']),
              column(['Bytes', '.status.usedBytes', 'integer']),
              column(['Expires', '.status.expiresAt']),
              column(['Age', '.metadata.creationTimestamp', 'date']),
            ],
          },
        ],
      },
      now,
    ),
  );
