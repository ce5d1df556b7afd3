/** VirtualMachineInstanceMigration: one live migration. */
import type { Static } from 'typebox';
import { atomicList, needed, object, oneOf, str, stringMap, strings, time } from './fields.ts';
import { conditions, migrationState } from './status.ts';

export const MIGRATION_PHASES = [
  'Pending',
  'Scheduling',
  'Scheduled',
  'PreparingTarget',
  'TargetReady',
  'Running',
  'Succeeded',
  'Failed',
  'WaitingForSync',
  'Synchronizing',
] as const;

export const migrationSpec = object('What is to move where.', {
  vmiName: str('Instance of the same namespace.'),
  addedNodeSelector: stringMap('Labels the target must have besides those of the instance.'),
  sendTo: object('Sends to another cluster.', {
    migrationID: needed(str('Name both sides give the migration.')),
    connectURL: needed(str('Address of the other side.')),
  }),
  receive: object('Receives from another cluster.', {
    migrationID: needed(str('Name both sides give the migration.')),
  }),
  priority: oneOf(['system-critical', 'user-triggered', 'system-maintenance'], 'Place in the queue.'),
});

export const migrationStatus = object('What is known of the migration.', {
  phase: oneOf(MIGRATION_PHASES, 'Where it is.'),
  conditions,
  phaseTransitionTimestamps: atomicList(
    object('One change of phase.', {
      phase: oneOf(MIGRATION_PHASES, 'Phase.'),
      phaseTransitionTimestamp: time('When.'),
    }),
    'When each phase was entered.',
  ),
  migrationState,
  synchronizationAddresses: strings('Addresses of the synchronisation.', { 'x-kubernetes-list-type': 'atomic' }),
});

export type MigrationPhase = (typeof MIGRATION_PHASES)[number];
export type MigrationSpec = Static<typeof migrationSpec>;
export type MigrationStatus = Static<typeof migrationStatus>;
