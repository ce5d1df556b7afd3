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

const forbid = (field: string, detail: string): FieldError => ({ type: 'FieldValueForbidden', field, detail });
const unsupportedMatch = (value: string): FieldError => ({
  type: 'FieldValueNotSupported',
  field: 'resourceVersionMatch',
  value,
  detail: 'supported values: "Exact", "NotOlderThan", ""',
});

function listErrors(options: ListOptions): FieldError[] {
  const { resourceVersionMatch: match } = options;
  const errors: FieldError[] = [];
  if (match !== '') {
    if (options.resourceVersion === '') {
      errors.push(
        forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
      );
    }
    if (options.continue !== '') {
      errors.push(forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'));
    }
    if (!MATCHES.includes(match)) errors.push(unsupportedMatch(match));
    if (match === 'Exact' && options.resourceVersion === '0') {
      errors.push(forbid('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
    }
  }
  if (options.sendInitialEvents !== undefined) {
    errors.push(forbid('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  return errors;
}

function watchErrors(options: ListOptions): FieldError[] {
  const { resourceVersionMatch: match, sendInitialEvents } = options;
  const errors: FieldError[] = [];
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    errors.push(
      forbid('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    );
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      errors.push(
        forbid(
          'resourceVersionMatch',
          'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
        ),
      );
    }
    if (match !== 'NotOlderThan') {
      errors.push({ ...unsupportedMatch(match), detail: 'supported values: "NotOlderThan"' });
    }
  }
  // A watch that names no version begins with what is there: so it has a match of its own (SetListOptionsDefaults).
  const isLegacy = ['', '0'].includes(options.resourceVersion) && match === '' && sendInitialEvents === undefined;
  if ((match !== '' || isLegacy) && options.continue !== '') {
    errors.push(forbid('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'));
  }
  if (options.limit > 0 && sendInitialEvents !== undefined) {
    errors.push(forbid('limit', 'limit is forbidden when sendInitialEvents is provided'));
  }
  return errors;
}
