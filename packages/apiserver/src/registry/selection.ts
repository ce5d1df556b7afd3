/** Label and field selectors of list, watch and deletecollection, compiled once per request. */

import { badRequest } from '@coracle/apimachinery/meta/status';
import { parseFieldSelector } from '@coracle/apimachinery/selector/field-selector';
import { labelHint } from '@coracle/apimachinery/selector/label-hint';
import { matchesLabels, parseLabelSelector } from '@coracle/apimachinery/selector/label-selector';
import type { ResourceInfo } from '@coracle/apimachinery/types/resource';
import type { StoredObject } from '../cache/object-store.ts';

import { viewObject } from './versioned-view.ts';

export interface Selection {
  /** True when there is no selector at all. */
  readonly everything: boolean;
  readonly matches: (stored: StoredObject) => boolean;
  /** True when `matches` has to parse the object, which costs a hundred times as much as not to. */
  readonly parses: (stored: StoredObject) => boolean;
  /** Requirements that an object may have to be compared with. */
  readonly requirements: number;
  /** True when one name is asked for: such a list has one page. */
  readonly single?: boolean;
}

const EVERYTHING: Selection = { everything: true, matches: () => true, parses: () => false, requirements: 0 };

/** Throws ApiError 400 when a selector does not parse or names a field the kind cannot select by. */
export function createSelection(
  info: ResourceInfo,
  { labelSelector, fieldSelector }: { readonly labelSelector: string; readonly fieldSelector: string },
): Selection {
  if (labelSelector === '' && fieldSelector === '') return EVERYTHING;
  const labels = labelSelector === '' ? undefined : parseLabelSelector(labelSelector);
  const hint = labels && labelHint(labels);
  const fields = fieldSelector === '' ? [] : fieldMatchers(info, fieldSelector);
  if (fields.length === 0 && labels === undefined) return EVERYTHING;
  return {
    everything: false,
    requirements: fields.length + (labels?.requirements.length ?? 0),
    single: fields.some(({ isName }) => isName),
    matches(stored) {
      for (const { keeps } of fields) if (!keeps(stored)) return false;
      if (labels === undefined) return true;
      // What lies on the disk is not read for its labels.
      if (!stored.isHeld) return matchesLabels(labels, stored.metadata.labels ?? {});
      if (hint && !stored.isParsed && !hint(stored.bytes)) return false;
      return matchesLabels(labels, stored.object.metadata.labels ?? {});
    },
    parses(stored) {
      if (stored.isParsed) return false;
      for (const { keeps, parses } of fields) {
        if (parses) return true;
        if (!keeps(stored)) return false;
      }
      return labels !== undefined && stored.isHeld && (hint === undefined || hint(stored.bytes));
    },
  };
}

interface FieldMatcher {
  readonly keeps: (stored: StoredObject) => boolean;
  /** It reads the object, not its key. */
  readonly parses: boolean;
  /** It wants one name. */
  readonly isName: boolean;
}

/** Those that only read the key first: they are cheap, and leave little to the others. */
function fieldMatchers(info: ResourceInfo, text: string): FieldMatcher[] {
  const matchers = parseFieldSelector(text).map(({ field, op, value }): FieldMatcher => {
    const key = keyReader(info, field);
    const read = key ?? fieldReader(info, field);
    const equal = op === '=';
    return {
      keeps: (stored) => (read(stored) === value) === equal,
      parses: key === undefined,
      isName: equal && field === 'metadata.name',
    };
  });
  return matchers.sort((a, b) => Number(a.parses) - Number(b.parses));
}

function keyReader(info: ResourceInfo, field: string): ((stored: StoredObject) => string) | undefined {
  if (field === 'metadata.name') return (stored) => stored.name;
  if (field === 'metadata.namespace' && (info.namespaced || hasNoFieldsOfItsOwn(info))) {
    return (stored) => stored.namespace;
  }
  return undefined;
}

function fieldReader(info: ResourceInfo, field: string): (stored: StoredObject) => string {
  if (!Object.hasOwn(info.selectableFields, field)) throw badRequest(unknownField(info, field));
  const read = info.selectableFields[field]!;
  return (stored) => read(viewObject(info, stored));
}

/** Built-in kinds that declare no field take a name and a namespace, whatever their scope. */
const hasNoFieldsOfItsOwn = ({ strategy, selectableFields }: ResourceInfo): boolean =>
  !strategy.custom && Object.keys(selectableFields).length === 0;

/** Each kind that declares fields words its refusal by itself (`AddFieldLabelConversionFunc`). */
function unknownField(info: ResourceInfo, field: string): string {
  if (hasNoFieldsOfItsOwn(info)) {
    return `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
  }
  const name = `${info.group}/${info.resource}`;
  if (name === 'batch/jobs') return `field label ${JSON.stringify(field)} not supported for batchv1.Job`;
  const of = name === 'resource.k8s.io/resourceslices' ? ` for ${info.group}/${info.version}, Kind=${info.kind}` : '';
  return `field label not supported${of}: ${field}`;
}
