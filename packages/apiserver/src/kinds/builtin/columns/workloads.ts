/** Cells of ControllerRevisions and PodDisruptionBudgets. */

import { age } from '@coracle/apimachinery/types/age';
import { type JsonObject, numberAt, objectsAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { type Cell, type GroupCells, NONE } from './cell.ts';

const status =
  (field: string): Cell =>
  (object) =>
    numberAt(object, 'status', field);

function controllerName(revision: JsonObject): string {
  const owner = objectsAt(revision, 'metadata', 'ownerReferences').find((ref) => ref['controller'] === true);
  if (owner === undefined) return NONE;
  const apiVersion = textAt(owner, 'apiVersion');
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return `${textAt(owner, 'kind')}${group === '' ? '' : `.${group}`}`.toLowerCase().concat(`/${textAt(owner, 'name')}`);
}

export const APPS_CELLS: GroupCells = {
  controllerrevisions: { Controller: controllerName, Revision: (object) => numberAt(object, 'revision'), Age: age },
};

const intOrString =
  (field: string): Cell =>
  (object) => {
    const value = valueAt(object, 'spec', field);
    return value === undefined || value === null ? 'N/A' : String(value);
  };

export const POLICY_CELLS: GroupCells = {
  poddisruptionbudgets: {
    'Min Available': intOrString('minAvailable'),
    'Max Unavailable': intOrString('maxUnavailable'),
    'Allowed Disruptions': status('disruptionsAllowed'),
    Age: age,
  },
};
