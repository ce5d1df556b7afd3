/** The strategy of each built-in resource, out of what its group says of it. The facts are those of Kubernetes 1.36. */
import { canonicalizeScalars } from '@coracle/apimachinery/schema/canonical-scalars';
import type { Schema } from '@coracle/apimachinery/schema/schema';
import { defineStrategy, type ResourceStrategy, type UpdateStrategy } from '@coracle/apimachinery/types/strategy';
import type { Validate } from '@coracle/apimachinery/validation/field-errors';
import { presetsOf } from '../defaults/kind-defaults.ts';
import { holdsQuantity, quantityErrors } from '../defaults/quantities.ts';
import type { BuiltinKind, BuiltinSubresource, GroupKinds } from './builtin-kind.ts';
import {
  ADMISSION,
  CERTIFICATES,
  COORDINATION,
  EVENTS,
  EXTENSIONS,
  FLOW_CONTROL,
  NODE,
  RBAC,
  REGISTRATION,
  SCHEDULING,
} from './cluster.ts';
import { CORE } from './core.ts';
import { DISCOVERY, NETWORKING } from './networking.ts';
import { DEVICES, STORAGE } from './storage.ts';
import { APPS, AUTOSCALING, BATCH, POLICY } from './workloads.ts';

const BY_GROUP: Readonly<Record<string, GroupKinds>> = {
  '': CORE,
  'admissionregistration.k8s.io': ADMISSION,
  'apiextensions.k8s.io': EXTENSIONS,
  'apiregistration.k8s.io': REGISTRATION,
  apps: APPS,
  autoscaling: AUTOSCALING,
  batch: BATCH,
  'certificates.k8s.io': CERTIFICATES,
  'coordination.k8s.io': COORDINATION,
  'discovery.k8s.io': DISCOVERY,
  'events.k8s.io': EVENTS,
  'flowcontrol.apiserver.k8s.io': FLOW_CONTROL,
  'networking.k8s.io': NETWORKING,
  'node.k8s.io': NODE,
  policy: POLICY,
  'rbac.authorization.k8s.io': RBAC,
  'resource.k8s.io': DEVICES,
  'scheduling.k8s.io': SCHEDULING,
  'storage.k8s.io': STORAGE,
};

/** `schema` is asked for when the first object comes. */
export function strategyOf(resource: {
  readonly group: string;
  readonly resource: string;
  readonly hasStatus: boolean;
  readonly schema: () => Schema;
}): ResourceStrategy {
  const { schema } = resource;
  const {
    setDefaults,
    validate,
    subresources = {},
    ...kind
  }: BuiltinKind = BY_GROUP[resource.group]?.[resource.resource] ?? {};
  const validateAmounts = (rules: Validate | undefined): Validate => {
    return (object, old) => {
      const errors = rules?.(object, old) ?? [];
      const amounts = holdsQuantity(schema()) ? quantityErrors(object, schema()) : [];
      return amounts.length === 0 ? errors : [...amounts, ...errors];
    };
  };
  const endpointOf = ({ validate: own, ...rest }: BuiltinSubresource): Partial<UpdateStrategy> => ({
    ...rest,
    ...(own && { validateUpdate: validateAmounts(own) }),
  });
  const validateWhole = validateAmounts(validate);
  const presetValues = presetsOf(resource.group === '' ? resource.resource : `${resource.group}/${resource.resource}`);
  return defineStrategy({
    ...kind,
    statusSubresource: resource.hasStatus,
    setDefaults(object) {
      presetValues?.(object);
      setDefaults?.(object);
      canonicalizeScalars(schema(), object);
    },
    validate: validateWhole,
    validateUpdate: validateWhole,
    subresources: Object.fromEntries(Object.entries(subresources).map(([name, one]) => [name, endpointOf(one)])),
  });
}
