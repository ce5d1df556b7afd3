/** Event columns, for core/v1 and events.k8s.io/v1: two spellings of the same object. */

import { ageSince } from '@coracle/apimachinery/types/age';
import { isObject, type JsonObject, numberAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import type { Cells } from './cell.ts';

/** The core/v1 name of a field, or its events.k8s.io/v1 name. */
const either = (event: JsonObject, core: string, events: string): unknown =>
  valueAt(event, core) ?? valueAt(event, events);

const target = (event: JsonObject): unknown => either(event, 'involvedObject', 'regarding');

function firstSeen(event: JsonObject, now: number): string {
  return ageSince(either(event, 'firstTimestamp', 'deprecatedFirstTimestamp') ?? valueAt(event, 'eventTime'), now);
}

function lastSeen(event: JsonObject, now: number): string {
  const series = valueAt(event, 'series');
  if (isObject(series)) return ageSince(series['lastObservedTime'], now);
  const last = either(event, 'lastTimestamp', 'deprecatedLastTimestamp');
  return last == null ? firstSeen(event, now) : ageSince(last, now);
}

function source(event: JsonObject): string {
  const from = either(event, 'source', 'deprecatedSource');
  const component =
    textAt(from, 'component') || textAt(event, 'reportingComponent') || textAt(event, 'reportingController');
  const instance = textAt(from, 'host') || textAt(event, 'reportingInstance');
  return instance === '' ? component : `${component}, ${instance}`;
}

/** `Name` is in `cells.json` because events show it last and only when wide; other kinds leave it to the printer. */
export const EVENT_CELLS: Cells = {
  'Last Seen': lastSeen,
  Object: (event) => {
    const kind = textAt(target(event), 'kind').toLowerCase();
    const name = textAt(target(event), 'name');
    return name === '' ? kind : `${kind}/${name}`;
  },
  Subobject: (event) => textAt(target(event), 'fieldPath'),
  Source: source,
  Message: (event) => (textAt(event, 'message') || textAt(event, 'note')).trim(),
  'First Seen': firstSeen,
  Count: (event) =>
    isObject(valueAt(event, 'series'))
      ? numberAt(event, 'series', 'count')
      : numberAt(event, 'count') || numberAt(event, 'deprecatedCount') || 1,
};
