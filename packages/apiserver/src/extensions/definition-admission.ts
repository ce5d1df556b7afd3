/** What definitions forbid: new objects of a kind that is going, and the end of kinds that are built in. */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { AdmissionAttributes, AdmissionPlugin } from '../admission/plugin.ts';

export const DEFINITIONS = { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' };

/** True for the CustomResourceDefinition resource itself. */
export const isDefinition = (info: Pick<ResourceInfo, 'group' | 'resource'>): boolean =>
  info.group === DEFINITIONS.group && info.resource === DEFINITIONS.resource;

/** Refuses creates of resources in `terminating` (`group/resource`). */
export function terminatingKinds(terminating: ReadonlySet<string>): AdmissionPlugin {
  const refuse = ({ info, name }: AdmissionAttributes): void => {
    throw forbidden(info, name, 'create not allowed while custom resource definition is terminating');
  };
  return {
    name: 'CustomResourceTerminating',
    matches: (operation, info, subresource) =>
      terminating.size > 0 &&
      operation === 'CREATE' &&
      subresource === '' &&
      terminating.has(`${info.group}/${info.resource}`),
    mutate: refuse,
    // Asked again at the end: a webhook in between may have taken long.
    validate: refuse,
  };
}

/**
 * Definitions of kinds that this program serves by itself. They can not be deleted, since the kind would stay; a change
 * of their spec is stored and warned about, since it changes nothing.
 */
export function builtInDefinitions(isBuiltIn: (name: string) => boolean): AdmissionPlugin {
  return {
    name: 'BuiltInDefinitions',
    matches: (operation, info, subresource) =>
      isDefinition(info) && subresource === '' && (operation === 'DELETE' || operation === 'UPDATE'),
    validate({ operation, name, object, oldObject, warn }) {
      if (!isBuiltIn(name)) return;
      if (operation === 'DELETE') {
        throw forbidden(DEFINITIONS, name, 'the kind is built into this server and cannot be taken away');
      }
      if (!deepEqual(object?.['spec'], oldObject?.['spec'])) {
        warn(
          `${name}: the kind is built into this server; a change of its definition has no effect on how it is served`,
        );
      }
    },
  };
}
