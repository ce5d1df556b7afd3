/** Events of events.k8s.io as a second face of the core Events that are stored (events/v1 conversion.go). */
import type { StoredView } from '@coracle/apimachinery/types/resource';
import type { MutableObject } from '../defaults/preset.ts';

/** events.k8s.io name -> core name; all other fields are called the same. */
const NAMES: Readonly<Record<string, string>> = {
  regarding: 'involvedObject',
  note: 'message',
  deprecatedSource: 'source',
  deprecatedFirstTimestamp: 'firstTimestamp',
  deprecatedLastTimestamp: 'lastTimestamp',
  deprecatedCount: 'count',
  reportingController: 'reportingComponent',
};
const REVERSED = Object.fromEntries(Object.entries(NAMES).map(([ours, core]) => [core, ours]));

const renamed = (object: Readonly<Record<string, unknown>>, names: Readonly<Record<string, string>>): MutableObject =>
  Object.fromEntries(
    Object.entries(object).map(([field, value]) => [Object.hasOwn(names, field) ? names[field]! : field, value]),
  );

/** What a core Event always has, and one of events.k8s.io leaves out while it is empty. */
const LEFT_OUT = ['reportingController', 'reportingInstance'];

function fromStored(object: Readonly<Record<string, unknown>>): MutableObject {
  const shown = renamed(object, REVERSED);
  for (const field of LEFT_OUT) if (shown[field] === '') delete shown[field];
  return shown;
}

export const eventView: StoredView = {
  fromStored,
  toStored: (object) => renamed(object, NAMES),
};
