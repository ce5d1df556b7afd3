/** The cell functions of every built-in resource that has columns of its own. */
import type { Cells, GroupCells } from './cell.ts';
import {
  ADMISSION_CELLS,
  CERTIFICATE_CELLS,
  COORDINATION_CELLS,
  DISCOVERY_CELLS,
  FLOWCONTROL_CELLS,
  NETWORKING_CELLS,
  RBAC_CELLS,
  REGISTRATION_CELLS,
  SCHEDULING_CELLS,
  STORAGE_CELLS,
} from './cluster.ts';
import { CORE_CELLS } from './core.ts';
import { EVENT_CELLS } from './event.ts';
import { APPS_CELLS, POLICY_CELLS } from './workloads.ts';

const BY_GROUP: Readonly<Record<string, GroupCells>> = {
  '': CORE_CELLS,
  'admissionregistration.k8s.io': ADMISSION_CELLS,
  'apiregistration.k8s.io': REGISTRATION_CELLS,
  apps: APPS_CELLS,
  'certificates.k8s.io': CERTIFICATE_CELLS,
  'coordination.k8s.io': COORDINATION_CELLS,
  'discovery.k8s.io': DISCOVERY_CELLS,
  'events.k8s.io': { events: EVENT_CELLS },
  'flowcontrol.apiserver.k8s.io': FLOWCONTROL_CELLS,
  'networking.k8s.io': NETWORKING_CELLS,
  policy: POLICY_CELLS,
  'rbac.authorization.k8s.io': RBAC_CELLS,
  'scheduling.k8s.io': SCHEDULING_CELLS,
  'storage.k8s.io': STORAGE_CELLS,
};

/** Cells by column name; undefined when the resource shows only Name and Created At. */
export const cellsOf = (group: string, resource: string): Cells | undefined => BY_GROUP[group]?.[resource];
