/** Events: lenient through core/v1, strict through events.k8s.io/v1 (core/validation/events.go). Paths are core's. */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { checkQualifiedName } from '@coracle/apimachinery/meta/name-rules';
import type { FieldError } from '@coracle/apimachinery/meta/status';
import { isObject, type JsonObject, numberAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { IMMUTABLE, invalid, required } from '@coracle/apimachinery/validation/field-errors';
import { eventView } from '../views/event-view.ts';

const MAX_SHORT = 128;
const MAX_NOTE = 1024;
const ELSEWHERE = 'does not match event.namespace';

/** What holds for every event, whichever API it came through. */
export function validateEvent(event: JsonObject): FieldError[] {
  const own = textAt(event, 'metadata', 'namespace');
  const target = textAt(event, 'involvedObject', 'namespace');
  const namespaceError = [invalid('involvedObject.namespace', target, ELSEWHERE)];
  if (textAt(event, 'eventTime') === '') {
    // About something without a namespace: only `default` may hold it.
    const fits = target === '' ? own === 'default' : target === own;
    return fits ? [] : namespaceError;
  }
  const errors: FieldError[] = [];
  if (target === '' && own !== 'default' && own !== 'kube-system') errors.push(...namespaceError);
  const controller = textAt(event, 'reportingComponent');
  if (controller === '') errors.push(required('reportingController'));
  for (const detail of checkQualifiedName(controller)) errors.push(invalid('reportingController', controller, detail));
  for (const field of ['reportingInstance', 'action', 'reason']) {
    const text = textAt(event, field);
    if (text === '') errors.push(required(field));
    if (text.length > MAX_SHORT) errors.push(invalid(field, '', `can have at most ${MAX_SHORT} characters`));
  }
  if (textAt(event, 'message').length > MAX_NOTE) {
    errors.push(invalid('message', '', `can have at most ${MAX_NOTE} characters`));
  }
  return errors;
}

function validateSeries(event: JsonObject): FieldError[] {
  const series = valueAt(event, 'series');
  if (!isObject(series)) return [];
  return [
    ...(numberAt(series, 'count') < 2 ? [invalid('series.count', '', 'should be at least 2')] : []),
    ...(textAt(series, 'lastObservedTime') === '' ? [required('series.lastObservedTime')] : []),
  ];
}

const isSet = (value: unknown): boolean => (isObject(value) ? Object.values(value).some(isSet) : Boolean(value));

function validateStrictCreate(event: JsonObject): FieldError[] {
  const errors = validateSeries(event);
  if (textAt(event, 'eventTime') === '') errors.push(required('eventTime'));
  const type = textAt(event, 'type');
  if (type !== 'Normal' && type !== 'Warning') errors.push(invalid('type', '', `has invalid value: ${type}`));
  for (const field of ['firstTimestamp', 'lastTimestamp', 'count', 'source']) {
    if (isSet(valueAt(event, field))) errors.push(invalid(field, '', 'needs to be unset'));
  }
  return errors;
}

/** What of an event stays, in upstream's order, which looks at the reason twice. */
const FIXED = [
  ...['involvedObject', 'reason', 'message', 'source', 'firstTimestamp', 'lastTimestamp', 'count', 'reason', 'type'],
  ...['eventTime', 'action', 'related', 'reportingComponent', 'reportingInstance'],
];

function validateStrictUpdate(event: JsonObject, old: JsonObject): FieldError[] {
  const errors = deepEqual(valueAt(event, 'series'), valueAt(old, 'series')) ? [] : validateSeries(event);
  for (const field of FIXED) {
    const now = valueAt(event, field);
    const before = valueAt(old, field);
    if (!(isSet(now) || isSet(before)) || deepEqual(now, before)) continue;
    const at = field === 'reportingComponent' ? 'reportingController' : field;
    errors.push(invalid(at, now ?? null, IMMUTABLE));
  }
  return errors;
}

/** An event of events.k8s.io, which is asked more. */
export function validateStrictEvent(object: JsonObject, old?: JsonObject): readonly FieldError[] {
  const event = eventView.toStored(object);
  return [
    ...validateEvent(event),
    ...(old === undefined ? validateStrictCreate(event) : validateStrictUpdate(event, eventView.toStored(old))),
  ];
}
