/** The validating function of each built-in resource that has one. */
import { validateCrd } from '../../custom/crd-validation.ts';
import {
  ADMISSION_VALIDATORS,
  COORDINATION_VALIDATORS,
  RBAC_VALIDATORS,
  SCHEDULING_VALIDATORS,
  STORAGE_VALIDATORS,
} from './cluster.ts';
import { CORE_VALIDATORS } from './core.ts';
import { EVENTS_VALIDATORS } from './events.ts';
import type { GroupValidators, Validate } from './field-errors.ts';
import { REGISTRATION_VALIDATORS } from './registration.ts';
import { APPS_VALIDATORS, BATCH_VALIDATORS, POLICY_VALIDATORS } from './workloads.ts';

const BY_GROUP: Readonly<Record<string, GroupValidators>> = {
  '': CORE_VALIDATORS,
  'admissionregistration.k8s.io': ADMISSION_VALIDATORS,
  'apiextensions.k8s.io': { customresourcedefinitions: validateCrd },
  'apiregistration.k8s.io': REGISTRATION_VALIDATORS,
  apps: APPS_VALIDATORS,
  batch: BATCH_VALIDATORS,
  'coordination.k8s.io': COORDINATION_VALIDATORS,
  'events.k8s.io': EVENTS_VALIDATORS,
  policy: POLICY_VALIDATORS,
  'rbac.authorization.k8s.io': RBAC_VALIDATORS,
  'scheduling.k8s.io': SCHEDULING_VALIDATORS,
  'storage.k8s.io': STORAGE_VALIDATORS,
};

export const validatorOf = (group: string, resource: string): Validate | undefined => BY_GROUP[group]?.[resource];
