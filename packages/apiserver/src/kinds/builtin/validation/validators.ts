/** The validating function of each built-in resource that has one. */

import type { GroupValidators, Validate } from '@coracle/apimachinery/validation/field-errors';
import { validateCrd } from '../../custom/crd-validation.ts';
import { ADMISSION_VALIDATORS, COORDINATION_VALIDATORS, RBAC_VALIDATORS, SCHEDULING_VALIDATORS } from './cluster.ts';
import { CORE_VALIDATORS } from './core.ts';
import { DISCOVERY_VALIDATORS } from './endpoints.ts';
import { EVENTS_VALIDATORS } from './events.ts';
import { FLOW_CONTROL_VALIDATORS } from './flow-control.ts';
import { NETWORKING_VALIDATORS } from './networking.ts';
import { REGISTRATION_VALIDATORS } from './registration.ts';
import { STORAGE_VALIDATORS } from './storage.ts';
import { APPS_VALIDATORS, POLICY_VALIDATORS } from './workloads.ts';

const BY_GROUP: Readonly<Record<string, GroupValidators>> = {
  '': CORE_VALIDATORS,
  'admissionregistration.k8s.io': ADMISSION_VALIDATORS,
  'apiextensions.k8s.io': { customresourcedefinitions: validateCrd },
  'apiregistration.k8s.io': REGISTRATION_VALIDATORS,
  apps: APPS_VALIDATORS,
  'coordination.k8s.io': COORDINATION_VALIDATORS,
  'discovery.k8s.io': DISCOVERY_VALIDATORS,
  'events.k8s.io': EVENTS_VALIDATORS,
  'flowcontrol.apiserver.k8s.io': FLOW_CONTROL_VALIDATORS,
  'networking.k8s.io': NETWORKING_VALIDATORS,
  policy: POLICY_VALIDATORS,
  'rbac.authorization.k8s.io': RBAC_VALIDATORS,
  'scheduling.k8s.io': SCHEDULING_VALIDATORS,
  'storage.k8s.io': STORAGE_VALIDATORS,
};

export const validatorOf = (group: string, resource: string): Validate | undefined => BY_GROUP[group]?.[resource];
