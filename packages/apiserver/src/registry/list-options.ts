/** The query of list, watch and deletecollection, and which combinations make sense (meta/internalversion validation). */
import { type FieldError, invalid } from '@coracle/apimachinery/meta/status';

export interface ListOptions {
  readonly labelSelector: string;
  readonly fieldSelector: string;
  /** 0 = no bound. */
  readonly limit: number;
  readonly continue: string;
  readonly resourceVersion: string;
  readonly resourceVersionMatch: string;
  readonly sendInitialEvents: boolean | undefined;
  readonly allowWatchBookmarks: boolean;
  /** 0 = the server chooses; below 0 the time is up already. */
  readonly timeoutSeconds: number;
}

/** Options of a request without a query. */
export const NO_LIST_OPTIONS: ListOptions = {
  labelSelector: '',
  fieldSelector: '',
  limit: 0,
  continue: '',
  resourceVersion: '',
  resourceVersionMatch: '',
  sendInitialEvents: undefined,
  allowWatchBookmarks: false,
  timeoutSeconds: 0,
};

const MATCHES = ['Exact', 'NotOlderThan'];

/** Throws ApiError 422 (ListOptions) when the options contradict one another. */
export function validateListOptions(options: ListOptions, { watch }: { readonly watch: boolean }): void {
  const errors = watch ? watchErrors(options) : listErrors(options);
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors);
}

const MATCH = 'resourceVersionMatch';

const unsupportedMatch = (value: string, supported: string): FieldError => ({
  type: 'FieldValueNotSupported',
  field: MATCH,
  value,
  detail: `supported values: ${supported}`,
});

/** Of the mistakes those that are made, as fields that are forbidden. */
const forbidden = (...mistakes: readonly [isMade: boolean, field: string, detail: string][]): FieldError[] =>
  mistakes.flatMap(([isMade, field, detail]) => (isMade ? [{ type: 'FieldValueForbidden', field, detail }] : []));

function listErrors(options: ListOptions): FieldError[] {
  const { resourceVersionMatch: match, resourceVersion } = options;
  const isGiven = match !== '';
  return [
    ...forbidden(
      [isGiven && resourceVersion === '', MATCH, `${MATCH} is forbidden unless resourceVersion is provided`],
      [isGiven && options.continue !== '', MATCH, `${MATCH} is forbidden when continue is provided`],
    ),
    ...(isGiven && !MATCHES.includes(match) ? [unsupportedMatch(match, '"Exact", "NotOlderThan", ""')] : []),
    ...forbidden(
      [match === 'Exact' && resourceVersion === '0', MATCH, `${MATCH} "exact" is forbidden for resourceVersion "0"`],
      [options.sendInitialEvents !== undefined, 'sendInitialEvents', 'sendInitialEvents is forbidden for list'],
    ),
  ];
}

function watchErrors(options: ListOptions): FieldError[] {
  const { resourceVersionMatch: match } = options;
  const isGiven = match !== '';
  const isOther = match !== 'NotOlderThan';
  const sends = options.sendInitialEvents !== undefined;
  // A watch that names no version begins with what is there: so it has a match of its own (SetListOptionsDefaults).
  const hasMatch = isGiven || (['', '0'].includes(options.resourceVersion) && !sends);
  return [
    ...forbidden(
      [sends && isOther, MATCH, `sendInitialEvents requires setting ${MATCH} to NotOlderThan`],
      [isGiven && !sends, MATCH, `${MATCH} is forbidden for watch unless sendInitialEvents is provided`],
    ),
    ...(isGiven && isOther ? [unsupportedMatch(match, '"NotOlderThan"')] : []),
    ...forbidden(
      [hasMatch && options.continue !== '', MATCH, `${MATCH} is forbidden when continue is provided`],
      [sends && options.limit > 0, 'limit', 'limit is forbidden when sendInitialEvents is provided'],
    ),
  ];
}
