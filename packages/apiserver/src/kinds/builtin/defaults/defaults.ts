/** The defaulting function of each built-in resource that has one. */
import {
  ADMISSION_DEFAULTS,
  DEVICE_DEFAULTS,
  DISCOVERY_DEFAULTS,
  EXTENSIONS_DEFAULTS,
  FLOWCONTROL_DEFAULTS,
  NETWORKING_DEFAULTS,
  RBAC_DEFAULTS,
  REGISTRATION_DEFAULTS,
  SCHEDULING_DEFAULTS,
  STORAGE_DEFAULTS,
} from './cluster.ts';
import { CORE_DEFAULTS } from './core.ts';
import type { GroupDefaults, SetDefaults } from './preset.ts';
import { APPS_DEFAULTS, AUTOSCALING_DEFAULTS, BATCH_DEFAULTS } from './workloads.ts';

const BY_GROUP: Readonly<Record<string, GroupDefaults>> = {
  '': CORE_DEFAULTS,
  'admissionregistration.k8s.io': ADMISSION_DEFAULTS,
  'apiextensions.k8s.io': EXTENSIONS_DEFAULTS,
  'apiregistration.k8s.io': REGISTRATION_DEFAULTS,
  apps: APPS_DEFAULTS,
  autoscaling: AUTOSCALING_DEFAULTS,
  batch: BATCH_DEFAULTS,
  'discovery.k8s.io': DISCOVERY_DEFAULTS,
  'flowcontrol.apiserver.k8s.io': FLOWCONTROL_DEFAULTS,
  'networking.k8s.io': NETWORKING_DEFAULTS,
  'rbac.authorization.k8s.io': RBAC_DEFAULTS,
  'resource.k8s.io': DEVICE_DEFAULTS,
  'scheduling.k8s.io': SCHEDULING_DEFAULTS,
  'storage.k8s.io': STORAGE_DEFAULTS,
};

export const defaultsOf = (group: string, resource: string): SetDefaults | undefined => BY_GROUP[group]?.[resource];
