/** Label and field selectors of list, watch and deletecollection, compiled once per request. */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { badRequest } from '../../api/meta/status.ts';
import { parseFieldSelector } from '../../api/selector/field-selector.ts';
import { matchesLabels, parseLabelSelector } from '../../api/selector/label-selector.ts';
import type { StoredObject } from '../cache/object-store.ts';
import { viewObject } from './versioned-view.ts';

export interface Selection {
  /** True when there is no selector at all. */
  readonly everything: boolean;
  readonly matches: (stored: StoredObject) => boolean;
}

const EVERYTHING: Selection = { everything: true, matches: () => true };

/** Throws ApiError 400 when a selector does not parse or names a field the kind cannot select by. */
export function createSelection(
  info: ResourceInfo,
  { labelSelector, fieldSelector }: { readonly labelSelector: string; readonly fieldSelector: string },
): Selection {
  if (labelSelector === '' && fieldSelector === '') return EVERYTHING;
  const labels = labelSelector === '' ? undefined : parseLabelSelector(labelSelector);
  const fields = fieldSelector === '' ? [] : fieldMatchers(info, fieldSelector);
  if (fields.length === 0 && labels === undefined) return EVERYTHING;
  return {
    everything: false,
    matches(stored) {
      for (const field of fields) if (!field(stored)) return false;
      return labels === undefined || matchesLabels(labels, stored.object.metadata.labels ?? {});
    },
  };
}

function fieldMatchers(info: ResourceInfo, text: string): ((stored: StoredObject) => boolean)[] {
  return parseFieldSelector(text).map(({ field, op, value }) => {
    const read = fieldReader(info, field);
    const equal = op === '=';
    return (stored) => (read(stored) === value) === equal;
  });
}

function fieldReader(info: ResourceInfo, field: string): (stored: StoredObject) => string {
  if (field === 'metadata.name') return (stored) => stored.name;
  if (field === 'metadata.namespace' && (info.namespaced || hasNoFieldsOfItsOwn(info))) {
    return (stored) => stored.namespace;
  }
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
  switch (`${info.group}/${info.resource}`) {
    case 'batch/jobs':
      return `field label ${JSON.stringify(field)} not supported for batchv1.Job`;
    case 'resource.k8s.io/resourceslices':
      return `field label not supported for ${info.group}/${info.version}, Kind=${info.kind}: ${field}`;
    default:
      return `field label not supported: ${field}`;
  }
}
